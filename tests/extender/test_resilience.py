# SPDX-License-Identifier: Apache-2.0
"""What must not take the rest with it: a poisonous pod, a fault of ours, a broken binder, a stale watch."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from app.domain.pod import SINGLE_LABEL
from app.extender import rounds
from app.extender.timing import Timing
from app.inventory.reservations import Phase
from app.planner.plan import plan
from tests.builders import PodBuilder, make_group, make_node, make_pod, preempt_body
from tests.extender.conftest import Make, seats
from tests.extender.diary import Diary
from tests.extender.world import World

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def member(name: str, gang: str = "g") -> PodBuilder:
    return make_pod(name).gpus(1).gang(gang).gated()


def test_requests_that_add_up_beyond_all_bounds_keep_nobody_else_waiting(make: Make) -> None:
    poison = make_pod("poison").gpus(1).gang("a").gated()
    for _ in range(20):
        poison = poison.container({"memory": "8Ei", "cpu": "9999999999"})
    world = make(make_node("n1").gpus(2), make_group("a", 1), poison, make_group("b", 1), member("m", "b"))
    assert seats(world) == {"m": "n1"}
    world.tick(5)
    assert world.service.roster.refusal(next(g.key for g in world.service.inventory.gangs)).text


def test_a_fault_in_planning_one_gang_is_told_and_keeps_nobody_else_waiting(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(view: object, demand: object) -> object:
        if "bad" in str(demand):
            raise ZeroDivisionError("planned")
        return plan(view, demand)  # type: ignore[arg-type]

    monkeypatch.setattr(rounds, "plan", faulty)
    world = make(make_node("n1").gpus(2), make_group("bad", 1), member("x", "bad"))
    world.put(make_group("fine", 1))
    world.put(member("y", "fine"))
    assert seats(world) == {"y": "n1"}
    world.tick(3)
    said = [event["message"] for event in world.objects("Event") if event["involvedObject"]["name"] == "x"]
    assert any("fault of Muster" in text for text in said), said


def test_a_binder_that_raises_still_answers_the_call(make: Make) -> None:
    world = make(make_node("n1").gpus(1), make_group("g", 1), make_pod("m").gpus(1).gang("g"), make_pod("s"))

    async def broken(pod: PodRef, node: NodeName) -> Outcome:
        raise RuntimeError("session is closed")

    world.post = broken  # type: ignore[method-assign]
    world.filter("m", ["n1"])
    assert "session is closed" in (world.error(world.bind("m", "n1")) or "")
    assert "session is closed" in (world.error(world.bind("s", "n1")) or "")
    world.tick(60)
    assert "s" not in seats(world), "the place of an ordinary pod is not kept for ever"
    assert {b.phase for b in world.service.inventory.book} == {Phase.RESERVED}, "the member may try again"


class TestHolds:
    @pytest.fixture
    def world(self, make: Make) -> Iterator[World]:
        """One of two members is held; the other was deleted."""
        pods = [make_pod(name).gpus(1).gang("g") for name in "ab"]
        world = make(make_node("n1").gpus(2), make_group("g", 2), *pods, timing=Timing(seen_seconds=0.0))
        for name in "ab":
            world.filter(name, ["n1"])
        yield world

    def test_a_hold_ends_although_a_watch_is_stale(self, world: World) -> None:
        call = world.bind("a", "n1")
        world.problems = ["pods are stale"]
        world.tick(400)
        assert world.error(call)

    def test_a_moment_without_the_lease_leaves_no_seat_behind(self, world: World) -> None:
        call = world.bind("a", "n1")
        world.active = False
        world.put(make_group("g", 2).timeout(99))  # an event between two ticks makes the barrier look
        world.active = True
        assert world.error(call)
        assert all(b.phase is not Phase.HELD for b in world.service.inventory.book)
        world.tick(120)
        assert not [b for b in world.service.inventory.book if b.phase is Phase.HELD]

    def test_a_deadline_longer_than_the_setting_is_the_groups_own_affair(self, world: World) -> None:
        world.put(make_group("g", 2).timeout(500))
        for name in "ab":
            world.filter(name, ["n1"])
        call = world.bind("a", "n1")
        world.tick(450)
        assert world.error(call) is None
        world.tick(60)
        assert world.error(call)


def test_a_gate_that_could_not_be_released_is_tried_again(make: Make) -> None:
    world = make(make_node("n1").gpus(1))
    diary = Diary(world)
    diary.refuse.add("lift")
    world.put(make_pod("stranger").gated().scheduler("other").gpus(1))
    world.tick(15)
    diary.refuse.clear()
    world.tick(15)
    assert not world.get("Pod", "stranger")["spec"].get("schedulingGates")


class TestOrder:
    def test_a_surplus_member_does_not_pass_a_gang_of_higher_priority(self, make: Make) -> None:
        used = make_pod("used").gpus(1).on("n1")
        low = [make_pod(f"low{n}").gpus(1).gang("low").gated() for n in range(2)]
        high = make_pod("high").gpus(1).gang("high").gated().priority(1000)
        world = make(make_node("n1").gpus(2), used, make_group("low", 1).created(OLD), *low)
        assert len(seats(world)) == 1
        world.put(make_group("high", 1).created(NEW))
        world.put(high)
        world.remove(used)
        assert "high" in seats(world)

    def test_a_gang_of_one_keeps_its_place_in_the_queue_after_a_restart(self, make: Make) -> None:
        single = make_pod("s").gpus(1).label(SINGLE_LABEL, "true").priority(50).attempted("no room")
        gang = [make_group("g", 1).created(NEW), make_pod("m").gpus(1).gang("g").gated()]
        world = make(make_node("n1").gpus(1), single, *gang)
        assert seats(world) == {"s": "n1"}

    def test_lifting_the_gate_of_a_gang_of_one_marks_it(self, make: Make) -> None:
        world = make(make_node("n1").gpus(1), make_pod("s").gpus(1).gated())
        assert world.get("Pod", "s")["metadata"]["labels"][SINGLE_LABEL] == "true"
        assert world.error(world.bind("s", "n1")) == ""

    def test_what_was_kept_for_one_gang_and_is_not_used_wakes_the_others(self, make: Make) -> None:
        """B's vacancy goes back when B is planned; A, refused a moment before, must hear of it."""
        node = make_node("n1").gpus(4)
        filler = make_pod("filler").gpus(2).on("n1")
        objects = [make_pod(f"{g}-bound").gpus(1).gang(g).on("n1") for g in "ab"]
        world = make(
            node, filler, make_group("a", 2).created(OLD), make_group("b", 2).created(NEW), *objects,
            member("a-1", "a").priority(1), member("b-1", "b"),
        )  # fmt: skip
        assert seats(world) == {}
        world.put(make_node("n2").gpus(1))
        assert seats(world) == {"a-1": "n2"}, "the one of higher priority"
        world.tick(300)
        world.remove(filler)
        assert {"a-1", "b-1"} == set(seats(world))


def test_nobody_is_evicted_for_a_node_that_stays_reserved(make: Make) -> None:
    gang = [make_pod(f"m{n}").gpus(2).gang("g").gated() for n in range(2)]
    low = make_pod("low").gpus(4).on("n1")
    preemptor = make_pod("p").gpus(8).priority(9)
    world = make(make_node("n1").gpus(8), low, make_group("g", 2), *gang, preemptor)
    assert len(seats(world)) == 2
    answer = world.filter("p", ["n1"])
    assert answer["FailedNodes"] == {}
    assert "n1" in answer["FailedAndUnresolvableNodes"]
    body = preempt_body(preemptor, {"n1": [low]})
    assert orjson.loads(world.run(world.service.preempt(body))) == {"NodeNameToMetaVictims": {}}


@pytest.mark.parametrize("active", [True, False])
def test_gangs_that_came_and_went_leave_nothing_behind(make: Make, active: bool) -> None:
    """Also where nobody plans or tells: a replica stands by for months."""
    world = make(make_node("n1").gpus(8), make_pod("other").gpus(1))
    world.active = active
    world.tick(1)
    for number in range(5):
        group, pod = make_group(f"g{number}", 0), member(f"m{number}", f"g{number}")  # 0: it is warned of
        for one in (group, pod):
            world.put(one)
        world.tick(number)
        for one in (group, pod):
            world.remove(one)
    world.tick(3)
    roster, narrator = world.service.roster, world.service.narrator
    kept = (roster._unsorted, roster.lacking, roster._standing)
    told = (narrator._changed, narrator._fresh, narrator._warned)
    assert not any(kept + told), (kept, told)
    world.active = True
    world.put(make_group("h", 1))
    world.put(member("h-0", "h"))
    world.tick(1)
    assert seats(world) == {"h-0": "n1"}


def test_who_becomes_active_tells_of_gangs_that_changed_while_it_stood_by(make: Make) -> None:
    world = make(make_node("n1").gpus(1))
    world.active = False
    world.tick(1)
    world.put(make_group("g", 2))
    world.put(member("m"))
    world.active = True
    world.tick(5)
    said = [event["reason"] for event in world.objects("Event") if event["involvedObject"]["name"] == "m"]
    assert said == ["GangIncomplete"]


@pytest.mark.parametrize("again", [True, False])
def test_the_place_of_an_ordinary_pod_in_doubt_is_given_back(make: Make, again: bool) -> None:
    """Whether kube-scheduler has asked about it again meanwhile, or not."""
    world = make(make_node("n1").gpus(1), make_pod("p").gpus(1), make_pod("q").gpus(1))
    world.fail_next = "before"
    assert "did not answer" in (world.error(world.bind("p", "n1")) or "")
    if again:
        assert world.filter("p", ["n1"])["NodeNames"] == ["n1"]
    assert world.filter("q", ["n1"])["NodeNames"] == []
    world.tick(6)
    assert world.filter("q", ["n1"])["NodeNames"] == ["n1"]
