# SPDX-License-Identifier: Apache-2.0
"""What an explanation rests on: the inventory, the raw objects beside it, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from app.domain.gang import GangState
from app.domain.ids import GangKey
from app.domain.reasons import Refusal
from app.explain.config.configuration import Configuration
from app.explain.objects import Objects
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory


class Unseen(msgspec.Struct, frozen=True, gc=False):
    """A kind (`Kind.group`), or what else was to be read, and why it was not."""

    what: str
    why: str


class Facts(msgspec.Struct, frozen=True):
    """`inventory` as a running Muster has it, with the seats it reserved (or would, for a snapshot).

    `objects` need not hold all kinds: nodes and pods are in the inventory, and raw only where they are in
    question. `namespaces` is None when all were read; otherwise what others hold is not known, and what is
    free is an upper bound. `gates` are the schedulers' feature gates by name (None where they disagree),
    None when they could not be read; `config` is a KubeSchedulerConfiguration, if one is known. `now` is in
    Unix seconds. `supposed` tells that no Muster runs here: its seats are those that it would reserve, were
    it started with these objects.
    """

    inventory: Inventory
    objects: Objects
    state: Callable[[Gang], GangState]
    refusal: Callable[[GangKey], Refusal]
    now: int = 0
    unseen: tuple[Unseen, ...] = ()
    namespaces: tuple[str, ...] | None = None
    gates: Mapping[str, bool | None] | None = None
    config: Configuration | None = None
    supposed: bool = False

    def blind(self, kind: str) -> bool:
        """Whether objects of this kind could not be read: finding none then means nothing."""
        return any(unseen.what == kind for unseen in self.unseen)

    def partly(self, kind: str) -> bool:
        """Whether single objects of this kind could not be read: what the others show is no proof."""
        return any(unseen.what.startswith(f"{kind} ") for unseen in self.unseen)
