# SPDX-License-Identifier: Apache-2.0
"""A gang that is passed over for too long gets its nodes: in virtual time, with a stream of small gangs."""

from __future__ import annotations

import pytest

from app.domain.gang import GangState
from app.extender.states import state_of
from app.extender.timing import Timing
from tests.builders import Builder, PodBuilder, key, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World

PATIENCE = 60.0
RUN = 20
"""Seconds that each small gang runs."""


def timing(seconds: float = PATIENCE) -> Timing:
    return Timing(seen_seconds=0.0, starvation_seconds=seconds)


class Stream:
    """Every few seconds a small gang arrives; each runs for RUN seconds once it has its seat."""

    def __init__(self, world: World, *, gpus: int = 4, priority: int = 0, every: int = 5) -> None:
        self.world = world
        self.gpus = gpus
        self.priority = priority
        self.every = every
        self.made = 0
        self.ends: dict[str, float] = {}

    def arrive(self) -> None:
        self.made += 1
        name = f"s{self.made:03d}"
        self.world.put(make_group(name, 1).created("2026-03-01T00:00:00Z"))
        self.world.put(small(f"{name}-0", name, self.gpus).priority(self.priority))

    def second(self) -> None:
        """One second: arrivals, seats that become running pods, ends."""
        if int(self.world.now) % self.every == 0:
            self.arrive()
        self.world.tick(1)
        bind_all(self.world, self.ends, RUN)
        finish(self.world, self.ends)

    def flow(self, seconds: int) -> None:
        for _ in range(seconds):
            self.second()


def small(name: str, gang: str, gpus: int) -> PodBuilder:
    return make_pod(name).gpus(gpus).gang(gang).gated()


def bind_all(world: World, ends: dict[str, float], run: float) -> None:
    """kube-scheduler binds who has a seat; small ones run for a while."""
    calls = [world.bind(name, node) for name, node in sorted(seats(world).items())]
    assert all(world.error(call) == "" for call in calls)
    for pod in world.objects("Pod"):
        name = pod["metadata"]["name"]
        if name.startswith("s") and pod["spec"].get("nodeName") and name not in ends:
            ends[name] = world.now + run


def finish(world: World, ends: dict[str, float]) -> None:
    for name in [name for name, end in ends.items() if end <= world.now]:
        del ends[name]
        world.apply("DELETED", world.get("Pod", name))
        world.remove(make_group(name.partition("-")[0]))


def large(
    gang: str = "large",
    *,
    count: int = 2,
    gpus: int = 8,
    priority: int = 0,
    created: str = "2026-01-01T00:00:00Z",
) -> list[Builder]:
    return [
        make_group(gang, count).created(created),
        *(make_pod(f"{gang}-{n}").gpus(gpus).gang(gang).gated().priority(priority) for n in range(count)),
    ]


def runs(world: World, gang: str = "large") -> bool:
    known = world.service.inventory.gangs.get(key(gang))
    return known is not None and state_of(known, world.service.inventory) is GangState.RUNNING


def why(world: World, gang: str) -> str:
    return world.service.roster.refusal(key(gang)).text


def nodes(count: int = 2) -> list[Builder]:
    return [make_node(f"n{n}").gpus(8) for n in range(count)]


def kept(world: World) -> tuple[str, list[str]]:
    """For whom nodes are kept, and which."""
    fence = world.service.rounds.starvation.fence
    if fence is None:
        return "", []
    return fence.key.name, [str(world.service.inventory.names[row]) for row in fence.rows]


def put(world: World, *objects: Builder) -> None:
    for one in objects:
        world.put(one)


def hold(name: str, node: str, gpus: int) -> PodBuilder:
    """A pod that runs for as long as the test wants, and is nobody's gang."""
    return make_pod(name).gpus(gpus).scheduler("other").on(node)


def pass_over(world: World, name: str) -> None:
    """A gang of one GPU that is behind everybody in the order arrives and gets its seat."""
    put(world, make_group(name, 1).created("2026-03-01T00:00:00Z"), small(f"{name}-0", name, 1))
    assert f"{name}-0" in seats(world)
    bind_all(world, {}, 0)


def nudge(world: World) -> None:
    """Something changes that helps nobody: a round follows."""
    world.put(make_pod("nudge").gpus(1).gang("nobody").gated())
    world.remove(make_pod("nudge"))


def busy(world: World) -> Stream:
    """The stream has filled the cluster before the large gang arrives."""
    stream = Stream(world)
    stream.flow(30)
    return stream


def test_a_large_gang_behind_a_stream_of_small_ones_starves_for_ever_without_a_fence(make: Make) -> None:
    world = make(*nodes(), timing=timing(0))
    stream = busy(world)
    put(world, *large())
    stream.flow(600)
    assert not runs(world)


def test_a_large_gang_behind_a_stream_of_small_ones_runs_once_it_starves(make: Make) -> None:
    world = make(*nodes(), timing=timing())
    stream = busy(world)
    put(world, *large())
    stream.flow(int(PATIENCE) - 5)
    passed_over = stream.made
    assert not runs(world)
    stream.flow(10 + RUN + 5)
    assert runs(world), "whoever ran when it began to starve has ended, and nobody came in between"
    assert stream.made > passed_over


def test_who_is_held_back_is_told_behind_whom_and_goes_on_when_the_gang_runs_or_leaves(make: Make) -> None:
    world = make(*nodes(), timing=timing())
    stream = busy(world)
    put(world, *large())
    stream.flow(int(PATIENCE) + 15)
    assert not runs(world)
    waiting = f"s{stream.made:03d}"
    assert why(world, waiting) == f"gang default/{waiting} waits behind gang default/large"
    assert why(world, "large").startswith("gang default/large has seats for")
    for one in large()[1:]:
        world.remove(one)
    world.remove(large()[0])
    world.tick(1)
    assert f"{waiting}-0" in seats(world)


# -- when it begins and ends


def test_a_gang_that_nobody_passes_over_keeps_nothing_from_anybody(make: Make) -> None:
    world = make(*nodes(), hold("x", "n0", 8), hold("y", "n1", 4), *large(), timing=timing())
    world.tick(10 * PATIENCE)
    assert kept(world) == ("", [])
    pass_over(world, "s1")
    world.tick(PATIENCE - 1)
    pass_over(world, "s2")
    assert kept(world) == ("", []), "its time runs from the first that passed it over"
    world.tick(1)
    put(world, make_group("s3", 1).created("2026-03-01T00:00:00Z"), small("s3-0", "s3", 1))
    assert seats(world) == {}
    assert kept(world) == ("large", ["n0", "n1"])


def test_gangs_before_it_in_the_order_do_not_count_and_are_not_held_back(make: Make) -> None:
    world = make(*nodes(), hold("x", "n0", 8), hold("y", "n1", 2), *large(), timing=timing())
    for n in range(2):
        put(world, make_group(f"p{n}", 1), small(f"p{n}-0", f"p{n}", 1).priority(5))
        bind_all(world, {}, 0)
        world.tick(PATIENCE + 1)
    assert kept(world) == ("", [])
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    put(world, make_group("p9", 1), small("p9-0", "p9", 1).priority(5))
    assert kept(world) == ("large", ["n0", "n1"])
    assert set(seats(world)) == {"p9-0"}


def test_a_gang_that_an_empty_cluster_cannot_hold_keeps_nothing(make: Make) -> None:
    world = make(*nodes(), *large(count=3), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    pass_over(world, "s2")
    assert kept(world) == ("", [])
    world.put(make_node("n2").gpus(8))
    world.tick(1)
    assert kept(world)[0] == "large", "it can, now that there is another node"


def test_a_member_beyond_the_minimum_of_a_gang_that_runs_keeps_nothing(make: Make) -> None:
    bound = make_pod("large-0").gpus(8).gang("large").on("n0")
    world = make(*nodes(), make_group("large", 1), bound, hold("x", "n1", 4), timing=timing())
    world.put(make_pod("large-1").gpus(8).gang("large").gated())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    pass_over(world, "s2")
    assert kept(world) == ("", [])


def test_it_ends_when_the_gang_loses_its_quorum_and_begins_anew(make: Make) -> None:
    world = make(*nodes(), hold("x", "n0", 8), *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    world.put(make_pod("large-9").gpus(8).gang("large").gated())
    assert kept(world) == ("large", ["n0", "n1"]), "one member more is no other gang"
    for name in ("large-9", "large-1"):
        world.apply("DELETED", world.get("Pod", name))
    world.tick(1)
    assert kept(world) == ("", [])
    world.put(make_pod("large-1").uid("again").gpus(8).gang("large").gated())
    pass_over(world, "s2")
    assert kept(world) == ("", [])


def test_another_life_knows_nothing_of_it(make: Make) -> None:
    world = make(*nodes(), hold("x", "n0", 8), *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    put(world, make_group("s2", 1).created("2026-03-01T00:00:00Z"), small("s2-0", "s2", 1))
    assert kept(world)[0] == "large"
    world.active = False
    world.tick(1)
    world.active = True
    world.tick(1)
    assert kept(world) == ("", [])
    assert seats(world) == {"s2-0": "n1"}
    bind_all(world, {}, 0)
    world.tick(PATIENCE + 1)
    put(world, make_group("s3", 1).created("2026-03-01T00:00:00Z"), small("s3-0", "s3", 1))
    assert kept(world)[0] == "large", "it was passed over in this life, too"


# -- which nodes


def test_nodes_with_least_to_come_free_are_kept_and_the_others_stay_open(make: Make) -> None:
    fill = [hold("a", "n0", 6), hold("b", "n1", 1), hold("c", "n2", 2), hold("d", "n3", 5)]
    world = make(*nodes(4), *fill, *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world) == ("large", ["n1", "n2"])
    world.remove(hold("d", "n3", 5))
    put(world, make_group("s2", 1).created("2026-03-01T00:00:00Z"), small("s2-0", "s2", 8))
    assert seats(world) == {"s2-0": "n3"}, "an empty node that is not kept may be used"
    world.remove(hold("a", "n0", 6))
    world.tick(1)
    assert kept(world) == ("large", ["n1", "n2"]), "the choice stands, although another node is emptier now"


@pytest.mark.parametrize(
    "loss", [make_node("n1").gpus(8).cordoned(), make_node("n1").gpus(4)], ids=["cordoned", "smaller"]
)
def test_a_node_that_cannot_be_used_any_more_is_replaced(make: Make, loss: Builder) -> None:
    fill = [hold("a", "n0", 6), hold("b", "n1", 1), hold("c", "n2", 2), hold("d", "n3", 5)]
    world = make(*nodes(4), *fill, *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world) == ("large", ["n1", "n2"])
    world.put(loss)
    nudge(world)
    assert kept(world) == ("large", ["n2", "n3"])


def test_it_takes_seats_elsewhere_when_those_come_free_first(make: Make) -> None:
    world = make(
        *nodes(3), hold("a", "n0", 6), hold("b", "n1", 1), hold("c", "n2", 8), *large(), timing=timing()
    )
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world) == ("large", ["n0", "n1"])
    for pod in (make_pod("s1-0"), hold("a", "n0", 6), hold("c", "n2", 8)):
        world.remove(pod)
    assert set(seats(world)) == {"large-0", "large-1"}
    world.tick(1)
    assert kept(world) == ("", [])


# -- more than one


def test_only_the_first_starving_gang_keeps_nodes_and_the_next_one_follows(make: Make) -> None:
    first, second = large("first"), large("second", created="2026-01-02T00:00:00Z")
    world = make(*nodes(), hold("x", "n0", 8), *first, *second, timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    put(world, make_group("s2", 1).created("2026-03-01T00:00:00Z"), small("s2-0", "s2", 1))
    assert kept(world) == ("first", ["n0", "n1"])
    world.apply("DELETED", world.get("Pod", "s1-0"))
    world.remove(hold("x", "n0", 8))
    assert set(seats(world)) == {"first-0", "first-1"}
    assert kept(world) == ("second", ["n0", "n1"]), "it has waited as long"
    bind_all(world, {}, 0)
    for n in range(2):
        world.apply("DELETED", world.get("Pod", f"first-{n}"))
    assert set(seats(world)) == {"second-0", "second-1"}


def test_a_starving_gang_of_higher_priority_takes_over(make: Make) -> None:
    world = make(*nodes(), hold("x", "n0", 8), *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE / 2)
    put(world, *large("urgent", priority=5))
    pass_over(world, "s2")
    world.tick(PATIENCE / 2)
    put(world, make_group("s3", 1).created("2026-03-01T00:00:00Z"), small("s3-0", "s3", 1))
    assert kept(world)[0] == "large"
    put(world, make_group("mid", 1).created("2026-03-01T00:00:00Z"), small("mid-0", "mid", 1).priority(2))
    assert set(seats(world)) == {"mid-0"}, "it is before the starving gang"
    world.tick(PATIENCE / 2)
    put(world, make_group("mid2", 1).created("2026-03-01T00:00:00Z"), small("mid2-0", "mid2", 1).priority(2))
    assert kept(world)[0] == "urgent"
    assert "mid2-0" not in seats(world)
    assert why(world, "mid2") == "gang default/mid2 waits behind gang default/urgent"


def test_the_next_fence_stands_before_the_round_goes_on(make: Make) -> None:
    first, second = large("first"), large("second", created="2026-01-02T00:00:00Z")
    world = make(*nodes(3), hold("x", "n0", 8), hold("y", "n2", 7), *first, *second, timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    put(world, make_group("s2", 1).created("2026-03-01T00:00:00Z"), small("s2-0", "s2", 4))
    assert kept(world)[0] == "first"
    for pod in (make_pod("s1-0"), hold("x", "n0", 8)):
        world.cluster.apply_events([{"type": "DELETED", "object": pod.build()}])
    world.put(hold("y", "n2", 1))
    assert set(seats(world)) == {"first-0", "first-1"}, "what is left on n2 is kept for the second"
    assert kept(world)[0] == "second"


def test_a_single_that_only_a_fence_holds_back_is_not_sent_to_preempt(make: Make) -> None:
    low = make_pod("low").gpus(1).priority(-10).on("n1")
    world = make(*nodes(), hold("x", "n0", 8), low, *large(), timing=timing())
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    world.put(make_pod("single").gpus(1).gated().created("2026-03-01T00:00:00Z"))
    assert kept(world)[0] == "large"
    assert seats(world) == {}
    assert world.get("Pod", "single")["spec"]["schedulingGates"]


def half(gang: str, created: str, *, minimum: int, node: str) -> list[Builder]:
    """A gang of 4 GPUs each of which one is bound and the others wait."""
    members = [make_pod(f"{gang}-{n}").gpus(4).gang(gang) for n in range(minimum)]
    return [
        make_group(gang, minimum).created(created),
        members[0].on(node),
        *(m.gated() for m in members[1:]),
    ]


@pytest.fixture
def halves(make: Make) -> World:
    """Two half-bound gangs on two full nodes; the first was passed over for too long, and starves."""
    world = make(
        *nodes(), make_node("small").gpus(1), hold("x", "n0", 4), hold("y", "n1", 4),
        *half("one", "2026-01-01T00:00:00Z", minimum=3, node="n0"),
        *half("two", "2026-01-02T00:00:00Z", minimum=2, node="n1"),
        timing=timing(),
    )  # fmt: skip
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world)[0] == "one"
    return world


def test_what_a_half_bound_gang_holds_itself_does_not_come_free_for_it(halves: World) -> None:
    assert kept(halves) == ("one", ["n1"]), "half of n0 is its own"


def test_a_half_bound_gang_is_behind_no_fence(halves: World) -> None:
    halves.remove(hold("y", "n1", 4))
    assert seats(halves) == {"two-1": "n1"}, "only when it has run does n1 come free"
    bind_all(halves, {}, 0)
    assert runs(halves, "two")
    for n in range(2):
        halves.apply("DELETED", halves.get("Pod", f"two-{n}"))
    assert set(seats(halves)) == {"one-1", "one-2"}


def test_a_half_bound_gang_for_which_there_are_no_nodes_does_not_spoil_it_for_its_like(make: Make) -> None:
    """An empty cluster would hold two more members, but not beside the one that is bound."""
    wounded = half("one", "2026-01-01T00:00:00Z", minimum=5, node="n0")
    world = make(*nodes(), make_node("small").gpus(1), hold("x", "n0", 4), hold("y", "n1", 4), *wounded,
                 *large("like", count=4, gpus=4), timing=timing())  # fmt: skip
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world) == ("like", ["n0", "n1"])


def test_nodes_that_came_free_and_did_not_help_are_given_back(make: Make) -> None:
    """The gang asks for all CPUs of a node, of which something that never ends holds one."""
    daemon = make_pod("daemon").cpu("1").scheduler("other").on("n0")
    members = [pod.set("spec.containers", all_cpus(pod)) for pod in large(count=1)[1:]]
    world = make(
        make_node("n0").gpus(8).cpu("4"), make_node("small").gpus(1).cpu("1"), daemon, hold("x", "n0", 8),
        large(count=1)[0], *members, timing=timing(),
    )  # fmt: skip
    pass_over(world, "s1")
    world.tick(PATIENCE + 1)
    nudge(world)
    assert kept(world) == ("large", ["n0"])
    put(world, make_group("s2", 1).created("2026-03-01T00:00:00Z"), small("s2-0", "s2", 2))
    assert seats(world) == {}
    world.put(make_node("n0").gpus(8).cpu("5"))
    world.put(make_node("n0").gpus(8).cpu("4"))
    assert kept(world) == ("large", ["n0"]), "others are still there"
    world.remove(hold("x", "n0", 8))
    assert kept(world) == ("", [])
    assert seats(world) == {"s2-0": "n0"}
    world.tick(PATIENCE - 1)
    nudge(world)
    assert kept(world) == ("", []), "its time has begun anew"
    world.tick(2)
    nudge(world)
    assert kept(world) == ("large", ["n0"])


def all_cpus(pod: Builder) -> object:
    (container,) = pod.build()["spec"]["containers"]
    container["resources"]["requests"]["cpu"] = "4"
    return [container]
