# SPDX-License-Identifier: Apache-2.0
"""GET /explain: the report of a running Muster, and what it says when there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from app.domain.errors import ApiError
from app.explain.report import Outcome, Report, Subject
from app.explain.sight import Sight
from app.extender.insight import explained
from tests.builders import make_pod
from tests.http.door import Door, Reply


def report(reply: Reply) -> Report:
    assert reply.status == 200, reply.body
    assert reply.headers["content-type"] == "application/json"
    return msgspec.json.decode(reply.body, type=Report)


def error(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.json["error"]


class Counting:
    """A reader that takes its time, counts, and fails when told to."""

    def __init__(self, door: Door, *, seconds: float = 0.0) -> None:
        self._cluster = door.world.cluster
        self._seconds = seconds
        self.reads: list[str] = []
        self.most = self._now = 0
        self.failure: ApiError | None = None

    async def read(self, subject: Subject) -> Sight:
        self.reads.append(subject.name)
        self._now += 1
        self.most = max(self.most, self._now)
        await asyncio.sleep(self._seconds)
        self._now -= 1
        if self.failure is not None:
            raise self.failure
        return await self._cluster.read(subject)


def test_a_report_is_an_answer_whatever_its_verdict(door: Door) -> None:
    planned = report(door.get("/explain/default/podgroup/g"))
    assert planned.verdict.code is Outcome.FITS
    assert planned.verdict.sentence == (
        "podgroup default/g fits: Muster has reserved 2 seats for it; it is planned"
    )
    door.world.put(make_pod("large").gpus(5))
    large = report(door.get("/explain/default/pod/large"))
    assert (large.verdict.code, large.verdict.exit) == (Outcome.NEVER_FITS, 1)
    assert large.subject == Subject("pod", "default", "large")


@pytest.mark.parametrize("kind", ["podgroups", "PG", "podgroups.scheduling.x-k8s.io"])
def test_kinds_are_named_as_for_kubectl(door: Door, kind: str) -> None:
    assert report(door.get(f"/explain/default/{kind}/g")).subject.kind == "podgroup"


def test_what_is_not_there_is_404_and_what_cannot_be_asked_about_400(door: Door) -> None:
    status, sentence = error(door.get("/explain/default/pod/gone"))
    assert (status, sentence) == (404, "there is no pod default/gone; check the name and the namespace (-n)")
    status, sentence = error(door.get("/explain/default/node/n1"))
    assert status == 400
    assert sentence.startswith("node cannot be explained; ask about one of pod, podgroup, job,")


def test_one_that_cannot_tell_says_so(door: Door) -> None:
    door.world.problems = ["pods are not listed yet"]
    said = error(door.get("/explain/default/pod/p"))
    assert said == (503, "Muster is not ready: pods are not listed yet")
    door.world.problems = []
    door.world.active = False
    door.world.tick()
    said = error(door.get("/explain/default/pod/p"))
    assert said == (503, "this replica is not active: ask the one that plans")


def test_objects_are_read_once_in_a_while_and_the_report_is_made_anew(door: Door) -> None:
    reader = door.reader = Counting(door)
    assert report(door.get("/explain/default/pod/p")).verdict.code is Outcome.FITS
    door.world.put(make_pod("full").gpus(4).on("n2"))
    door.world.put(make_pod("more").gpus(2).on("n1"))
    assert report(door.get("/explain/default/pod/p")).verdict.code is Outcome.BUSY
    assert reader.reads == ["p"]
    door.world.tick(6)
    door.get("/explain/default/pod/p")
    assert reader.reads == ["p", "p"]


def test_who_asks_at_the_same_time_gets_the_same_and_few_are_read_at_once(door: Door) -> None:
    reader = door.reader = Counting(door, seconds=0.5)
    for name in "abcdefgh":
        door.world.put(make_pod(f"x{name}"))
    paths = [f"/explain/default/pod/x{name}" for name in "abcdefgh" for _ in range(2)]

    async def all_at_once() -> list[Reply]:
        return await asyncio.gather(*(door._call("GET", path, b"", asyncio.Event()) for path in paths))

    replies = door.world.run(all_at_once())
    assert {reply.status for reply in replies} == {200}
    assert (len(reader.reads), reader.most) == (8, 4)


def test_reports_are_made_one_at_a_time(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    now, most = 0, 0

    async def counted(*args: Any, **more: Any) -> Report:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await explained(*args, **more)
        finally:
            now -= 1

    monkeypatch.setattr("app.http.explain.explained", counted)
    paths = [f"/explain/default/pod/{name}" for name in ("p", "gone", "p", "p")]

    async def all_at_once() -> list[Reply]:
        return await asyncio.gather(*(door._call("GET", path, b"", asyncio.Event()) for path in paths))

    assert [reply.status for reply in door.world.run(all_at_once())] == [200, 404, 200, 200]
    assert most == 1


def test_an_api_that_does_not_answer_is_503_and_is_asked_again(door: Door) -> None:
    reader = door.reader = Counting(door)
    reader.failure = ApiError("GET /version: no answer from the Kubernetes API: refused")
    assert error(door.get("/explain/default/pod/p")) == (503, str(reader.failure))
    reader.failure = None
    assert door.get("/explain/default/pod/p").status == 200


def test_a_snapshot_that_does_not_say_what_it_lacks_is_told(door: Door) -> None:
    (limit,) = report(door.get("/explain/default/pod/p")).unseen
    assert limit.startswith("not read (the snapshot has none and does not say whether there are any): ")
    assert "Job.batch" in limit
    assert "PodGroup.scheduling.k8s.io" in limit
    assert "Pod," not in limit
