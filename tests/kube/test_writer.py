# SPDX-License-Identifier: Apache-2.0
"""Pace, order and coalescing of what people see, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from app.domain.errors import ApiError
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import PodRef
from app.kube.events import Reporter
from app.kube.status import SETTLE_SECONDS
from app.kube.writer import PacedWriter, Rank
from tests.kube.helpers import running
from tests.kube.virtual import virtual


class Recorder:
    """In place of `Api`: takes 10 ms per request and keeps (time, path, body)."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str, Any]] = []
        self.answers: list[int] = []

    async def request(self, _method: str, path: str, *, body: Any, **_: object) -> tuple[int, bytes]:
        await asyncio.sleep(0.01)
        self.sent.append((now(), path, body))
        status = self.answers.pop(0) if self.answers else 200
        if status == 0:
            raise ApiError("no answer")
        return status, b"{}"

    def messages(self) -> list[str]:
        return [body["message"] for _, _, body in self.sent]


def now() -> float:
    return asyncio.get_running_loop().time()


def reporter(api: Recorder, **settings: Any) -> Reporter:
    return Reporter(api, clock=now, wall=now, rng=Random(1), **settings)  # type: ignore[arg-type]


def pod(number: int) -> PodRef:
    return PodRef("ns", f"p{number}", PodUid(f"u{number}"))


def group(name: str = "g", api: GangApi = GangApi.LABEL, **more: Any) -> PodGroup:
    return PodGroup(key=GangKey(api, "ns", name), uid=f"uid-{name}", **more)


class TestPace:
    @virtual
    async def test_never_more_than_20_writes_in_any_second(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            for number in range(300):
                tell.event(pod(number), reason="Waiting", message="busy")
            await asyncio.sleep(20)
        times = [time for time, _, _ in api.sent]
        assert len(times) == 300
        assert all(later - earlier > 0.999 for earlier, later in zip(times, times[20:], strict=False))
        assert times[-1] < 16

    @virtual
    async def test_groups_go_before_pods(self) -> None:
        api = Recorder()
        tell = reporter(api)
        tell.counts(group(), {"scheduled": 1})
        await asyncio.sleep(SETTLE_SECONDS + 0.1)
        for number in range(50):
            tell.event(pod(number), reason="Waiting", message="pod")
        tell.event(group(), reason="Waiting", message="group")
        async with running(tell.run()):
            await asyncio.sleep(1)
        assert [body["kind"] for _, _, body in api.sent[:3]] == ["Event", "PodGroup", "Event"]
        assert api.sent[0][2]["message"] == "group"

    @virtual
    async def test_only_the_latest_message_is_written(self) -> None:
        api = Recorder()
        tell = reporter(api)
        for have in range(5):
            tell.event(group(), reason="Incomplete", message=f"{have} of 5")
        async with running(tell.run()):
            await asyncio.sleep(1)
        assert api.messages() == ["4 of 5"]

    @virtual
    async def test_back_to_the_old_message_while_the_new_one_is_written(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            tell.event(pod(1), reason="R", message="A")
            await asyncio.sleep(1)
            tell.event(pod(1), reason="R", message="B")
            await asyncio.sleep(0.005)  # B is in flight
            tell.event(pod(1), reason="R", message="A")
            await asyncio.sleep(1)
        assert api.messages() == ["A", "B", "A"]
        assert [body["count"] for _, _, body in api.sent] == [1, 2, 3]

    @virtual
    async def test_the_queue_is_bounded_and_what_was_lost_can_be_said_again(self) -> None:
        api = Recorder()
        tell = reporter(api, capacity=10)
        for number in range(15):
            tell.event(pod(number), reason="R", message="m")
        assert (len(tell.writer), tell.writer.dropped) == (10, 5)
        async with running(tell.run()):
            await asyncio.sleep(2)
            tell.event(pod(14), reason="R", message="m")
            await asyncio.sleep(1)
        assert len(api.sent) == 11


class TestRepeating:
    @virtual
    async def test_unchanged_is_renewed_after_the_interval_only(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            for _ in range(13):
                tell.event(pod(1), reason="R", message="same")
                await asyncio.sleep(60)
        assert len(api.sent) == 2
        first, second = (body for _, _, body in api.sent)
        assert (first["count"], second["count"]) == (1, 2)
        assert first["firstTimestamp"] == second["firstTimestamp"] < second["lastTimestamp"]
        assert first["metadata"] == second["metadata"]

    @virtual
    async def test_unchanged_is_news_when_another_reason_was_said_meanwhile(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            for reason in ("Incomplete", "Busy", "Incomplete", "Incomplete"):
                tell.event(pod(1), reason=reason, message=f"it is {reason}")
                await asyncio.sleep(1)
        assert [body["reason"] for _, _, body in api.sent] == ["Incomplete", "Busy", "Incomplete"]

    @virtual
    async def test_forgotten_is_not_written_and_later_news_again(self) -> None:
        api = Recorder()
        tell = reporter(api)
        tell.event(pod(1), reason="R", message="m")
        tell.counts(group(), {"scheduled": 1})
        tell.forget(pod(1))
        tell.forget(group())
        async with running(tell.run()):
            await asyncio.sleep(5)
            assert api.sent == []
            for _ in range(2):
                tell.event(pod(1), reason="R", message="m")
                await asyncio.sleep(1)
                tell.forget(pod(1))
        assert [body["count"] for _, _, body in api.sent] == [1, 2]


class TestTrouble:
    @pytest.mark.parametrize("status", [429, 500, 0, 409])
    @virtual
    async def test_everything_pauses_and_the_write_is_repeated(self, status: int) -> None:
        api = Recorder()
        api.answers = [status]
        tell = reporter(api)
        async with running(tell.run()):
            tell.event(pod(1), reason="R", message="m")
            await asyncio.sleep(0.02)
            tell.event(pod(2), reason="R", message="m")
            await asyncio.sleep(5)
        assert len(api.sent) == 3
        assert api.sent[1][0] - api.sent[0][0] >= 1

    @virtual
    async def test_a_refused_write_is_given_up(self) -> None:
        api = Recorder()
        api.answers = [403]
        tell = reporter(api)
        async with running(tell.run()):
            tell.event(pod(1), reason="R", message="m")
            await asyncio.sleep(60)
        assert len(api.sent) == 1

    @virtual
    async def test_nothing_is_written_when_not_active(self) -> None:
        api = Recorder()
        active = [False]
        tell = reporter(api, may_write=lambda: active[0])
        async with running(tell.run()):
            tell.event(pod(1), reason="R", message="m")
            await asyncio.sleep(1)
            active[0] = True
            await asyncio.sleep(1)
            assert api.sent == []
            tell.event(pod(1), reason="R", message="m")
            await asyncio.sleep(1)
        assert len(api.sent) == 1

    @virtual
    async def test_a_bug_in_one_write_stops_no_other(self) -> None:
        writer = PacedWriter(clock=now, rng=Random(1))
        done: list[str] = []

        def work(name: str) -> Callable[[], Any]:
            async def write() -> None:
                if name == "bad":
                    raise RuntimeError(name)
                done.append(name)

            return write

        async with running(writer.run()):
            for name in ("bad", "good"):
                writer.put(name, Rank.POD_EVENT, work(name))
            await asyncio.sleep(1)
        assert done == ["good"]


class TestStatus:
    @virtual
    async def test_only_changes_of_groups_that_are_ours(self) -> None:
        api = Recorder()
        tell = reporter(api)
        tell.counts(group("native", GangApi.NATIVE), {"scheduled": 1})
        tell.counts(group("owned", status_owner="scheduler-plugins"), {"scheduled": 1})
        tell.counts(group("shown", status=(("scheduled", 1),)), {"scheduled": 1, "failed": 0})
        assert len(tell.writer) == 0
        tell.counts(group(), {"scheduled": 1})
        tell.counts(group(), {"scheduled": 2})
        async with running(tell.run()):
            await asyncio.sleep(5)
            tell.counts(group(status=(("scheduled", 1),)), {"scheduled": 2})  # the watch is behind
            await asyncio.sleep(5)
            tell.counts(group(), {"scheduled": 0})
            await asyncio.sleep(5)
        assert [body["status"] for _, _, body in api.sent] == [{"scheduled": 2}, {"scheduled": 0}]

    @virtual
    async def test_a_gang_that_starts_in_a_moment_is_written_once(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            for scheduled, running_ in ((3, 0), (8, 5), (8, 8)):
                tell.counts(group(), {"scheduled": scheduled, "running": running_})
                await asyncio.sleep(0.9)
            await asyncio.sleep(60)
        assert [body["status"] for _, _, body in api.sent] == [{"scheduled": 8, "running": 8}]
        assert api.sent[0][0] < 5

    @virtual
    async def test_endless_change_is_seen_within_5_seconds_and_its_end_as_well(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            for count in range(1, 31):
                tell.counts(group(), {"running": count})
                await asyncio.sleep(1)
            await asyncio.sleep(5)
        times = [0.0, *(time for time, _, _ in api.sent)]
        assert all(later - earlier < 5 for earlier, later in pairwise(times))
        assert api.sent[-1][2]["status"] == {"running": 30}
        assert len(api.sent) <= 10

    @virtual
    async def test_back_to_the_old_counts_while_the_new_ones_are_written(self) -> None:
        api = Recorder()
        tell = reporter(api)
        async with running(tell.run()):
            tell.counts(group(), {"running": 1})
            await asyncio.sleep(5)
            tell.counts(group(), {"running": 2})
            await asyncio.sleep(SETTLE_SECONDS + 0.005)  # under way
            tell.counts(group(), {"running": 1})
            await asyncio.sleep(5)
        assert [body["status"]["running"] for _, _, body in api.sent] == [1, 2, 1]

    @virtual
    async def test_counts_that_were_not_written_are_tried_again(self) -> None:
        api = Recorder()
        api.answers = [500]
        tell = reporter(api)
        async with running(tell.run()):
            tell.counts(group(), {"running": 1})
            await asyncio.sleep(60)
            tell.counts(group(), {"running": 1})
            await asyncio.sleep(60)
        assert [body["status"] for _, _, body in api.sent] == [{"running": 1}] * 2
