# SPDX-License-Identifier: Apache-2.0
"""Follows one resource: list, watch, and again from where it makes sense when something breaks.

    LIST (pages) ──ok──▶ WATCH ──ended by the server, or connection lost──▶ WATCH from the last version
      ▲  ▲  404 and optional                │
      │  └──────── ABSENT, ~30 s ◀──┐       │ 410, or any other refusal
      └──────── pause ◀─────────────┴───────┘

Decides when to list again and what is delivered. Never ends by itself, never lets one object or one failing
consumer stop it, and never holds the event loop for more than a slice of objects. Assumes one consumer,
called on the loop, that treats every update as the whole truth about its object.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from random import Random
from typing import Final, Generic, TypeVar

import structlog
from msgspec import Struct

from app.codec.wire import ListMeta, ObjectList
from app.domain.errors import ApiError
from app.kube.backoff import Backoff
from app.kube.client import Api, refused
from app.kube.known import Known, Update
from app.kube.wire import Frames, Object, Unreadable, advice, is_later

W = TypeVar("W", bound=Object)
V = TypeVar("V")
T = TypeVar("T")

PAGE: Final = 500
"""Objects per page of a list."""

SLICE: Final = 100
"""Objects decoded and delivered before other tasks get their turn: about 2 ms."""

_LIST_SECONDS: Final = 60.0
_SURE_ABSENT: Final = 3
_BRIEF_SECONDS: Final = 1.0
_PATIENCE: Final = 5
_log = structlog.get_logger("muster.kube.reflector")


class Resource(Struct, Generic[W, V], frozen=True):
    """What to follow: its fields on the `wire`, and the `value` made of them (raises when it cannot be).

    `kind` names it in sentences; `optional` when the cluster need not serve it.
    """

    kind: str
    path: str
    wire: type[W]
    value: Callable[[W], V]
    optional: bool = False
    query: Mapping[str, str] = {}


class Reflector(Generic[W, V]):
    """See the module. `synced` is set after the first whole list, or when an optional resource is absent.

    `inactivity_seconds` must be longer than the API server's bookmark period (one minute).
    """

    def __init__(
        self,
        api: Api,
        resource: Resource[W, V],
        deliver: Callable[[list[Update[V]]], None],
        *,
        rng: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        inactivity_seconds: float = 100.0,
        watch_seconds: tuple[int, int] = (240, 480),
        absent_seconds: float = 30.0,
    ) -> None:
        self.synced = asyncio.Event()
        self.resource = resource
        self.error = ""
        self.rejected = ""
        """Why the consumer could not take the last update; empty again with the next one that it takes."""
        self.lists = 0
        self.events = 0
        """Lines of watches that were applied, since start."""
        self._api = api
        self._deliver = deliver
        self._rng = rng or Random()
        self._clock = clock
        self._inactivity = inactivity_seconds
        self._watch_seconds = watch_seconds
        self._absent_seconds = absent_seconds
        self._known = Known(resource.value, bad=self._log_bad)
        self._frames = Frames(resource.wire, resource.path)
        self._backoff = Backoff(self._rng)
        self._version: str | None = None  # None: list first
        self._not_found = 0
        self._heard = clock()

    @property
    def skipped(self) -> int:
        """Object states that could not be decoded, since start."""
        return self._known.skipped

    @property
    def absent(self) -> bool:
        """Whether the cluster does not serve this optional resource."""
        return self._not_found > 0 and self._version is None and self.synced.is_set() and not self._known

    def age_seconds(self) -> float:
        """Since the API last said anything about this resource: any byte, bookmark or whole answer."""
        return self._clock() - self._heard

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:  # noqa: ASYNC110
            await asyncio.sleep(await self._round())

    async def _round(self) -> float:
        """One list (if needed) and one watch; the pause before the next, in seconds."""
        try:
            if self._version is None:
                await self._list()
            return 0.0 if await self._watch(self._version or "") else self._backoff.next()
        except ApiError as error:
            return self._failed(error)
        except Exception as error:  # a fault of ours must not blind the service for good
            _log.exception("reflector failed, lists again", kind=self.resource.kind)
            self.error, self._version = repr(error), None
            return self._backoff.next()

    def _failed(self, error: ApiError) -> float:
        if error.status == HTTPStatus.NOT_FOUND and self.resource.optional:
            return self._missing(error)
        if not error.retry or (error.status and self._backoff.failures >= _PATIENCE):
            self._version = None  # 410 and the like; or a server that keeps failing on this version
        pause = self._backoff.next()
        if error.status != HTTPStatus.GONE:  # a lapsed version is everyday life
            self.error = advice(self.resource.kind, error)
            _log.warning(
                "interrupted", kind=self.resource.kind, error=self.error, pause_seconds=round(pause, 2)
            )
        return pause

    def _missing(self, error: ApiError) -> float:
        """404: absent. Objects already known are given up only when it stays so, not for a hiccup."""
        self._not_found += 1
        self._heard, self._version, self.error = self._clock(), None, ""
        if self._known and self._not_found < _SURE_ABSENT:
            self.error = str(error)
            return self._backoff.next()
        self._known.begin_list()
        self._send(list(self._known.end_list()))
        if not self.synced.is_set():
            _log.info("not served by this cluster, looked for again later", kind=self.resource.kind)
        self.synced.set()
        return self._absent_seconds * self._rng.uniform(0.8, 1.2)

    # -- list

    async def _list(self) -> None:
        self._known.begin_list()
        meta = ListMeta()
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                meta = page.metadata
                for part in _slices(page.items or []):
                    self._send([update for obj in part for update in self._known.listed(obj)])
                    await asyncio.sleep(0)
        for gone in _slices(list(self._known.end_list())):
            self._send(gone)
            await asyncio.sleep(0)
        self._version = meta.resource_version or ""
        self._not_found, self.error = 0, ""
        self.lists += 1
        self.synced.set()
        _log.debug("listed", kind=self.resource.kind, objects=len(self._known), version=self._version)

    async def _pages(self) -> AsyncGenerator[ObjectList[W | Unreadable], None]:
        """The pages of a list; the next is on its way while one is worked on."""
        coming: asyncio.Task[ObjectList[W | Unreadable]] | None = asyncio.create_task(self._page(""))
        try:
            while coming is not None:
                page, coming = await coming, None
                if page.metadata.continue_:
                    coming = asyncio.create_task(self._page(page.metadata.continue_))
                yield page
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _page(self, after: str) -> ObjectList[W | Unreadable]:
        query = {**self.resource.query, "limit": str(PAGE), **({"continue": after} if after else {})}
        status, body = await self._api.request(
            "GET", self.resource.path, query=query, timeout_seconds=_LIST_SECONDS
        )
        if status != HTTPStatus.OK:
            raise refused("GET", self.resource.path, status, body)
        self._heard = self._clock()
        return self._frames.page(body)

    # -- watch

    async def _watch(self, version: str) -> bool:
        """One stream to its end; whether it brought anything or at least lasted."""
        query = {
            **self.resource.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(self._rng.randint(*self._watch_seconds)),
        }
        heard, began = False, self._clock()
        stream = self._api.stream(self.resource.path, query=query, inactivity_seconds=self._inactivity)
        async with aclosing(stream) as batches:
            async for lines in batches:
                self._heard, self.error = self._clock(), ""
                for part in _slices(lines):
                    self._apply(part)
                    await asyncio.sleep(0)
                if lines and not heard:
                    heard = True
                    self._backoff.reset()
        return heard or self._clock() - began > _BRIEF_SECONDS

    def _apply(self, lines: list[bytes]) -> None:
        updates: list[Update[V]] = []
        try:
            for line in lines:
                if line:
                    updates += self._event(line)
        finally:
            self._send(updates)  # also what came before an ERROR line

    def _event(self, line: bytes) -> list[Update[V]]:
        event = self._frames.event(line)
        self.events += 1
        version = event.object.metadata.resource_version or ""
        if is_later(version, self._version or ""):
            self._version = version
        if event.type in ("ADDED", "MODIFIED"):
            return self._known.changed(event.object)
        return self._known.deleted(event.object) if event.type == "DELETED" else []

    # -- deliver

    def _send(self, updates: list[Update[V]]) -> None:
        if not updates:
            return
        try:
            self._deliver(updates)
            self.rejected = ""
        except Exception:
            _log.exception("consumer failed, each update again by itself", kind=self.resource.kind)
            self._known.repeat = True  # what it did not take must not be held back as nothing new
            self._send_singly(updates)

    def _send_singly(self, updates: list[Update[V]]) -> None:
        for update in updates:
            try:
                self._deliver([update])
                self.rejected = ""
            except Exception as error:
                self.rejected = repr(error)
                _log.exception("update dropped", kind=self.resource.kind)

    def _log_bad(self, key: str, error: Exception) -> None:
        _log.warning("object skipped: cannot be read", kind=self.resource.kind, object=key, error=str(error))


def _slices(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + SLICE] for start in range(0, len(items), SLICE))
