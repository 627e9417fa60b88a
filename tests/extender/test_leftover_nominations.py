# SPDX-License-Identifier: Apache-2.0
"""A nomination without a seat keeps GPUs from everybody: ours go, whoever of us made them; others' stay."""

from __future__ import annotations

from tests.builders import make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World


def nominated(world: World, name: str) -> str | None:
    node: str | None = world.get("Pod", name)["status"].get("nominatedNodeName")
    return node


def test_one_of_ours_that_shows_up_later_is_cleared_and_kube_schedulers_own_is_not(make: Make) -> None:
    world = make(make_node("n1").gpus(8))
    world.put(make_pod("ours").gpus(1).gang("g").gated().nominated("n1", by="muster"))
    world.put(make_pod("own").gpus(1).nominated("n1", by="kube-scheduler").scheduler("muster"))

    world.tick(2)

    assert nominated(world, "ours") is None, "its gang has no PodGroup, so it has no seat"
    assert nominated(world, "own") == "n1"


def test_a_dropped_seat_takes_the_nomination_of_a_former_life_with_it(make: Make) -> None:
    group = make_group("g", 1)
    world = make(make_node("n1").gpus(8), group)
    world.put(make_pod("p").gpus(1).gang("g").nominated("n1", by="muster").attempted("no room"))
    assert seats(world) == {"p": "n1"}
    assert not next(iter(world.service.inventory.book)).nominated, "this life has not nominated it"

    world.remove(group)

    assert seats(world) == {}
    assert nominated(world, "p") is None


def test_no_seat_is_given_once_the_process_is_ending(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_group("g", 1))
    world.run(world.service.stop())

    world.put(make_pod("p").gpus(1).gang("g").gated())
    world.tick(2)

    assert seats(world) == {}
    assert world.get("Pod", "p")["spec"].get("schedulingGates")
