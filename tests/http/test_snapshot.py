# SPDX-License-Identifier: Apache-2.0
"""GET /snapshot: as it was given, redacted on demand, and of a live cluster one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import orjson

from app.codec.snapshot import SnapshotInfo, Unseen, info_of, items_of
from app.domain.errors import ApiError
from app.http.snapshot import live_snapshot
from app.main import _app
from tests.builders import Builder, make_node, make_pod
from tests.http.door import Door, scope

POD = make_pod("p").set("spec.containers", [{"name": "c", "env": [{"name": "TOKEN", "value": "s3cr3t"}]}])
SECRET = Builder({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "s3cr3t"}})


def test_the_embedded_cluster_is_shown_as_it_was_given_unless_redaction_is_asked_for() -> None:
    with Door(make_node("n1").gpus(8), POD, SECRET) as door:
        assert b"s3cr3t" in door.get("/snapshot").body
        redacted = door.get("/snapshot?redacted=true").body
        kept = door.get("/snapshot?redacted=true&keep-env=true").body
    assert b"s3cr3t" not in redacted
    items = items_of(redacted, source="memory")
    assert [item["kind"] for item in items] == ["Node", "Pod", "SnapshotInfo"]
    assert items_of(kept, source="memory")[1]["spec"]["containers"] == POD.get("spec.containers")
    info, frank = info_of(items), info_of(items_of(kept, source="memory"))
    assert info is not None
    assert frank is not None
    assert (info.redacted, info.environment_kept, frank.environment_kept) == (True, False, True)
    assert info.counts == {"nodes": 1, "pods": 1}
    assert Unseen("jobs.batch", "the snapshot that is served has none") in info.unseen


def test_what_a_snapshot_said_of_itself_is_handed_on() -> None:
    said = SnapshotInfo(taken="t", counts={"pods": 0, "jobs.batch": 0}, unseen=(Unseen("leases", "why"),))
    with Door(make_node("n1"), POD, Builder(orjson.loads(said.item()))) as door:
        items = items_of(door.get("/snapshot?redacted=true").body, source="memory")
    info = info_of(items)
    assert [item["kind"] for item in items] == ["Node", "Pod", "SnapshotInfo"]
    assert info is not None
    assert (info.taken, info.unseen) == ("t", said.unseen)
    assert info.counts == {"nodes": 1, "pods": 1, "jobs.batch": 0}


class Live:
    """The live route over a cluster that is read as the test lets it be."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go = asyncio.Event()
        self.closed = 0
        self.kept: list[bool] = []
        self._error = error
        self.app = _app(live_snapshot(self._take))

    async def _take(self, keep_environment: bool) -> AsyncGenerator[bytes, None]:
        self.kept.append(keep_environment)
        try:
            if self._error is not None:
                raise self._error
            yield b"first "
            await self.go.wait()
            yield b"last"
        finally:
            self.closed += 1

    async def get(self, path: str, gone: asyncio.Event | None = None) -> tuple[int, bytes]:
        sent: list[Any] = []
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await (gone or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope("GET", path), receive, send)
        return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:])


async def started(live: Live, gone: asyncio.Event | None = None) -> asyncio.Task[tuple[int, bytes]]:
    task = asyncio.create_task(live.get("/snapshot", gone))
    while not live.kept:  # noqa: ASYNC110 - until it is being taken
        await asyncio.sleep(0)
    return task


async def test_one_snapshot_of_a_live_cluster_at_a_time() -> None:
    live = Live()
    first = await started(live)
    status, body = await live.get("/snapshot")
    assert (status, orjson.loads(body)) == (
        429,
        {"error": "a snapshot is being taken; one at a time, try again later"},
    )
    live.go.set()
    assert await first == (200, b"first last")
    assert await live.get("/snapshot?keep-env=true") == (200, b"first last")
    assert (live.kept, live.closed) == ([False, True], 2)


async def test_whoever_hangs_up_ends_it_and_makes_way() -> None:
    live, gone = Live(), asyncio.Event()
    first = await started(live, gone)
    gone.set()
    await asyncio.wait_for(first, 10)
    assert live.closed == 1
    live.go.set()
    assert (await live.get("/snapshot"))[0] == 200


async def test_without_an_api_the_answer_is_its_sentence() -> None:
    live = Live(ApiError("no answer from the Kubernetes API"))
    for _ in range(2):
        status, body = await live.get("/snapshot")
        assert (status, orjson.loads(body)) == (503, {"error": "no answer from the Kubernetes API"})
