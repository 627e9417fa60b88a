# SPDX-License-Identifier: Apache-2.0
"""GET /snapshot: of the embedded cluster, which also takes POST /snapshot/events, or of the live one.

A live cluster's is always redacted; the embedded one is shown as it was given, unless `redacted` is asked
for. `keep-env` leaves environments, commands and arguments in. Redacted text is sent while it is made.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

import msgspec
import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.codec.kinds import KINDS
from app.codec.objects import stamp
from app.codec.redact import Redactor
from app.codec.snapshot import JsonObject, ListText, SnapshotInfo, Unseen, info_of
from app.domain.errors import ApiError, InputError
from app.http.verbs import JSON
from app.simulate.cluster import SnapshotCluster

Text = AsyncGenerator[bytes, None]

_KeepEnv = Annotated[bool, Query(alias="keep-env")]
_SLICE = 100


def snapshot(cluster: SnapshotCluster) -> APIRouter:
    """Routes of the embedded cluster."""
    router = APIRouter()

    @router.get("/snapshot")
    async def show(redacted: bool = False, keep_env: _KeepEnv = False) -> Response:
        if not redacted:
            return Response(orjson.dumps(cluster.as_list()), media_type=JSON)
        return _Streamed(_redacted(cluster.as_list()["items"], keep_env), lambda: None)

    @router.post("/snapshot/events")
    async def events(request: Request) -> Response:
        try:
            applied = cluster.apply_events(orjson.loads(await request.body()))
        except (InputError, orjson.JSONDecodeError) as error:
            return _error(400, f"events: {error}")
        return Response(orjson.dumps({"applied": applied}), media_type=JSON)

    return router


def live_snapshot(take: Callable[[bool], Text]) -> APIRouter:
    """Route of a live cluster. `take` reads it anew; whether to keep the environment is its argument."""
    router = APIRouter()
    busy = asyncio.Semaphore(1)

    @router.get("/snapshot")
    async def show(keep_env: _KeepEnv = False) -> Response:
        if busy.locked():
            return _error(429, "a snapshot is being taken; one at a time, try again later")
        await busy.acquire()
        text = take(keep_env)
        try:
            first = await anext(text)
        except BaseException as error:
            busy.release()
            if isinstance(error, ApiError):
                return _error(503, str(error))
            raise
        return _Streamed(_chained(first, text), busy.release)

    return router


class _Streamed(StreamingResponse):
    """Text as it comes. Whatever becomes of the caller, `done` is called and nothing goes on behind him."""

    def __init__(self, text: Text, done: Callable[[], None]) -> None:
        super().__init__(text, media_type=JSON)
        self._text = text
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._text):
                await super().__call__(scope, receive, send)
        finally:
            self._done()


async def _chained(first: bytes, rest: Text) -> Text:
    async with aclosing(rest):
        yield first
        async for more in rest:
            yield more


async def _redacted(items: list[JsonObject], keep_environment: bool) -> Text:
    text, redactor, counts = ListText(), Redactor(keep_environment=keep_environment), Counter[str]()
    names = {(kind.group, kind.kind): kind.name for kind in KINDS}
    for start in range(0, len(items), _SLICE):
        kept = []
        for item in items[start : start + _SLICE]:
            name = names.get((str(item.get("apiVersion")).rpartition("/")[0], str(item.get("kind"))))
            if name is not None and (raw := redactor.item(orjson.dumps(item))) is not None:
                counts[name] += 1
                kept.append(raw)
        yield text.add(kept)
        await asyncio.sleep(0)
    yield text.end(_info(items, counts, keep_environment))


def _info(items: list[JsonObject], counts: Counter[str], keep_environment: bool) -> SnapshotInfo:
    """What the file said of itself, brought up to date; of one that said nothing, what is not in it."""
    info = info_of(items)
    if info is None:
        now = stamp(time.time())
        why = "the snapshot that is served has none"
        unseen = tuple(Unseen(kind.name, why) for kind in KINDS if not counts[kind.name])
        info = SnapshotInfo(taken=now, unseen=unseen)
    return msgspec.structs.replace(
        info, redacted=True, environment_kept=keep_environment, counts={**info.counts, **counts}
    )


def _error(status: int, sentence: str) -> Response:
    return Response(orjson.dumps({"error": sentence}), status_code=status, media_type=JSON)
