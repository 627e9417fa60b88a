# SPDX-License-Identifier: Apache-2.0
"""The picture for people: states, counts and reasons of gangs, and what is free, exactly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.domain.gang import GangState
from app.domain.overview import ORDER, DeviceLine, GangLine, Overview
from app.extender.headroom import devices
from app.extender.overview import Lookout
from tests.builders import GPU, Builder, inventory_of, make_group, make_node, make_pod
from tests.extender.world import World

START = 1_800_000_000.0
"""Unix seconds at the world's 1000."""


class Seen:
    """A world and somebody who looks at it."""

    def __init__(self, *objects: Builder) -> None:
        self.world = World(*objects)
        self.lookout = Lookout(self.world.service, replica="here")

    def look(self, limit: int = 100) -> Overview:
        return self.lookout.look(now=START + self.world.now - 1000.0, limit=limit)

    def gang(self, name: str) -> GangLine:
        return next(line for line in self.look().gangs if line.name == name)


def members(gang: str, *names: str, gpus: int = 8, priority: int = 0) -> list[Builder]:
    return [make_pod(name).gpus(gpus).gang(gang).gated().priority(priority) for name in names]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """n1 is full, n2 is free; a gang of two waits, and one of three lacks members."""
    made = Seen(
        make_node("n1").gpus(8), make_node("n2").gpus(8),
        make_group("runs", 1), make_pod("r").gpus(8).gang("runs").on("n1"),
        make_group("waits", 2), *members("waits", "a", "b"),
        make_group("forms", 3), *members("forms", "f"),
    )  # fmt: skip
    yield made
    made.world.close()


def test_a_gang_that_waits_says_why_and_since_when(seen: Seen) -> None:
    seen.world.tick(30.0)
    line = seen.gang("waits")
    assert (line.namespace, line.kind, line.api) == ("default", "podgroup", "scheduling.x-k8s.io")
    assert (line.state, line.min, line.ready, line.bound) == ("waiting", 2, 2, 0)
    assert line.created == 1_767_225_600
    assert line.reason == "Busy"
    assert line.text.startswith("gang default/waits has seats for 1 of 2 members: ")
    assert START - 2 <= line.since <= START + 2


def test_states_are_counted_and_shown_in_the_order_of_attention(seen: Seen) -> None:
    picture = seen.look()
    assert picture.states == {"waiting": 1, "forming": 1, "running": 1}
    assert [line.name for line in picture.gangs] == ["waits", "forms", "runs"]
    assert seen.gang("forms").text == "gang default/forms has 1 of 3 members"
    assert (seen.gang("runs").text, seen.gang("runs").since, seen.gang("runs").bound) == ("", 0, 1)
    assert set(ORDER) == set(GangState)


def test_within_a_state_gangs_come_as_they_are_planned() -> None:
    young, old = make_group("young", 1).created("2026-02-01T00:00:00Z"), make_group("old", 1)
    urgent = make_group("urgent", 1).created("2026-03-01T00:00:00Z")
    pods = [*members("young", "y"), *members("old", "o"), *members("urgent", "u", priority=5)]
    seen = Seen(make_node("n1").gpus(4), young, old, urgent, *pods)
    assert [line.name for line in seen.look().gangs] == ["urgent", "old", "young"]
    assert [line.name for line in seen.look(limit=2).gangs] == ["urgent", "old"]
    assert seen.look(limit=2).left_out == 1
    seen.world.close()


def test_a_gang_follows_its_way_to_its_nodes(seen: Seen) -> None:
    world = seen.world
    world.remove(make_pod("r"))
    world.remove(make_group("runs"))
    assert (seen.gang("waits").state, seen.gang("waits").seats, seen.gang("waits").text) == ("planned", 2, "")
    (node,) = world.filter("a", ["n1", "n2"])["NodeNames"]
    call = world.bind("a", node)
    assert (seen.gang("waits").state, seen.gang("waits").held) == ("gathering", 1)
    (node,) = world.filter("b", ["n1", "n2"])["NodeNames"]
    world.bind("b", node)
    assert world.error(call) == ""
    line = seen.gang("waits")
    assert (line.state, line.bound, line.held, line.seats, line.ready) == ("running", 2, 0, 0, 0)


def test_a_gang_whose_plan_lapsed_waits_again(seen: Seen) -> None:
    seen.world.remove(make_pod("r"))
    assert seen.gang("waits").state == "planned"
    seen.world.tick(40.0)  # nobody comes for the seats
    line = seen.gang("waits")
    assert (line.state, line.seats, line.reason) == ("waiting", 0, "Lapsed")


def test_a_priority_that_changes_changes_the_order(seen: Seen) -> None:
    seen.world.put(make_group("later", 2).created("2026-05-01T00:00:00Z"))
    for pod in members("later", "c", "d"):
        seen.world.put(pod)
    assert [line.name for line in seen.look().gangs][:2] == ["waits", "later"]
    for pod in members("later", "c", "d", priority=9):
        seen.world.put(pod)
    assert [(line.name, line.priority) for line in seen.look().gangs][:2] == [("later", 9), ("waits", 0)]


def test_a_look_diagnoses_nothing(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    for pod in members("new", "x", "y"):
        seen.world.put(pod)
    seen.world.put(make_group("new", 2))
    monkeypatch.setattr("app.extender.roster.blocker", None)
    assert seen.gang("new").text == "gang default/new has seats for 1 of 2 members"


def test_a_replica_that_stands_by_gives_no_reasons(seen: Seen) -> None:
    seen.world.active = False
    seen.world.tick()
    picture = seen.look()
    assert not picture.active
    assert picture.states == {"waiting": 1, "forming": 1, "running": 1}
    assert {line.text for line in picture.gangs} == {""}


def test_a_gang_of_one_is_called_as_its_pod() -> None:
    seen = Seen(make_node("n1").gpus(8), make_pod("alone").gpus(16).gated())
    line = seen.gang("alone")
    assert (line.kind, line.api, line.min, line.ready) == ("pod", "pod", 1, 1)
    seen.world.close()


# -- devices


def lines(*builders: Builder) -> dict[str, DeviceLine]:
    return {line.name: line for line in devices(inventory_of(*builders))}


def test_devices_are_counted_and_the_largest_gang_is_exact() -> None:
    line = lines(
        make_node("n1").gpus(8), make_node("n2").gpus(8), make_node("n3").gpus(8), make_node("cpu"),
        make_pod("a").gpus(3).on("n1"), make_pod("b").gpus(1).on("n2"),
        make_pod("done").gpus(8).on("n2", phase="Succeeded"),
    )[GPU]  # fmt: skip
    assert line == DeviceLine(
        name=GPU, nodes=3, capacity=24, allocatable=24, used=4, reserved=0, free=20, closed=0,
        largest_pod=8, whole_nodes=1, fits={1: 20, 2: 2 + 3 + 4, 4: 1 + 1 + 2, 8: 1},
    )  # fmt: skip


@pytest.mark.parametrize(
    "node",
    [
        make_node("n2").gpus(8).cordoned(),
        make_node("n2").gpus(8).not_ready(),
        make_node("n2").gpus(8).taint("node.kubernetes.io/unreachable", effect="NoExecute"),
        make_node("n2").gpus(8).taint("node.cloudprovider.kubernetes.io/uninitialized"),
    ],
)
def test_devices_on_nodes_that_take_no_pods_are_not_free(node: Builder) -> None:
    inventory = inventory_of(make_node("n1").gpus(4), node, make_pod("a").gpus(2).on("n2"))
    (line,) = devices(inventory)
    assert (line.free, line.closed, line.largest_pod, line.whole_nodes) == (4, 6, 4, 1)
    assert line.fits == {1: 4, 2: 2, 4: 1, 8: 0}
    assert len(inventory.nodes.closed) == 1


def test_a_taint_for_some_pods_closes_no_node() -> None:
    tainted = make_node("n1").gpus(8).taint("nvidia.com/gpu", "present")
    mild = make_node("n2").gpus(8).taint("node.kubernetes.io/odd", effect="PreferNoSchedule")
    assert lines(tainted, mild)[GPU].free == 16


def test_what_is_set_aside_is_reserved(seen: Seen) -> None:
    seen.world.remove(make_pod("r"))
    (line,) = seen.look().devices
    assert (line.used, line.reserved, line.free, line.whole_nodes) == (0, 16, 0, 0)


def test_a_nominated_pod_of_another_has_its_devices_reserved() -> None:
    nominated = make_pod("p").gpus(2).priority(5).nominated("n1")
    line = lines(make_node("n1").gpus(8), nominated)[GPU]
    assert (line.used, line.reserved, line.free) == (0, 2, 6)


def test_unhealthy_devices_are_capacity_alone() -> None:
    line = lines(make_node("n1").gpus(8).allocatable({GPU: "6"}))[GPU]
    assert (line.capacity, line.allocatable, line.free, line.whole_nodes) == (8, 6, 6, 1)
    gone = lines(make_node("n1").gpus(8).allocatable({GPU: "0"}))[GPU]
    assert (gone.nodes, gone.capacity, gone.allocatable) == (0, 8, 0)


def test_more_used_than_there_is_leaves_nothing_free() -> None:
    line = lines(make_node("n1").gpus(2), make_node("n2").gpus(2), make_pod("a").gpus(4).on("n1"))[GPU]
    assert (line.used, line.free, line.fits[1], line.whole_nodes) == (4, 2, 2, 1)


def test_each_resource_has_its_line_and_what_is_no_device_has_none() -> None:
    found = lines(make_node("n1").gpus(8).amount("nvidia.com/mig-1g.10gb", "7"), make_node("n2").gpus(4))
    assert list(found) == [GPU, "nvidia.com/mig-1g.10gb"]
    assert found["nvidia.com/mig-1g.10gb"].nodes == 1


def test_sums_follow_nodes_that_change_and_go() -> None:
    inventory = inventory_of(make_node("n1").gpus(8), make_node("n2").gpus(4).cordoned())
    assert (inventory.nodes.count, dict(inventory.nodes.capacity)) == (2, {GPU: 12})
    world = World(make_node("n1").gpus(8), make_node("n2").gpus(4).cordoned())
    nodes = world.service.inventory.nodes
    world.put(make_node("n2").gpus(2))
    assert (nodes.count, nodes.capacity[GPU], nodes.closed) == (2, 10, set())
    world.put(make_node("n1").gpus(8).cordoned())
    world.remove(make_node("n1"))
    assert (nodes.count, nodes.capacity[GPU], nodes.closed) == (1, 2, set())
    world.close()
