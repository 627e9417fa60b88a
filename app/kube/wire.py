# SPDX-License-Identifier: Apache-2.0
"""The frames that lists and watches come in: pages, event lines, and what their errors mean.

Decides which failures can only be mended by a new list (they carry status 410). Never looks inside an object
beyond its identity.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import NamedTuple

import msgspec
from msgspec import Raw

from app.codec.wire import ObjectList, Status, WatchLine
from app.domain.errors import ApiError
from app.kube.known import Identity, identify

_LIST = msgspec.json.Decoder(ObjectList)
_LINE = msgspec.json.Decoder(WatchLine)
_STATUS = msgspec.json.Decoder(Status)


class Event(NamedTuple):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    identity: Identity
    raw: Raw


def decode_page(body: bytes, path: str) -> ObjectList:
    """One page of a list, items undecoded. Raises `ApiError` when it is none."""
    try:
        return _LIST.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(f"GET {path}: not a list: {error}") from None


def decode_event(line: bytes, path: str) -> Event:
    """One line of a watch. Raises `ApiError` with the status of an ERROR event.

    An unreadable line raises 410: what it was about is unknown, only a list can tell.
    """
    try:
        event = _LINE.decode(line)
        if event.type != "ERROR":
            return Event(event.type, identify(event.object), event.object)
        status = _STATUS.decode(event.object)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(f"watch {path}: unreadable line: {error}", status=HTTPStatus.GONE) from None
    raise ApiError(f"watch {path}: {status.message}", status=status.code or HTTPStatus.GONE)


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
