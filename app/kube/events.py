# SPDX-License-Identifier: Apache-2.0
"""Tells people through core/v1 Events and PodGroup status, at a bounded rate.

Decides what is worth a write: per subject (by UID) and reason there is one Event object; the latest message
wins, its count and last time move on, and an unchanged message is repeated only after the renewal interval
or when something else was said of the subject meanwhile.
Never blocks its callers and never raises to them. One server-side apply per event creates or updates it, so
an Event that expired (the API server keeps them an hour) comes back with its count. Names follow from subject
and reason: after a restart the same object is continued, its count starting anew.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import Any, Final

from app.codec.objects import stamp
from app.domain.errors import ApiError
from app.domain.gang import PodGroup
from app.domain.ids import GangApi
from app.domain.plan import PodRef
from app.kube.client import APPLY_PATCH, Api, object_path, refused, writer_query
from app.kube.status import API_VERSION, StatusCounts
from app.kube.writer import PER_SECOND, PacedWriter, Rank

COMPONENT: Final = "muster"
MESSAGE_BYTES: Final = 1024
"""Longest message (API server's `NoteLengthLimit`)."""

RENEWAL_SECONDS: Final = 600.0
_NATIVE_VERSION: Final = "scheduling.k8s.io/v1beta1"
_SUBJECTS: Final = 50_000
_WRITE_SECONDS: Final = 10.0
_NAME_BYTES: Final = 200


@dataclass
class _Note:
    """What one Event says. `shown` is what was written last, None when it must be written again."""

    message: str
    warning: bool
    count: int = 0
    first: float | None = None
    shown: tuple[str, bool] | None = None
    shown_at: float = 0.0
    waits: bool = True


@dataclass
class _Subject:
    """`latest` is the reason said last: saying an older one again is news, or it would look outdated."""

    reference: dict[str, str]
    rank: Rank
    notes: dict[str, _Note] = field(default_factory=dict)
    latest: str = ""


class Reporter:
    """Events and status counts. `clock` paces and renews, `wall` (Unix seconds) stamps the events.

    `may_write` false (design: not *active*) drops what waits. Rate and bounds: `PacedWriter`.
    """

    def __init__(
        self,
        api: Api,
        *,
        rng: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        may_write: Callable[[], bool] = lambda: True,
        instance: str = COMPONENT,
        per_second: float = PER_SECOND,
        renewal_seconds: float = RENEWAL_SECONDS,
        capacity: int = 20_000,
    ) -> None:
        self.writer = PacedWriter(
            clock=clock, rng=rng or Random(), may_write=may_write, per_second=per_second, capacity=capacity
        )
        self._api = api
        self._clock = clock
        self._wall = wall
        self._instance = instance
        self._renewal = renewal_seconds
        self._status = StatusCounts(api, self.writer)
        self._subjects: OrderedDict[str, _Subject] = OrderedDict()

    async def run(self) -> None:
        """Write until cancelled."""
        await self.writer.run()

    def event(self, subject: PodRef | PodGroup, *, reason: str, message: str, warning: bool = False) -> None:
        """An event on a pod or PodGroup. The latest message of one subject and reason wins."""
        known = self._subject(subject)
        message = _truncated(message)
        note = known.notes.setdefault(reason, _Note(message, warning))
        note.message, note.warning, note.waits = message, warning, True
        again, known.latest = known.latest != reason, reason
        if again:
            note.shown = None
        key = ("event", subject.uid, reason)
        if note.shown == (message, warning) and self._clock() - note.shown_at < self._renewal:
            self.writer.drop(key)
        else:
            self._put(known, reason, note)

    def counts(self, group: PodGroup, counts: Mapping[str, int]) -> None:
        """`status` counts of a scheduling.x-k8s.io PodGroup: scheduled, running, succeeded, failed."""
        self._status.set(group, counts)

    def forget(self, subject: PodRef | PodGroup) -> None:
        """Drop what is not written yet. Should the subject wait again, its first message is news."""
        self._status.forget(subject.uid)
        known = self._subjects.get(subject.uid)
        for reason, note in known.notes.items() if known else ():
            note.shown, note.waits = None, False
            self.writer.drop(("event", subject.uid, reason))

    def _subject(self, subject: PodRef | PodGroup) -> _Subject:
        known = self._subjects.get(subject.uid)
        if known is None:
            rank = Rank.GROUP_EVENT if isinstance(subject, PodGroup) else Rank.POD_EVENT
            known = self._subjects[subject.uid] = _Subject(_reference(subject), rank)
            if len(self._subjects) > _SUBJECTS:
                self._subjects.popitem(last=False)  # its counts are lost; a write that waits goes on
        self._subjects.move_to_end(subject.uid)
        return known

    def _put(self, subject: _Subject, reason: str, note: _Note) -> None:
        key = ("event", subject.reference["uid"], reason)
        self.writer.put(key, subject.rank, lambda: self._write(subject, reason, note))

    async def _write(self, subject: _Subject, reason: str, note: _Note) -> None:
        if not note.waits:
            return  # forgotten while a failed write waited for its next try
        said, now = (note.message, note.warning), self._wall()
        first = now if note.first is None else note.first
        body = self._body(subject, reason, said, first=first, now=now, count=note.count + 1)
        path = object_path("/api/v1", subject.reference["namespace"], "events", body["metadata"]["name"])
        status, answer = await self._api.request(
            "PATCH",
            path,
            query=writer_query(force="true"),
            body=body,
            content_type=APPLY_PATCH,
            timeout_seconds=_WRITE_SECONDS,
            write="event",
        )
        if status not in (HTTPStatus.OK, HTTPStatus.CREATED):
            raise _judged(refused("PATCH", path, status, answer))
        note.count, note.first = note.count + 1, first
        note.shown, note.shown_at = said if note.waits else None, self._clock()
        if note.waits and said != (note.message, note.warning):
            self._put(subject, reason, note)  # it went back to an older message while this one was written

    def _body(
        self, subject: _Subject, reason: str, said: tuple[str, bool], *, first: float, now: float, count: int
    ) -> dict[str, Any]:
        reference, (message, warning) = subject.reference, said
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": _name(reference, reason), "namespace": reference["namespace"]},
            "involvedObject": reference,
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message,
            "count": count,
            "firstTimestamp": stamp(first),
            "lastTimestamp": stamp(now),
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._instance,
        }


def _reference(subject: PodRef | PodGroup) -> dict[str, str]:
    """core/v1 ObjectReference, as `kubectl describe` looks events up by it."""
    if isinstance(subject, PodRef):
        kind, version, namespace, name = "Pod", "v1", subject.namespace, subject.name
    else:
        kind, namespace, name = "PodGroup", subject.key.namespace, subject.key.name
        version = _NATIVE_VERSION if subject.key.api is GangApi.NATIVE else API_VERSION
    return {"kind": kind, "apiVersion": version, "namespace": namespace, "name": name, "uid": subject.uid}


def _name(reference: Mapping[str, str], reason: str) -> str:
    digest = hashlib.sha256(f"{reference['uid']}/{reason}".encode()).hexdigest()[:16]
    return f"{reference['name'][:_NAME_BYTES].rstrip('.-')}.{digest}"


def _truncated(message: str) -> str:
    raw = message.encode(errors="replace")
    if len(raw) <= MESSAGE_BYTES:
        return message
    return raw[: MESSAGE_BYTES - 3].decode(errors="ignore") + "…"


def _judged(error: ApiError) -> ApiError:
    """A conflict of an apply that forces is a race inside the server: worth another try."""
    return ApiError(str(error)) if error.status == HTTPStatus.CONFLICT else error
