# SPDX-License-Identifier: Apache-2.0
"""Gangs of one: gated pods of no PodGroup queue with the gangs, and may preempt where that helps."""

from __future__ import annotations

import pytest

from app.domain.reasons import Reason
from tests.builders import Builder, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.diary import Diary
from tests.extender.world import World

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def single(name: str = "s", gpus: int = 1) -> PodBuilder:
    return make_pod(name).gpus(gpus).gated()


def gates(world: World, name: str) -> bool:
    return bool(world.get("Pod", name)["spec"].get("schedulingGates"))


def test_a_single_waits_at_its_gate_until_there_is_room(make: Make) -> None:
    running = make_pod("running").gpus(1).on("n1")
    world = make(make_node("n1").gpus(1), running, single())
    world.tick(60)
    assert gates(world, "s")
    world.remove(running)
    assert (gates(world, "s"), seats(world)) == (False, {"s": "n1"})
    assert world.filter("s", ["n1"])["NodeNames"] == ["n1"]
    assert world.error(world.bind("s", "n1")) == "", "nobody to wait for"
    assert seats(world) == {}


@pytest.mark.parametrize(
    ("pod", "gang", "first"),
    [
        pytest.param(single(gpus=2).created(OLD), NEW, "s", id="an older single"),
        pytest.param(single(gpus=2).created(NEW), OLD, "g", id="an older gang"),
        pytest.param(single(gpus=2).created(NEW).priority(1), OLD, "s", id="a single of higher priority"),
    ],
)
def test_singles_and_gangs_queue_in_one_order(make: Make, pod: Builder, gang: str, first: str) -> None:
    members = [make_pod(f"g{n}").gpus(1).gang("g").gated() for n in range(2)]
    world = make(make_node("n1").gpus(2), pod, make_group("g", 2).created(gang), *members)
    assert {name[0] for name in seats(world)} == {first}


def test_a_single_that_finds_lower_pods_in_its_place_is_left_to_kube_schedulers_preemption(
    make: Make,
) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2"), make_pod("low").gpus(2).on("n1"))
    diary = Diary(world)
    world.put(single().priority(100))
    assert diary.written == ["lift s"]
    assert seats(world) == {}
    answer = world.filter("s", ["n1", "n2"])
    assert answer["NodeNames"] == []
    assert answer["FailedNodes"] == {"n1": Reason.FULL.sentence}, "where evicting helps"
    assert answer["FailedAndUnresolvableNodes"] == {"n2": Reason.TOO_SMALL.sentence}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([single().priority(5), make_pod("p").gpus(2).priority(5).on("n1")], id="same priority"),
        pytest.param(
            [single(gpus=3).priority(5), make_pod("p").gpus(2).on("n1")], id="too large for the node"
        ),
        pytest.param(
            [single().priority(5).selector({"zone": "b"}), make_pod("p").gpus(2).on("n1")],
            id="the node does not admit it",
        ),
        pytest.param(
            [
                single(gpus=2).priority(5),
                make_pod("p").gpus(1).on("n1"),
                make_pod("q").gpus(1).priority(9).on("n1"),
            ],
            id="lower pods hold too little of it",
        ),
        pytest.param(
            [single().priority(5), make_pod("p").gpus(2).on("n1", phase="Succeeded"), make_node("n1")],
            id="lower pods that have finished",
        ),
    ],
)
def test_a_single_that_preemption_could_not_help_stays_gated(make: Make, objects: list[Builder]) -> None:
    node = [] if any(one.get("kind") == "Node" for one in objects) else [make_node("n1").gpus(2)]
    world = make(*node, *objects)
    world.tick(30)
    assert gates(world, "s")


def test_a_single_that_may_not_preempt_stays_gated(make: Make) -> None:
    pod = single().priority(5).set("spec.preemptionPolicy", "Never")
    world = make(make_node("n1").gpus(2), make_pod("low").gpus(2).on("n1"), pod)
    world.tick(30)
    assert gates(world, "s")


def test_a_single_stays_gated_where_only_a_part_of_a_gang_could_go(make: Make) -> None:
    gang = [make_pod(name).gpus(2).gang("g").on(node) for name, node in (("a", "n1"), ("b", "n2"))]
    nodes = [make_node(name).gpus(2) for name in ("n1", "n2")]
    world = make(*nodes, make_group("g", 2), *gang, single(gpus=1).priority(5))
    world.tick(30)
    assert gates(world, "s"), "the preempt verb would spare them"


def test_a_gang_never_preempts_so_its_gates_stay(make: Make) -> None:
    members = [make_pod(name).gpus(1).gang("g").gated().priority(100) for name in "ab"]
    world = make(make_node("n1").gpus(2), make_pod("low").gpus(2).on("n1"), make_group("g", 2), *members)
    world.tick(30)
    assert gates(world, "a") and gates(world, "b")


def test_a_single_that_could_preempt_takes_free_devices_first(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2").gpus(2), make_pod("low").gpus(2).on("n1"))
    world.put(single().priority(100))
    assert seats(world) == {"s": "n2"}


def test_the_seat_of_a_single_outlives_its_gate_and_holds_off_others(make: Make) -> None:
    world = make(make_node("n1").gpus(1), single(), make_pod("p").gpus(1))
    assert not gates(world, "s"), "the pod names no gang any more"
    answer = world.filter("p", ["n1"])
    assert answer["FailedAndUnresolvableNodes"] == {"n1": Reason.RESERVED.sentence}
    assert world.filter("s", ["n1"])["NodeNames"] == ["n1"]


def test_the_unused_seat_of_a_single_lapses_and_the_pod_is_an_ordinary_one_from_then_on(make: Make) -> None:
    world = make(make_node("n1").gpus(1), single(), make_pod("p").gpus(1))
    world.tick(32)
    assert seats(world) == {}
    for name in ("p", "s"):
        assert world.filter(name, ["n1"])["NodeNames"] == ["n1"]


def test_a_single_with_a_gate_of_others_waits_for_it(make: Make) -> None:
    world = make(make_node("n1").gpus(1), single().gate("example.com/quota"))
    world.tick(30)
    assert len(world.get("Pod", "s")["spec"]["schedulingGates"]) == 2
    world.put(single())
    assert seats(world) == {"s": "n1"}


def test_a_single_of_the_same_name_is_another_one(make: Make) -> None:
    """Bound pods of equal names come and go; the gate of the new one is its own."""
    world = make(make_node("n1").gpus(1), single())
    world.apply("DELETED", world.get("Pod", "s"))
    world.put(single().uid("second"))
    assert seats(world) == {"s": "n1"}
    assert not gates(world, "s")


def test_a_single_that_joins_one_that_may_not_preempt_is_itself_left_to_preemption(make: Make) -> None:
    waits = single("waits").priority(100).set("spec.preemptionPolicy", "Never")
    world = make(make_node("n1").gpus(2), make_pod("low").gpus(2).on("n1"), waits)
    world.put(single("late").priority(100))
    assert (gates(world, "waits"), gates(world, "late")) == (True, False)
