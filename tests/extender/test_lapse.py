# SPDX-License-Identifier: Apache-2.0
"""When a plan lapses that nobody uses, among plans of any age."""

from __future__ import annotations

from app.extender.timing import Timing
from tests.builders import Builder, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World

TIMING = Timing(seen_seconds=0.0, plan_seconds=30.0, gang_seconds=100.0)


def gang(name: str) -> list[Builder]:
    """Of two gated members `name-0` and `name-1`."""
    return [make_group(name, 2), *(make_pod(f"{name}-{n}").gpus(1).gang(name).gated() for n in range(2))]


def add(world: World, name: str) -> None:
    for builder in gang(name):
        world.put(builder)


def planned(world: World) -> set[str]:
    return {name.partition("-")[0] for name in seats(world)}


def lapses(world: World, *, seconds: int) -> dict[str, int]:
    """After how many seconds the gangs that are planned now had lost their seats."""
    names = planned(world)
    lost: dict[str, int] = {}
    for second in range(1, seconds + 1):
        world.tick(1)
        lost.update({name: second for name in names - planned(world) - lost.keys()})
    return lost


def test_every_plan_has_its_own_time(make: Make) -> None:
    world = make(make_node("n1").gpus(8), *gang("a"), timing=TIMING)
    world.tick(7)
    add(world, "b")
    world.tick(7)
    add(world, "c")
    world.filter("c-0", ["n1"])
    assert lapses(world, seconds=40) == {"a": 17, "b": 24, "c": 31}


def test_a_plan_waits_for_those_before_it(make: Make) -> None:
    world = make(make_node("n1").gpus(8), *gang("a"), timing=TIMING)
    world.tick(7)
    add(world, "b")
    world.tick(7)
    world.filter("a-0", ["n1"])
    assert lapses(world, seconds=40) == {"a": 31, "b": 31}


def test_a_plan_that_comes_after_a_quiet_time_lapses_in_its_time(make: Make) -> None:
    world = make(make_node("n1").gpus(8), timing=TIMING)
    world.tick(1000)
    add(world, "a")
    assert lapses(world, seconds=40) == {"a": 31}


def test_half_a_gang_keeps_what_it_needs_until_its_last_member_is_gone(make: Make) -> None:
    bound = make_pod("a-0").gpus(1).gang("a").on("n1")
    world = make(make_node("n1").gpus(8), *gang("a")[:1], bound, *gang("a")[2:], timing=TIMING)
    world.tick(200)
    assert planned(world) == {"a"}
    world.remove(bound)
    world.tick(1)
    assert planned(world) == set()
