# SPDX-License-Identifier: Apache-2.0
"""What one reflector knows, and the difference that a list or an event makes to it.

Decides what is news: an object is identified by namespace, name and UID, and never moves backwards in
resource version between two lists; a list is always right. A state that says nothing new to scheduling (a
heartbeat) is none. Never does I/O and never raises for one object: what cannot be read is skipped and
counted, and the state known before stays.

Resource versions are compared as integers, as Kubernetes 1.35 and later define them (KEP-5504) and all
earlier releases on etcd behave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from app.kube.wire import Object, Unreadable

W = TypeVar("W", bound=Object)
V = TypeVar("V")

Update: TypeAlias = tuple[V, bool]
"""A value, and whether it is gone (then it is the last state seen)."""

Bad: TypeAlias = Callable[[str, Exception], None]
"""Told namespace/name and the error, once per object."""

_REMEMBERED_BAD: Final = 1000


class _Entry(Struct, Generic[V], gc=False):
    uid: str
    version: int
    value: V


class Known(Generic[W, V]):
    """The objects of one resource. `skipped` counts states that could not be read."""

    def __init__(self, value: Callable[[W], V], *, bad: Bad) -> None:
        self.skipped = 0
        self.repeat = False
        """Whether a state is told again that says nothing new: after a consumer has failed to take one."""
        self._value = value
        self._bad = bad
        self._told: set[str] = set()
        self._entries: dict[str, _Entry[V]] = {}
        self._listed: set[str] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def begin_list(self) -> None:
        """A list starts; what it does not mention until `end_list` is gone."""
        self._listed.clear()

    def listed(self, obj: W | Unreadable) -> list[Update[V]]:
        """One item of a list: right even when its version is lower than the one known (a restored etcd)."""
        identity = obj.metadata
        key = identity.key
        self._listed.add(key)
        before = self._entries.get(key)
        same = before is not None and before.uid == identity.uid and before.version == identity.version != -1
        return [] if same and not self.repeat else self._replace(key, obj, before)

    def end_list(self) -> Iterator[Update[V]]:
        """Everything that was known and not listed, removed one by one."""
        for key in [key for key in self._entries if key not in self._listed]:
            yield self._entries.pop(key).value, True
        self._listed.clear()

    def changed(self, obj: W | Unreadable) -> list[Update[V]]:
        """An ADDED or MODIFIED event."""
        key = obj.metadata.key
        before = self._entries.get(key)
        if before is not None and -1 < obj.metadata.version <= before.version:
            return []  # older than the list, or the same again: possibly a predecessor of the same name
        return self._replace(key, obj, before)

    def deleted(self, obj: W | Unreadable) -> list[Update[V]]:
        """A DELETED event: the last state, the one the event carries if it can be read."""
        key = obj.metadata.key
        before = self._entries.get(key)
        if before is None or before.uid != obj.metadata.uid:
            return []
        del self._entries[key]
        last = self._read(key, obj)
        return [(before.value if last is None else last, True)]

    def _replace(self, key: str, obj: W | Unreadable, before: _Entry[V] | None) -> list[Update[V]]:
        value, identity = self._read(key, obj), obj.metadata
        updates: list[Update[V]] = []
        if before is not None and before.uid != identity.uid:
            del self._entries[key]
            updates.append((before.value, True))
        elif before is not None and value == before.value and not self.repeat:
            before.version = identity.version
            return []
        if value is not None:
            self._entries[key] = _Entry(identity.uid, identity.version, value)
            updates.append((value, False))
        return updates

    def _read(self, key: str, obj: W | Unreadable) -> V | None:
        if isinstance(obj, Unreadable):
            self._skip(key, obj.error)
            return None
        try:
            return self._value(obj)
        except Exception as error:  # any fault of one object stays with that object
            self._skip(key, error)
            return None

    def _skip(self, key: str, error: Exception) -> None:
        self.skipped += 1
        if key not in self._told and len(self._told) < _REMEMBERED_BAD:
            self._told.add(key)
            self._bad(key, error)
