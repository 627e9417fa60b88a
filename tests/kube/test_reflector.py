# SPDX-License-Identifier: Apache-2.0
"""The reflector when things go wrong: every case ends with the consumer knowing what the server knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.codec.objects import ObjectDecoder
from app.codec.wire import PodObject
from app.domain.changes import Change
from app.domain.pod import Pod
from app.kube import reflector as reflector_module
from app.kube.backoff import Backoff
from app.kube.client import Api
from app.kube.known import Update
from app.kube.reflector import Reflector, Resource
from app.kube.watches import Watches
from tests.kube.fake_api import GROUPS, FakeApi, Fault
from tests.kube.helpers import api_at, pod, running, until

PODS = "/api/v1/namespaces/ns/pods"
NATIVE = "/apis/scheduling.k8s.io/v1beta1/podgroups"


class Consumer:
    """Keeps what it was told; `now` is its picture."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bool]] = []
        self.now: dict[str, Pod] = {}
        self.batches: list[int] = []

    def __call__(self, updates: list[Update[Pod]]) -> None:
        self.batches.append(len(updates))
        for value, gone in updates:
            self.seen.append((value.name, gone))
            if gone:
                assert self.now.pop(value.name).uid == value.uid
            else:
                self.now[value.name] = value

    def matches(self, fake: FakeApi) -> bool:
        stored = fake.items("/api/v1/pods")
        return {item["metadata"]["uid"] for item in stored} == {value.uid for value in self.now.values()}


@asynccontextmanager
async def following(
    fake: FakeApi, consumer: Callable[[list[Update[Pod]]], None], **settings: Any
) -> AsyncIterator[Reflector[PodObject, Pod]]:
    api = api_at(fake.url)
    resource = Resource(
        kind="pods",
        path="/api/v1/pods",
        wire=PodObject,
        value=ObjectDecoder().pod_of,
        optional=settings.pop("optional", False),
    )
    follower = Reflector(api, resource, consumer, rng=Random(7), **settings)
    try:
        async with running(follower.run()):
            yield follower
    finally:
        await api.close()


async def put(fake: FakeApi, name: str, *, silent: bool = False, **meta: Any) -> None:
    item = pod(name)
    item["metadata"].update(meta)
    await fake.store(f"{PODS}/{name}", item, silent=silent)


class TestDisconnected:
    async def test_what_happened_meanwhile_is_delivered_as_a_difference(self, fake: FakeApi) -> None:
        consumer = Consumer()
        for name in ("stays", "goes", "recreated"):
            await put(fake, name)
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            consumer.seen.clear()
            await fake.remove(f"{PODS}/goes", silent=True)
            await fake.remove(f"{PODS}/recreated", silent=True)
            await put(fake, "recreated", silent=True)
            await put(fake, "new", silent=True)
            fake.compact()
            await fake.break_streams()
            await until(lambda: follower.lists == 2 and consumer.matches(fake), "caught up")
        assert sorted(consumer.seen) == [
            ("goes", True),
            ("new", False),
            ("recreated", False),
            ("recreated", True),
        ]

    async def test_a_broken_stream_goes_on_without_a_list(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer) as follower:
            for number in range(3):
                await until(lambda: fake.streams == 1, "watching")
                await fake.break_streams()
                await put(fake, f"p{number}")
                await until(lambda: consumer.matches(fake), "caught up")
            assert follower.lists == 1

    async def test_an_expired_version_is_listed_anew(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.inject(b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}')
            await until(lambda: follower.lists == 2, "listed again")
            assert follower.error == ""

    async def test_a_line_about_nobody_is_answered_with_a_list(self, fake: FakeApi) -> None:
        async with following(fake, Consumer()) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.inject(b'{"type":"MODIFIED","object":{"metadata":{}}}')
            await until(lambda: follower.lists == 2, "listed again")

    async def test_an_http_410_on_the_watch_is_listed_anew(self, fake: FakeApi) -> None:
        fake.faults.append(Fault("GET", "watch=true", 410))
        async with following(fake, Consumer()) as follower:
            await until(lambda: follower.lists == 2 and fake.streams == 1, "listed again")

    async def test_a_lapsed_page_starts_the_list_again(
        self, fake: FakeApi, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reflector_module, "PAGE", 2)
        consumer = Consumer()
        for number in range(5):
            await put(fake, f"p{number}")
        fake.faults.append(Fault("GET", "continue=2", 410))
        async with following(fake, consumer) as follower:
            await until(follower.synced.is_set, "synced")
        assert sorted(consumer.seen) == [(f"p{number}", False) for number in range(5)]

    async def test_silence_is_not_trusted(self, fake: FakeApi) -> None:
        consumer = Consumer()
        with capture_logs() as logs:
            async with following(fake, consumer, inactivity_seconds=0.1) as follower:
                await until(lambda: sum("watch" in r[2] for r in fake.requests) >= 3, "watched again")
                await put(fake, "p")
                await until(lambda: consumer.matches(fake), "still follows")
                assert follower.lists == 1
        assert "no answer" in logs[-1]["error"]

    @pytest.mark.parametrize("action", [500, 429, "drop", "lose"])
    async def test_a_failing_server_is_asked_again(self, fake: FakeApi, action: int | str) -> None:
        consumer = Consumer()
        await put(fake, "p")
        fake.faults.append(Fault("GET", "/pods", action, times=2))
        async with following(fake, consumer) as follower:
            await until(lambda: follower.synced.is_set() and consumer.matches(fake), "synced in the end")


class TestBadObjects:
    async def test_one_bad_object_is_logged_once_and_skipped(self, fake: FakeApi) -> None:
        consumer = Consumer()
        await put(fake, "good")
        bad = pod("bad") | {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1_0"}}}]}}
        await fake.store(f"{PODS}/bad", bad)
        with capture_logs() as logs:
            async with following(fake, consumer) as follower:
                await until(follower.synced.is_set, "synced")
                await fake.store(f"{PODS}/bad", bad)
                await put(fake, "good2")
                await until(lambda: "good2" in consumer.now, "the next object arrives")
                assert follower.skipped == 2
        told = [entry for entry in logs if entry.get("object") == "ns/bad"]
        assert len(told) == 1
        assert "nvidia.com/gpu" in told[0]["error"]

    async def test_an_object_of_the_wrong_shape_spoils_neither_its_page_nor_the_watch(
        self, fake: FakeApi
    ) -> None:
        consumer = Consumer()
        await put(fake, "good")
        await fake.store(f"{PODS}/bad", {"spec": {"containers": 7}})
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.store(f"{PODS}/bad", {"spec": {"containers": 8}})
            await put(fake, "good2")
            await until(lambda: set(consumer.now) == {"good", "good2"}, "both good ones")
            assert (follower.skipped, follower.lists) == (2, 1)

    async def test_an_object_that_turns_bad_keeps_its_last_state_and_can_go(self, fake: FakeApi) -> None:
        consumer = Consumer()
        await put(fake, "p", uid="u1")
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.store(f"{PODS}/p", {"metadata": {"uid": "u1"}, "spec": {"containers": 7}})
            await until(lambda: follower.skipped == 1, "skipped")
            assert "p" in consumer.now
            await fake.remove(f"{PODS}/p")
            await until(lambda: not consumer.now, "gone all the same")

    async def test_an_unreadable_line_is_answered_by_a_list(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await put(fake, "p", silent=True)
            await fake.inject(b'{"type":"ADDED","object":{"meta')
            await until(lambda: follower.lists == 2 and consumer.matches(fake), "listed again")

    async def test_a_late_event_does_not_turn_back_time(self, fake: FakeApi) -> None:
        consumer = Consumer()
        await put(fake, "p", uid="u2", labels={"v": "new"})
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.inject(
                b'{"type":"MODIFIED","object":{"metadata":{"name":"p","namespace":"ns","uid":"u1","resourceVersion":"7"},"spec":{}}}',
                b'{"type":"DELETED","object":{"metadata":{"name":"p","namespace":"ns","uid":"u1","resourceVersion":"9"},"spec":{}}}',
            )
            await put(fake, "q")
            await until(lambda: "q" in consumer.now, "read past them")
            assert follower.skipped == 0
        assert consumer.seen == [("p", False), ("q", False)]

    async def test_a_consumer_that_fails_on_one_gets_the_others(self, fake: FakeApi) -> None:
        got: list[str] = []

        def fussy(updates: list[Update[Pod]]) -> None:
            if any(value.name == "p1" for value, _ in updates):
                raise RuntimeError("p1")
            got.extend(value.name for value, _ in updates)

        for number in range(3):
            await put(fake, f"p{number}")
        async with following(fake, fussy) as follower:
            await until(follower.synced.is_set, "synced")
            await put(fake, "p3")
            await until(lambda: got == ["p0", "p2", "p3"], "all others")

    async def test_what_a_consumer_failed_on_is_told_again_even_if_it_says_nothing_new(
        self, fake: FakeApi
    ) -> None:
        faults = [RuntimeError("alone"), RuntimeError("together")]
        got: list[str] = []

        def fails_at_first(updates: list[Update[Pod]]) -> None:
            if faults:
                raise faults.pop()
            got.extend(value.name for value, _ in updates)

        await put(fake, "p", uid="u")
        async with following(fake, fails_at_first) as follower:
            await until(lambda: fake.streams == 1, "watching")
            assert follower.rejected
            await put(fake, "p", uid="u")
            await until(lambda: got == ["p"], "told again")
            assert not follower.rejected


class TestPace:
    async def test_the_next_page_is_on_its_way_while_one_is_worked_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reflector_module, "SLICE", 1)
        asked: list[str] = []

        class Pages:
            """Answers one page of two objects, and the next never."""

            async def request(self, *_: Any, query: dict[str, str], **__: Any) -> tuple[int, bytes]:
                asked.append(query.get("continue", "first"))
                if len(asked) > 1:
                    await asyncio.Event().wait()
                items = ",".join(f'{{"metadata":{{"name":"p{n}","uid":"u{n}"}}}}' for n in range(2))
                return 200, f'{{"metadata":{{"continue":"second"}},"items":[{items}]}}'.encode()

        told: list[list[str]] = []
        resource = Resource(kind="pods", path="/", wire=PodObject, value=ObjectDecoder().pod_of)
        api: Any = Pages()
        follower = Reflector(api, resource, lambda updates: told.append(list(asked)))
        async with running(follower.run()):
            await until(lambda: len(told) == 2, "the first page is told")
        assert told == [["first"], ["first", "second"]]

    async def test_bookmarks_move_the_version_and_the_age(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer) as follower:
            await until(lambda: fake.streams == 1, "watching")
            await fake.inject(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5000"}}}')
            await until(lambda: follower._version == "5000", "moved")
            assert consumer.seen == []
            assert follower.age_seconds() < 10

    async def test_lines_that_come_together_are_one_bounded_batch(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer):
            await until(lambda: fake.streams == 1, "watching")
            meta = '{"name":"p%d","uid":"u%d","resourceVersion":"%d"}'
            line = '{"type":"ADDED","object":{"metadata":' + meta + ',"spec":{}}}'
            lines = [(line % (n, n, 1000 + n)).encode() for n in range(250)]
            await fake.inject(b"\n".join(lines))
            await until(lambda: len(consumer.now) == 250, "all")
        assert max(consumer.batches) == reflector_module.SLICE

    async def test_a_quiet_end_is_followed_by_a_new_watch(self, fake: FakeApi) -> None:
        consumer = Consumer()
        async with following(fake, consumer, watch_seconds=(1, 1)) as follower:
            await until(lambda: sum("watch" in r[2] for r in fake.requests) >= 2, "watched twice")
            assert follower.lists == 1
            assert follower.error == ""

    def test_backoff_doubles_within_bounds_and_resets(self) -> None:
        backoff = Backoff(Random(3), first_seconds=1.0, most_seconds=8.0)
        for ceiling in (1.0, 2.0, 4.0, 8.0, 8.0):
            assert ceiling / 2 <= backoff.next() <= ceiling
        backoff.reset()
        assert backoff.next() <= 1.0


class TestWatches:
    async def test_four_kinds_and_their_problems(self, fake: FakeApi) -> None:
        clock = [0.0]
        changes: list[Change] = []
        fake.faults.append(Fault("GET", "/api/v1/nodes", 403, times=1_000_000))
        await put(fake, "p")
        await fake.store(
            GROUPS.replace("/podgroups", "/namespaces/ns/podgroups/g"),
            {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "spec": {"minMember": 3}},
        )
        api = api_at(fake.url)
        watches = Watches(api, changes.extend, clock=lambda: clock[0], rng=Random(1))
        assert len(watches.problems()) == 4
        async with running(watches.run()):
            await until(lambda: len(watches.problems()) == 1 and watches.nodes.error, "all but nodes")
            assert watches.problems()[0].startswith(
                "nodes are not synced yet: not allowed to list and watch nodes"
            )
            assert not watches.synced
            assert watches.native_groups.absent
            fake.faults.clear()
            await watches.wait_synced()
            assert watches.problems() == []
            clock[0] = 151.0
            stale = watches.problems()
            assert len(stale) == 4
            assert stale[1] == "pods are stale, nothing heard for 151 s"
        await api.close()
        assert {type(change.value).__name__ for change in changes} == {"Pod", "PodGroup"}

    async def test_a_resource_is_not_given_up_for_one_404(self, fake: FakeApi) -> None:
        consumer = Consumer()
        await put(fake, "p")
        async with following(fake, consumer, optional=True, absent_seconds=0.1) as follower:
            await until(lambda: fake.streams == 1, "watching")
            fake.faults.append(Fault("GET", "/pods", 404, times=2))
            await fake.break_streams()
            await until(lambda: follower.lists == 2, "listed again")
            assert consumer.seen == [("p", False)]
            fake.served.remove("/api/v1/pods")
            await fake.break_streams()
            await until(lambda: follower.absent, "given up")
            assert consumer.now == {}
            fake.served.add("/api/v1/pods")
            await until(lambda: consumer.matches(fake), "back")


async def test_native_groups_of_a_list_are_told_apart(fake: FakeApi, fake_api: Api) -> None:
    """A built-in resource's list leaves apiVersion out of its items."""
    changes: list[Change] = []
    fake.served.add(NATIVE)
    gang = {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    await fake.store(NATIVE.replace("/podgroups", "/namespaces/ns/podgroups/g"), gang)
    watches = Watches(fake_api, changes.extend, rng=Random(1))
    async with running(watches.run()):
        await watches.wait_synced()
    (change,) = changes
    assert (change.value.key.api, change.value.declared) == ("scheduling.k8s.io", 4)  # type: ignore[union-attr]
