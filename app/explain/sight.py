# SPDX-License-Identifier: Apache-2.0
"""What was read beside the inventory: raw objects, and what could not be read. Decides what a gap is.

What is absent from a file that says what it left out is absent from the cluster. Of other files nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from app.codec.kinds import KINDS, ApiKind
from app.codec.snapshot import JsonObject, SnapshotInfo
from app.explain.facts import Unseen

UNSAID: Final = "the snapshot has none and does not say whether there are any"
EVERYWHERE: Final = frozenset({"ResourceClaim.resource.k8s.io", "Lease.coordination.k8s.io"})
"""Kinds of which those of other namespaces count too: devices and leadership are shared by all."""


class Sight(msgspec.Struct, frozen=True):
    """Objects near a subject. See `Facts` for the rest."""

    objects: list[JsonObject]
    unseen: tuple[Unseen, ...] = ()
    namespaces: tuple[str, ...] | None = None
    gates: dict[str, bool | None] | None = None


def near(kind: str, where: str, *, namespace: str) -> bool:
    """Whether an object is read as it is for a subject of `namespace`: the inventory has the others."""
    return kind != "Node" and (where in ("", namespace) or kind in EVERYWHERE)


def sight(
    objects: list[JsonObject],
    info: SnapshotInfo | None,
    *,
    kinds: Collection[str],
    unusable: tuple[Unseen, ...] = (),
) -> Sight:
    """Of a snapshot that has objects of these `kinds` (`Kind.group`) and says `info` of itself."""
    told = info or SnapshotInfo()
    return Sight(
        objects=objects,
        unseen=(*unusable, *_unseen(info, kinds)),
        namespaces=told.namespaces,
        gates=agreed(told.scheduler_gates),
    )


def _unseen(info: SnapshotInfo | None, kinds: Collection[str]) -> Iterator[Unseen]:
    if info is None:
        yield from (Unseen(name, UNSAID) for kind in KINDS if (name := kind_name(kind)) not in kinds)
    else:
        yield from (Unseen(_NAMED.get(gap.kind, gap.kind), gap.why) for gap in info.unseen)


def kind_name(kind: ApiKind) -> str:
    """`Kind.group`, as explanations name it."""
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


_NAMED: Final = {kind.name: kind_name(kind) for kind in KINDS}
"""`jobs.batch` → `Job.batch`."""


def agreed(gates: dict[str, dict[str, bool]] | None) -> dict[str, bool | None] | None:
    """Of each gate what all schedulers say of it, None where they disagree; None when none could be asked."""
    if not gates:
        return None
    names = dict.fromkeys(name for of_one in gates.values() for name in of_one)
    told = {name: {of_one.get(name, False) for of_one in gates.values()} for name in names}
    return {name: on.pop() if len(on) == 1 else None for name, on in told.items()}
