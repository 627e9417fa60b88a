# SPDX-License-Identifier: Apache-2.0
"""What one reflector knows, and the difference that a list or an event makes to it.

Decides what is news: an object is identified by namespace, name and UID, and never moves backwards in
resource version between two lists; a list is always right. Never does I/O and never raises for one object:
what cannot be decoded is skipped and counted, and the state known before stays.

Resource versions are compared as integers, as Kubernetes 1.35 and later define them (KEP-5504) and all
earlier releases on etcd behave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

V = TypeVar("V")

Update: TypeAlias = tuple[V, bool]
"""A value, and whether it is gone (then it is the last state seen)."""

Bad: TypeAlias = Callable[[str, Exception], None]
"""Told namespace/name and the error, once per object."""

_REMEMBERED_BAD: Final = 1000


class Identity(Struct, rename="camel", gc=False):
    """The part of metadata that tells objects and their versions apart."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """namespace/name, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def version(self) -> int:
        """The resource version as a number; -1 when it is none, which compares with nothing."""
        return int(self.resource_version) if self.resource_version.isdecimal() else -1


class Header(Struct, gc=False):
    """Any object, its metadata alone."""

    metadata: Identity = msgspec.field(default_factory=Identity)


_HEADER = msgspec.json.Decoder(Header)


def identify(raw: Raw | bytes) -> Identity:
    """Raises `msgspec.DecodeError` when it is no object with metadata."""
    return _HEADER.decode(raw).metadata


class _Entry(Struct, Generic[V], gc=False):
    uid: str
    version: int
    value: V


class Known(Generic[V]):
    """The objects of one resource. `skipped` counts states that could not be decoded."""

    def __init__(self, decode: Callable[[bytes | Raw], V], *, bad: Bad) -> None:
        self.skipped = 0
        self._decode = decode
        self._bad = bad
        self._told: set[str] = set()
        self._entries: dict[str, _Entry[V]] = {}
        self._listed: set[str] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def begin_list(self) -> None:
        """A list starts; what it does not mention until `end_list` is gone."""
        self._listed.clear()

    def listed(self, raw: Raw) -> list[Update[V]]:
        """One item of a list: right even when its version is lower than the one known (a restored etcd)."""
        try:
            identity = identify(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._skip("an item of a list", error)
            return []
        self._listed.add(identity.key)
        before = self._entries.get(identity.key)
        if before is not None and before.uid == identity.uid and before.version == identity.version != -1:
            return []
        return self._replace(identity, raw, before)

    def end_list(self) -> Iterator[Update[V]]:
        """Everything that was known and not listed, removed one by one."""
        for key in [key for key in self._entries if key not in self._listed]:
            yield self._entries.pop(key).value, True
        self._listed.clear()

    def changed(self, identity: Identity, raw: Raw) -> list[Update[V]]:
        """An ADDED or MODIFIED event."""
        before = self._entries.get(identity.key)
        if before is not None and -1 < identity.version <= before.version:
            return []  # older than the list, or the same again: possibly a predecessor of the same name
        return self._replace(identity, raw, before)

    def deleted(self, identity: Identity, raw: Raw) -> list[Update[V]]:
        """A DELETED event: the last state, the one the event carries if it can be read."""
        before = self._entries.get(identity.key)
        if before is None or before.uid != identity.uid:
            return []
        del self._entries[identity.key]
        last = self._decoded(identity, raw)
        return [(before.value if last is None else last, True)]

    def _replace(self, identity: Identity, raw: Raw, before: _Entry[V] | None) -> list[Update[V]]:
        value = self._decoded(identity, raw)
        updates: list[Update[V]] = []
        if before is not None and before.uid != identity.uid:
            del self._entries[identity.key]
            updates.append((before.value, True))
        if value is not None:
            self._entries[identity.key] = _Entry(identity.uid, identity.version, value)
            updates.append((value, False))
        return updates

    def _decoded(self, identity: Identity, raw: Raw) -> V | None:
        try:
            return self._decode(raw)
        except Exception as error:  # any fault of one object stays with that object
            self._skip(identity.key, error)
            return None

    def _skip(self, key: str, error: Exception) -> None:
        self.skipped += 1
        if key not in self._told and len(self._told) < _REMEMBERED_BAD:
            self._told.add(key)
            self._bad(key, error)
