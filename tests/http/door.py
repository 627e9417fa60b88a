# SPDX-License-Identifier: Apache-2.0
"""The real HTTP application in front of a world, called in the process: no sockets, virtual time.

An HTTP client of thirty lines: it speaks ASGI, as uvicorn does, and hands the raw reply back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from app.explain.report import Subject
from app.explain.sight import Sight
from app.http.explain import Reader, explanations
from app.http.metrics import Metrics
from app.http.ops import ops, version
from app.http.overview import overview
from app.http.page import page
from app.http.snapshot import snapshot
from app.http.verbs import Verbs
from app.main import _app
from tests.builders import GPU, Builder
from tests.extender.world import World

CHUNK = 65536
NOW = 1_767_229_200
"""2026-01-01T01:00:00Z, an hour after everything was created."""


class Reply(NamedTuple):
    """Status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return orjson.loads(self.body)


class Door:
    """A world and all routes of `muster serve --snapshot` before it."""

    def __init__(self, *objects: Builder) -> None:
        self.world = World(*objects)
        self.failures: list[str] = []
        self.world.loop.set_exception_handler(lambda loop, context: self.failures.append(str(context)))
        service, metrics = self.world.service, Metrics(self.world.service)
        self.reader: Reader = self.world.cluster
        sight = (
            overview(service, replica="here", clock=self._now, wall=self._now),
            page(),
            explanations(service, self, clock=self._now, wall=lambda: NOW),
        )
        rest = _app(snapshot(self.world.cluster), version(), ops(service, metrics), *sight)
        self.app = Verbs(service, metrics, rest=rest)

    async def read(self, subject: Subject) -> Sight:
        """What explanations read, through a `reader` that a test may replace."""
        return await self.reader.read(subject)

    def get(self, path: str, **headers: str) -> Reply:
        """Names of headers with an underscore for each dash."""
        return self.call("GET", path, b"", **headers)

    def post(self, path: str, body: object) -> Reply:
        """Bytes go as they are, anything else as JSON."""
        return self.call("POST", path, encoded(body))

    def call(self, method: str, path: str, body: bytes, **headers: str) -> Reply:
        """One call, answered."""
        return self.world.run(self._call(method, path, body, asyncio.Event(), **headers))

    def start(self, path: str, body: object) -> tuple[asyncio.Task[Reply], asyncio.Event]:
        """A call whose answer may take its time, and what makes the caller hang up."""
        gone = asyncio.Event()
        task = self.world.loop.create_task(self._call("POST", path, encoded(body), gone))
        self.world.idle()
        return task, gone

    async def _call(self, method: str, path: str, body: bytes, gone: asyncio.Event, **headers: str) -> Reply:
        parts = [body[at : at + CHUNK] for at in range(0, len(body), CHUNK)] or [b""]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not parts:
                await gone.wait()
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope(method, path, headers), receive, send)
        head = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
        return Reply(sent[0]["status"], head, b"".join(part.get("body", b"") for part in sent[1:]))

    def _now(self) -> float:
        return self.world.now

    @property
    def reserved(self) -> tuple[int, int]:
        """Seats, and the devices that are set aside for them."""
        inventory = self.world.service.inventory
        return len(inventory.book), int(sum(inventory.columns.reserved(GPU)))

    def close(self) -> None:
        self.world.close()
        assert not self.failures, self.failures

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def encoded(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def names(reply: Reply) -> Sequence[str]:
    """NodeNames of a filter reply."""
    accepted: list[str] = reply.json["NodeNames"]
    return accepted


def scope(method: str, target: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """What uvicorn makes of a request line and of headers (an underscore for each dash)."""
    path, _, query = target.partition("?")
    more = [(name.replace("_", "-").encode(), text.encode()) for name, text in (headers or {}).items()]
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [(b"host", b"muster"), (b"content-type", b"application/json"), *more],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8888),
    }  # fmt: skip
