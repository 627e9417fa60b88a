# SPDX-License-Identifier: Apache-2.0
"""The driver against a scripted extender: whose turn it is, what is tried again, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import orjson

from app.domain.changes import Change
from app.domain.plan import PodRef
from app.simulate.cluster import SnapshotCluster
from app.simulate.driver import LIMIT_SECONDS, QUIET_SECONDS, Clock, Driver
from tests.builders import Builder, make_node, make_pod

NODE = make_node("n1").gpus(8)


class Script:
    """An extender that refuses whom it is told to and binds the others. `asked` is (pod, virtual second)."""

    def __init__(
        self, *objects: Builder, refuse: Callable[[str, float], bool] = lambda name, now: False
    ) -> None:
        self.cluster = SnapshotCluster(builder.build() for builder in objects)
        self.clock = Clock()
        self.refuse = refuse
        self.asked: list[tuple[str, float]] = []
        self.hold: set[str] = set()
        self.on_tick: Callable[[], None] = lambda: None
        self.driver = Driver(self.cluster, self, self.clock)

    def observe(self, changes: Iterable[Change]) -> None:
        """Nothing is kept."""

    def tick(self) -> None:
        self.on_tick()

    async def filter(self, body: bytes) -> bytes:
        args = orjson.loads(body)
        name = args["Pod"]["metadata"]["name"]
        self.asked.append((name, self.clock.now))
        left = [] if self.refuse(name, self.clock.now) else args["NodeNames"]
        failed = {} if left else dict.fromkeys(args["NodeNames"], "not now")
        answer = {"NodeNames": left, "FailedNodes": failed, "FailedAndUnresolvableNodes": {}, "Error": ""}
        return orjson.dumps(answer)

    async def prioritize(self, body: bytes) -> bytes:
        return b"[]"

    async def bind_call(self, body: bytes) -> bytes:
        args = orjson.loads(body)
        if args["PodName"] in self.hold:
            await asyncio.Event().wait()
        ref = PodRef(namespace=args["PodNamespace"], name=args["PodName"], uid=args["PodUID"])
        outcome = await self.cluster.bind(ref, args["Node"])
        return orjson.dumps({"Error": outcome.error})

    def play(self, *, until_quiet: bool = False) -> list[str]:
        """Names of who was bound, in order."""

        async def all_of_it() -> None:
            self.driver.begin()
            await self.driver.run(until_quiet=until_quiet)

        asyncio.run(all_of_it())
        return [bound.pod.name for bound in self.driver.bound]


def test_pods_are_bound_in_the_order_of_their_turns() -> None:
    script = Script(NODE, make_pod("b"), make_pod("a"), make_pod("urgent").priority(1))
    assert script.play() == ["urgent", "a", "b"]


def test_what_is_bound_already_or_another_schedulers_is_not_touched() -> None:
    others = (
        make_pod("bound").on("n1"),
        make_pod("else").scheduler("default-scheduler"),
        make_pod("g").gated(),
    )
    script = Script(NODE, *others)
    assert script.play() == []
    assert script.asked == []


def test_the_place_of_one_counts_before_the_next_has_its_turn() -> None:
    script = Script(NODE, *(make_pod(name).gpus(4) for name in ("a", "b", "c")))
    assert script.play() == ["a", "b"]
    assert script.driver.refusals == {"uid-c": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu"}
    assert script.asked == [("a", 0.0), ("b", 0.0)]


def test_the_place_of_one_that_is_held_is_nobody_elses() -> None:
    script = Script(NODE, make_pod("held").gpus(8), make_pod("later").gpus(8).created("2026-01-02T00:00:00Z"))
    script.hold = {"held"}
    assert script.play() == []
    assert script.asked == [("held", 0.0)]


def test_at_one_instant_each_pod_has_one_turn() -> None:
    script = Script(NODE, make_pod("no"), make_pod("yes"), refuse=lambda name, now: name == "no")
    assert script.play() == ["yes"]
    assert script.asked == [("no", 0.0), ("yes", 0.0)]
    assert script.driver.refusals == {"uid-no": "0/1 nodes are available: 1 not now"}


def test_a_refused_pod_has_its_turn_again_after_a_second_if_something_has_changed() -> None:
    script = Script(NODE, make_pod("no"), make_pod("yes"), refuse=lambda name, now: name == "no" and now < 1)
    assert script.play(until_quiet=True) == ["yes", "no"]
    assert script.asked[2:] == [("no", 1.0)]
    assert script.driver.seconds == 1.0


def test_a_refused_pod_is_left_in_peace_while_nothing_changes() -> None:
    script = Script(NODE, make_pod("no"), refuse=lambda name, now: True)
    assert script.play(until_quiet=True) == []
    assert script.asked == [("no", 0.0)]
    assert QUIET_SECONDS <= script.clock.now < QUIET_SECONDS + 10


def test_a_refusal_is_recorded_on_the_pod() -> None:
    script = Script(NODE, make_pod("no").nominated("n1"), refuse=lambda name, now: True)
    script.play()
    (pod,) = [item for item in script.cluster.as_list()["items"] if item["kind"] == "Pod"]
    assert pod["status"]["conditions"][0]["message"] == "0/1 nodes are available: 1 not now"
    assert "nominatedNodeName" not in pod["status"]


def test_a_gate_that_is_lifted_later_puts_the_pod_in_the_queue() -> None:
    script = Script(NODE, make_pod("p").gated())

    def lift() -> None:
        if script.clock.now >= 3:
            script.on_tick = lambda: None
            script.cluster.apply_events([{"type": "MODIFIED", "object": make_pod("p").build()}])

    script.on_tick = lift
    assert script.play(until_quiet=True) == ["p"]
    assert script.driver.bound[0].seconds == 3.0


def test_time_goes_on_while_a_call_is_held_but_not_for_ever() -> None:
    script = Script(NODE, make_pod("held"))
    script.hold = {"held"}
    assert script.play(until_quiet=True) == []
    assert script.clock.now >= LIMIT_SECONDS
    assert script.driver.gave_up


def test_a_binding_that_fails_gives_the_place_back_and_is_a_refusal() -> None:
    script = Script(NODE, make_pod("a").gpus(8), make_pod("b").gpus(8))
    a = PodRef(namespace="default", name="a", uid=make_pod("a").get("metadata.uid"))
    bind = script.cluster.bind

    async def failing(pod: PodRef, node: str) -> object:
        return type("O", (), {"error": "lost"}) if pod == a else await bind(pod, node)  # type: ignore[arg-type]

    script.cluster.bind = failing  # type: ignore[method-assign,assignment]
    assert script.play() == ["b"]
    assert script.driver.refusals["uid-a"] == "lost"  # type: ignore[index]
