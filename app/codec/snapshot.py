# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the `v1 List` that `kubectl get nodes,pods,… -A -o json` prints, plain or gzipped.

Kinds that are not followed are kept as they are. Raises `InputError` naming the file and the item.

`muster snapshot` adds one item of its own, a `SnapshotInfo`, that tells what could not be seen. It is the
last one, since only then is that known. A List of kubectl has none: whether it is whole, nobody can tell.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from app.codec.objects import ObjectDecoder
from app.domain.changes import Value
from app.domain.errors import InputError
from app.domain.ids import GangApi

JsonObject = dict[str, Any]
_GZIP: Final = b"\x1f\x8b"
LIST_END: Final = b"\n]}\n"
"""What the text of a whole snapshot ends with; the line before it is the `SnapshotInfo`."""

_API_VERSION: Final = "muster.dev/v1"
_INFO: Final = "SnapshotInfo"


class Unseen(Struct, frozen=True):
    """A kind (`pods`, `jobs.batch`) of which some or all is missing, and why, as one sentence."""

    kind: str
    why: str


class SnapshotInfo(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a snapshot knows of itself. Where it came from an old or a foreign hand, the defaults hold."""

    taken: str = ""
    """When it was begun, RFC 3339 in UTC."""
    server_version: str = ""
    """`gitVersion` of the API server."""
    namespaces: tuple[str, ...] | None = None
    """The only ones whose objects were asked for; None: all of them."""
    redacted: bool = False
    """Environments, commands, annotations and the like were removed."""
    environment_kept: bool = False
    """All of that but env, command and args, as its taker wished."""
    counts: dict[str, int] = {}
    """Objects by kind, of the kinds that were asked for and are served; 0 is a finding."""
    absent: tuple[str, ...] = ()
    """Kinds that this cluster does not serve."""
    unseen: tuple[Unseen, ...] = ()
    api_gates: dict[str, bool] | None = None
    """Feature gates of the API server that matter here; None: could not tell."""
    scheduler_gates: dict[str, dict[str, bool]] | None = None
    """The same of each kube-scheduler, by the name of its pod; None: could not tell."""

    @property
    def partial(self) -> bool:
        """Whether what is free is an upper bound: pods or nodes may exist that are not in the file."""
        return self.namespaces is not None or any(gap.kind in ("nodes", "pods") for gap in self.unseen)

    def item(self) -> bytes:
        """It as an item of the List."""
        head = {"apiVersion": _API_VERSION, "kind": _INFO, "metadata": {"name": "snapshot"}}
        return orjson.dumps({**head, **msgspec.to_builtins(self)})


def info_of(items: Sequence[JsonObject]) -> SnapshotInfo | None:
    """What the snapshot tells of itself; None where nobody has said anything (a List of kubectl)."""
    for item in reversed(items):
        if item.get("kind") == _INFO and item.get("apiVersion") == _API_VERSION:
            try:
                return msgspec.convert(item, SnapshotInfo)
            except msgspec.ValidationError as error:
                raise InputError(f"not a usable {_INFO}: {error}") from None
    return None


class ListText:
    """Writes a List bit by bit, an object a line: line tools can search, count and compare what is in it."""

    def __init__(self) -> None:
        self._lead = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[\n'

    def add(self, items: list[bytes]) -> bytes:
        """The text for these objects."""
        if not items:
            return b""
        lead, self._lead = self._lead, b",\n"
        return lead + b",\n".join(items)

    def end(self, info: SnapshotInfo) -> bytes:
        """The last of it."""
        return self.add([info.item()]) + LIST_END


def read(path: Path) -> list[JsonObject]:
    """The items of a snapshot file."""
    return items_of(content(path), source=str(path))


def content(path: Path) -> bytes:
    """The bytes of a snapshot file, unpacked."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {path}: {reason}") from None


def items_of(data: bytes, *, source: str) -> list[JsonObject]:
    """The items of a List in memory."""
    try:
        top = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise not_json(data, error, source=source) from None
    items = top.get("items") if isinstance(top, dict) else None
    if not isinstance(items, list):
        raise InputError(f"{source} is not a v1 List: it has no items; use the output of kubectl get -o json")
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
            raise InputError("is not a Kubernetes object with metadata", field=f"{source}: items[{index}]")
    return items


def value_of(decoder: ObjectDecoder, obj: JsonObject) -> Value | None:
    """The domain value of one object; None for kinds that are not followed."""
    kind, version = obj.get("kind"), str(obj.get("apiVersion") or "")
    raw = _bytes(obj)  # of any kind: what cannot be written could not be shown again
    if kind == "Pod" and version == "v1":
        return decoder.pod(raw)
    if kind == "Node" and version == "v1":
        return decoder.node(raw)
    if kind == "PodGroup" and version.partition("/")[0] in (GangApi.LABEL, GangApi.NATIVE):
        return decoder.pod_group(raw)
    return None


def _bytes(obj: JsonObject) -> bytes:
    try:
        return orjson.dumps(obj)
    except TypeError as error:  # orjson writes less deep than it reads
        raise InputError(f"{obj.get('kind')} cannot be written as JSON: {error}") from None


def not_json(data: bytes, error: Exception, *, source: str) -> InputError:
    """What is said of a file that cannot be parsed."""
    hint = "; it looks like YAML: use kubectl get -o json" if _is_yaml(data) else ""
    return InputError(f"{source} is not JSON: {error}{hint}")


def _is_yaml(data: bytes) -> bool:
    """What `kubectl get -o yaml` prints begins so."""
    return data.lstrip(b"-\n ").startswith((b"apiVersion:", b"items:", b"kind:"))
