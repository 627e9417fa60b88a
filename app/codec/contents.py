# SPDX-License-Identifier: Apache-2.0
"""All objects of a cluster as bytes, decoded as far as an explanation needs: what it rests on when offline.

Nodes, pods and PodGroups become domain values; everything stays at hand as the JSON that came, and becomes a
dict when it is asked for. What cannot be used is left out and named: a report tells so. Decides nothing else.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
import orjson
from msgspec import Raw, Struct

from app.codec.objects import ObjectDecoder
from app.codec.snapshot import JsonObject, SnapshotInfo, info_of, not_json
from app.codec.wire import UNUSABLE
from app.domain.changes import Change, Value
from app.domain.errors import InputError
from app.domain.ids import GangApi


class _Name(Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Head(Struct, rename="camel", gc=False):
    metadata: _Name
    api_version: str = ""
    kind: str = ""


class _List(Struct, gc=False):
    items: list[Raw]


_HEAD: Final = msgspec.json.Decoder(_Head)
_LIST: Final = msgspec.json.Decoder(_List)


class Item(Struct, frozen=True, gc=False):
    """One object: its JSON and what it is called. `kind` is `Kind.group`; `namespace` is empty for none."""

    kind: str
    namespace: str
    name: str
    raw: bytes | Raw

    def object(self) -> JsonObject:
        """All of it. Raises `InputError` where its parts are JSON that no value can hold, such as 1e400."""
        try:
            made: JsonObject = orjson.loads(memoryview(self.raw))
        except orjson.JSONDecodeError as error:
            raise InputError(f"{self} cannot be read: {error.msg}") from None
        return made

    def __str__(self) -> str:
        return " ".join((self.kind, "/".join(part for part in (self.namespace, self.name) if part)))


class Unusable(Struct, frozen=True):
    """An object that was left out: its `Kind.group namespace/name`, or its place in the list."""

    what: str
    why: str


class Contents(Struct):
    """`changes` are the domain values, `items` all objects. `info` is None for a List of another hand."""

    changes: list[Change]
    items: list[Item]
    unusable: list[Unusable]
    info: SnapshotInfo | None

    def objects(self, wanted: Callable[[Item], bool]) -> Iterator[JsonObject]:
        """Those that are wanted, as dicts."""
        return (item.object() for item in self.items if wanted(item))


def contents_of(data: bytes, *, source: str) -> Contents:
    """Of a `v1 List`. Raises `InputError` for what is none."""
    try:
        raws = _LIST.decode(data).items
    except msgspec.ValidationError:
        hint = "it has no items; use the output of kubectl get -o json"
        raise InputError(f"{source} is not a v1 List: {hint}") from None
    except UNUSABLE as error:
        raise not_json(data, error, source=source) from None
    return decoded(raws)


def decoded(raws: Iterable[bytes | Raw]) -> Contents:
    """Of objects that are JSON of their own."""
    decoder = ObjectDecoder()
    found = Contents([], [], [], None)
    with _no_collection():
        for place, raw in enumerate(raws):
            _take(found, decoder, place, raw)
    infos = [item.object() for item in found.items[-1:] if item.kind == "SnapshotInfo.muster.dev"]
    found.info = info_of(infos)
    return found


def _take(found: Contents, decoder: ObjectDecoder, place: int, raw: bytes | Raw) -> None:
    try:
        head = _HEAD.decode(raw)
    except UNUSABLE:
        found.unusable.append(Unusable(f"items[{place}]", "it is not a Kubernetes object with metadata"))
        return
    group, slash, _ = head.api_version.partition("/")
    kind = f"{head.kind}.{group}" if slash else head.kind
    item = Item(kind, head.metadata.namespace, head.metadata.name, raw)
    found.items.append(item)
    try:
        value = _value(decoder, kind, raw)
    except InputError as error:
        found.unusable.append(Unusable(str(item), str(error)))
        return
    if value is not None:
        found.changes.append(Change(value=value))


def _value(decoder: ObjectDecoder, kind: str, raw: bytes | Raw) -> Value | None:
    if kind == "Pod":
        return decoder.pod(raw)
    if kind == "Node":
        return decoder.node(raw)
    if kind in _GROUPS:
        return decoder.pod_group(raw)
    return None


_GROUPS: Final = (f"PodGroup.{GangApi.LABEL}", f"PodGroup.{GangApi.NATIVE}")


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hundreds of thousands of objects are made here and none of them is garbage: do not look for any."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
