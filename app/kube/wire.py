# SPDX-License-Identifier: Apache-2.0
"""The frames that lists and watches come in: pages, event lines, and what their errors mean.

Bytes are walked once: a frame and the objects in it are decoded together. Only where that fails are they
taken apart, so that one object nobody can read spoils neither its page nor its watch. Decides which failures
can only be mended by a new list (they carry status 410).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from app.codec.wire import UNUSABLE, Header, Identity, ObjectList, Status, WatchLine
from app.domain.errors import ApiError


class Object(Protocol):
    """Wire fields of any object."""

    @property
    def metadata(self) -> Identity:
        """What tells it from others."""
        ...


W = TypeVar("W", bound=Object)

_RAW_LIST = msgspec.json.Decoder(ObjectList[Raw])
_RAW_LINE = msgspec.json.Decoder(WatchLine[Raw])
_HEADER = msgspec.json.Decoder(Header)
_STATUS = msgspec.json.Decoder(Status)


class Unreadable(Struct, gc=False):
    """An object of which nothing but (perhaps) the identity could be read."""

    metadata: Identity
    error: Exception


class Event(NamedTuple, Generic[W]):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: W | Unreadable


class Frames(Generic[W]):
    """Decodes what the API sends under `path`, its objects as `kind`."""

    def __init__(self, kind: type[W], path: str) -> None:
        self._path = path
        self._list = msgspec.json.Decoder(ObjectList[kind])  # type: ignore[valid-type]
        self._line = msgspec.json.Decoder(WatchLine[kind])  # type: ignore[valid-type]
        self._object = msgspec.json.Decoder(kind)

    def page(self, body: bytes) -> ObjectList[W | Unreadable]:
        """One page of a list. Raises `ApiError` when it is none."""
        try:
            return self._list.decode(body)
        except UNUSABLE:
            return self._dissected(body)

    def _dissected(self, body: bytes) -> ObjectList[W | Unreadable]:
        try:
            page = _RAW_LIST.decode(body)
        except UNUSABLE as error:
            raise ApiError(f"GET {self._path}: not a list: {error}") from None
        return ObjectList(metadata=page.metadata, items=[self._read(raw) for raw in page.items or ()])

    def _read(self, raw: Raw) -> W | Unreadable:
        try:
            return self._object.decode(raw)
        except UNUSABLE as error:
            return Unreadable(_identity(raw), error)

    def event(self, line: bytes) -> Event[W]:
        """One line of a watch. Raises `ApiError` with the status of an ERROR event.

        A line without an identity raises 410: what it was about is unknown, only a list can tell.
        """
        try:
            event: WatchLine[W] = self._line.decode(line)
            if event.type == "BOOKMARK" or (event.type != "ERROR" and event.object.metadata.name):
                return Event(event.type, event.object)
        except UNUSABLE:
            pass
        return self._dissected_event(line)

    def _dissected_event(self, line: bytes) -> Event[W]:
        try:
            event = _RAW_LINE.decode(line)
            if event.type != "ERROR":
                found = self._read(event.object)
                if not found.metadata.name and event.type != "BOOKMARK":
                    raise msgspec.DecodeError("an object without a name")
                return Event(event.type, found)
            status = _STATUS.decode(event.object)
        except UNUSABLE as error:
            raise ApiError(f"watch {self._path}: unreadable line: {error}", status=HTTPStatus.GONE) from None
        raise ApiError(f"watch {self._path}: {status.message}", status=status.code or HTTPStatus.GONE)


def _identity(raw: Raw) -> Identity:
    try:
        return _HEADER.decode(raw).metadata
    except UNUSABLE:
        return Identity()


def is_later(version: str, than: str) -> bool:
    """Whether one resource version follows another: integers of any length, without leading zeros."""
    return (len(version), version) > (len(than), than)


def advice(kind: str, error: ApiError) -> str:
    """One sentence for people, with what to do where that is known."""
    if error.status == HTTPStatus.FORBIDDEN:
        return f"not allowed to list and watch {kind}: grant it to Muster's ServiceAccount ({error})"
    if error.status == HTTPStatus.UNAUTHORIZED:
        return f"the API does not accept Muster's credentials ({error})"
    return str(error)
