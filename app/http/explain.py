# SPDX-License-Identifier: Apache-2.0
"""GET /explain/{namespace}/{kind}/{name}: why pods are pending, as a running Muster sees it.

Whatever the verdict, it is an answer with HTTP 200; an error is `{"error": sentence}`. Raw objects are read
when somebody asks, few at a time and not again for some seconds, so that a page that refreshes is no load for
the API server. Reports are made beside the event loop that answers kube-scheduler, one at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

import msgspec
from cachetools import TTLCache
from fastapi import APIRouter, Response

from app.domain.errors import ApiError, InputError
from app.explain.report import Subject, asked
from app.explain.sight import Sight
from app.extender.insight import explained
from app.extender.service import Service
from app.http.verbs import JSON

FRESH_SECONDS: Final = 5.0
READS: Final = 4
"""Subjects whose objects are read at a time."""

REMEMBERED: Final = 64


class Reader(Protocol):
    """Reads raw objects near a subject. Raises `ApiError` when nothing can be read at all."""

    async def read(self, subject: Subject) -> Sight:
        """What is there now."""
        ...


class _Looks:
    """Reads through a `Reader`: each subject once in a while, whoever asks meanwhile gets the same."""

    def __init__(self, reader: Reader, clock: Callable[[], float]) -> None:
        self._reader = reader
        self._slots = asyncio.Semaphore(READS)
        self._known: TTLCache[Subject, asyncio.Task[Sight]] = TTLCache(REMEMBERED, FRESH_SECONDS, timer=clock)

    async def at(self, subject: Subject) -> Sight:
        task = self._known.get(subject)
        if task is None:
            task = self._known[subject] = asyncio.create_task(self._read(subject))
        try:
            return await asyncio.shield(task)  # one who hangs up takes it from nobody else
        except ApiError:
            if self._known.get(subject) is task:
                del self._known[subject]
            raise

    async def _read(self, subject: Subject) -> Sight:
        async with self._slots:
            return await self._reader.read(subject)


def explanations(
    service: Service,
    reader: Reader,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> APIRouter:
    """The route."""
    router, looks, turn = APIRouter(), _Looks(reader, clock), asyncio.Lock()

    async def report(namespace: str, kind: str, name: str) -> tuple[HTTPStatus, object]:
        try:
            subject = asked(kind, namespace, name)
        except InputError as error:
            return HTTPStatus.BAD_REQUEST, {"error": str(error)}
        problem = _unable(service)
        if problem:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": problem}
        try:
            sight = await looks.at(subject)
            async with turn:
                return HTTPStatus.OK, await explained(service, sight, subject, now=int(wall()))
        except InputError as error:
            return HTTPStatus.NOT_FOUND, {"error": str(error)}
        except ApiError as error:
            return HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(error)}

    @router.get("/explain/{namespace}/{kind}/{name}")
    async def show(namespace: str, kind: str, name: str) -> Response:
        status, body = await report(namespace, kind, name)
        return Response(
            msgspec.json.encode(body), status, media_type=JSON, headers={"Cache-Control": "no-store"}
        )

    return router


def _unable(service: Service) -> str:
    """Why this process cannot tell; empty when it can. Only who plans knows why it did not."""
    problems = service.unready()
    if problems:
        return f"Muster is not ready: {problems[0]}"
    return "" if service.active else "this replica is not active: ask the one that plans"
