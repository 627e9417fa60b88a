# SPDX-License-Identifier: Apache-2.0
"""Rounds: who is planned before whom, what a refused gang costs, and how seats are lost and given up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.domain.gang import GangState
from app.domain.ids import PodUid
from app.domain.plan import Demand, Plan
from app.domain.reasons import Refusal
from app.extender import rounds, tenure
from app.extender.states import state_of
from app.extender.timing import Timing
from app.inventory.view import View
from app.planner.plan import plan
from tests.builders import GPU, Builder, NodeBuilder, PodBuilder, key, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World

OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def member(name: str, gang: str = "g", gpus: int = 1) -> PodBuilder:
    """Ungated: planned once kube-scheduler has asked about its gang."""
    return make_pod(name).gpus(gpus).gang(gang)


def gated(gang: str, gpus: int = 1, count: int = 2, *, priority: int = 0) -> list[PodBuilder]:
    """Members `gang-0`, `gang-1` …, gated: planned as soon as there is room."""
    return [member(f"{gang}-{n}", gang, gpus).gated().priority(priority) for n in range(count)]


def admitted(world: World) -> set[str]:
    """Gangs of which some member has a seat."""
    return {name.partition("-")[0] for name in seats(world)}


def refusal(world: World, gang: str = "g") -> str:
    return world.service.roster.refusal(key(gang)).reason.code


# -- order


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            [make_group("one", 2).created(NEW), *gated("one", priority=5)],
            [make_group("other", 2).created(OLD), *gated("other", priority=4)],
            id="priority goes before age",
        ),
        pytest.param(
            [make_group("one", 2).created(OLD), *(pod.created(NEW) for pod in gated("one"))],
            [make_group("other", 2).created(NEW), *(pod.created(OLD) for pod in gated("other"))],
            id="the age of the PodGroup counts, not that of its pods",
        ),
        pytest.param(
            [make_group("a", 2), *gated("a")], [make_group("b", 2), *gated("b")], id="the name decides last"
        ),
        pytest.param(
            [make_group("one", 2).created(NEW), *gated("one", priority=5)],
            [make_group("other", 2).created(OLD), *gated("other", priority=9)[:1], *gated("other")[1:]],
            id="a gang has the lowest priority of its members",
        ),
    ],
)
@pytest.mark.parametrize("reverse", [False, True], ids=["in order", "in reverse order"])
def test_the_gang_that_comes_first_gets_the_only_room(
    make: Make, one: list[Builder], other: list[Builder], reverse: bool
) -> None:
    objects = [*other, *one] if reverse else [*one, *other]
    world = make(make_node("n1").gpus(2), *objects)
    assert admitted(world) == {one[0].get("metadata.name")}


def test_a_gang_below_its_minimum_goes_before_everybody(make: Make) -> None:
    world = make(
        make_node("n1").gpus(2), make_group("w", 2).created(NEW), make_group("h", 1).created(OLD),
        member("w-0", "w").on("n1"), member("w-1", "w").gated(), *gated("h", count=1, priority=1000),
    )  # fmt: skip
    assert seats(world) == {"w-1": "n1"}
    assert state_of(world.service.inventory.gangs.get(key("w")), world.service.inventory) is GangState.WOUNDED  # type: ignore[arg-type]


def test_after_a_restart_gangs_whose_gates_are_lifted_come_before_gated_ones(make: Make) -> None:
    lifted = [pod.ungated().attempted("no node") for pod in gated("late")]
    world = make(
        make_node("n1").gpus(2), make_group("early", 2).created(OLD), *gated("early"),
        make_group("late", 2).created(NEW), *lifted,
    )  # fmt: skip
    assert admitted(world) == {"late"}


def test_a_smaller_gang_passes_a_larger_one_that_cannot_start(make: Make) -> None:
    world = make(
        make_node("n1").gpus(8), make_group("large", 2).created(OLD), *gated("large", 8),
        make_group("small", 2).created(NEW), *gated("small", 4),
    )  # fmt: skip
    assert admitted(world) == {"small"}
    assert all(pod["spec"].get("schedulingGates") for pod in world.objects("Pod") if "large" in str(pod))


def test_a_later_gang_takes_nothing_that_an_earlier_one_can_use(make: Make) -> None:
    """Both could start alone, and kube-scheduler asks about the later one first."""
    world = make(
        make_node("n1").gpus(8), make_node("n2").gpus(8), make_group("early", 2).created(OLD),
        make_group("late", 1).created(NEW), member("late-0", "late", 8),
    )  # fmt: skip
    for pod in gated("early", 8):
        world.put(pod)
    text = world.filter("late-0", ["n1", "n2"])["FailedAndUnresolvableNodes"]["n1"]
    assert text == "gang default/late waits behind gang default/early"
    assert admitted(world) == {"early"}


def test_two_gangs_racing_for_the_same_nodes_never_hold_half_each(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_node("n2").gpus(8), make_group("a", 2), make_group("b", 2), *(
        member(f"{gang}-{n}", gang, 8) for n in range(2) for gang in "ab"
    ))  # fmt: skip
    answers = {name: world.filter(name, ["n1", "n2"])["NodeNames"] for name in ("a-0", "b-0", "a-1", "b-1")}
    assert answers["a-0"] + answers["a-1"] == ["n1", "n2"]
    assert answers["b-0"] + answers["b-1"] == []
    for name in ("a-0", "a-1"):
        world.bind(name, answers[name][0])
    assert refusal(world, "b") == "Behind"
    world.tick(4)
    assert refusal(world, "b") == "Busy", "what blocks a gang changes while it waits"
    for name in ("a-0", "a-1"):
        world.apply("DELETED", world.get("Pod", name))
    assert admitted(world) == {"b"}


def test_a_shortage_is_not_spread_over_all_gangs(make: Make) -> None:
    groups = [make_group(f"g{n}", 4) for n in range(4)]
    pods = [member(f"g{gang}-{n}", f"g{gang}").gated() for n in range(4) for gang in range(4)]
    world = make(*(make_node(f"n{n}").gpus(4) for n in range(3)), *groups, *pods)
    assert admitted(world) == {"g0", "g1", "g2"}
    assert len(seats(world)) == 12


# -- what it costs


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the gangs that the planner was asked about."""
    asked: list[str] = []

    def wrapped(view: View, demand: Demand) -> Plan | Refusal:
        asked.append(demand.gang.name)
        return plan(view, demand)

    monkeypatch.setattr(rounds, "plan", wrapped)
    return asked


def test_refused_gangs_cost_the_planner_nothing_until_something_they_need_came_free(
    make: Make, planned: list[str]
) -> None:
    running = make_pod("running").gpus(8).on("n1")
    unlike = [(make_group(f"g{n}", 1), gated(f"g{n}", 1, 1)[0].cpu(f"{n + 1}m")) for n in range(20)]
    world = make(make_node("n1").gpus(8), running, *(one for pair in unlike for one in pair))
    assert len(planned) == 20, "each has another template"
    planned.clear()

    world.tick(120)
    for n in range(20):
        world.put(make_pod(f"other-{n}").cpu("1").scheduler("other").on("n1"))
        assert not seats(world)
    world.put(make_node("n1").gpus(8).label("heartbeat", "no"))
    assert len(planned) == 20, "another label may change who is admitted"
    planned.clear()
    world.put(make_node("n1").gpus(8).label("heartbeat", "no"))
    assert planned == []

    world.remove(running)
    assert len(seats(world)) == 8


def test_calls_about_a_gang_that_waits_cost_the_planner_nothing(make: Make, planned: list[str]) -> None:
    world = make(make_node("n1").gpus(1), make_group("g", 2), member("a"), member("b"))
    for _ in range(50):
        assert world.filter("a", ["n1"])["NodeNames"] == []
    assert planned == ["g"]


def test_gangs_that_ask_for_the_same_are_refused_together(make: Make, planned: list[str]) -> None:
    waiting = [one for n in range(100) for one in (make_group(f"g{n}", 2), *gated(f"g{n}"))]
    make(make_node("n1").gpus(1), *waiting)
    assert len(planned) == 1


def test_a_gang_that_lacks_members_is_not_planned_at_all(make: Make, planned: list[str]) -> None:
    world = make(
        make_node("n1").gpus(8), make_group("g", 3), *gated("g"), *gated("none"),
        make_group("held", 2), *gated("held", count=1), member("x", "held").gate("example.com/quota"),
    )  # fmt: skip
    assert planned == []
    assert [refusal(world, gang) for gang in ("g", "none", "held")] == [
        "Incomplete", "NoPodGroup", "ForeignGate",
    ]  # fmt: skip


def test_a_gang_with_a_nominated_member_is_not_refused_with_those_that_see_less(make: Make) -> None:
    running = make_pod("running").gpus(8).on("n1")
    world = make(make_node("n1").gpus(8), running, make_group("first", 1).created(OLD), *gated("first", 8, 1))
    world.put(make_group("own", 1).created(NEW))
    world.put(member("own-0", "own", 8).attempted("busy").nominated("n1"))
    world.remove(running)
    assert seats(world) == {"own-0": "n1"}


def test_a_gang_that_could_not_be_planned_for_a_fault_has_its_turn_in_the_next_round(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(view: View, demand: Demand) -> Plan | Refusal:
        raise ZeroDivisionError

    monkeypatch.setattr(rounds, "plan", faulty)
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g"))
    assert refusal(world) == "Internal"
    monkeypatch.setattr(rounds, "plan", plan)
    world.put(make_group("other", 5))
    assert admitted(world) == {"g"}


# -- members that were never gated


def test_nothing_is_set_aside_for_ungated_pods_that_kube_scheduler_has_not_asked_about(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a"), member("b"), make_pod("p").gpus(2))
    world.tick(60)
    assert seats(world) == {}
    assert world.filter("p", ["n1"])["NodeNames"] == ["n1"]
    assert world.filter("a", ["n1"])["NodeNames"] == ["n1"]
    assert seats(world) == {"a": "n1", "b": "n1"}, "one call is enough for all"
    assert world.filter("p", ["n1"])["NodeNames"] == []


def test_a_recorded_attempt_of_a_former_life_counts_as_a_call(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a").attempted("busy"), member("b"))
    assert seats(world) == {"a": "n1", "b": "n1"}


def test_one_gated_member_is_enough_to_plan_for_all(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a").gated(), member("b"))
    assert seats(world) == {"a": "n1", "b": "n1"}


# -- plans that come to nothing


def test_a_plan_that_nobody_uses_lapses_and_frees_what_it_held(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g"), make_pod("p").gpus(2))
    world.tick(30)
    assert world.filter("p", ["n1"])["NodeNames"] == []
    world.tick(2)
    assert seats(world) == {}
    assert world.filter("p", ["n1"])["NodeNames"] == ["n1"]
    text = world.filter("g-0", ["n1"])["FailedAndUnresolvableNodes"]["n1"]
    assert "waits before its next try" in text and "0 of 2 members came to bind" in text


def test_a_plan_stays_while_its_members_move(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g"))
    for _ in range(4):
        world.tick(20)
        assert world.filter("g-0", ["n1"])["NodeNames"] == ["n1"]


def test_volumes_and_claims_are_given_the_time_of_the_gang(make: Make) -> None:
    slow = [pod.volume_claim() for pod in gated("g")]
    world = make(make_node("n1").gpus(2), make_group("g", 2), *slow)
    world.tick(290)
    assert len(seats(world)) == 2
    world.tick(15)
    assert seats(world) == {}


def pause(world: World, pod: str, node: str) -> int:
    """Seconds until the pod is seated again."""
    for seconds in range(200):
        if world.filter(pod, [node])["NodeNames"]:
            return seconds
        world.tick(1)
    raise AssertionError("never")


def test_a_gang_backs_off_twice_as_long_after_each_failure_in_a_row(make: Make) -> None:
    timing = Timing(seen_seconds=0, plan_seconds=30, backoff_seconds=5, backoff_most_seconds=60)
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a"), member("b"), timing=timing)
    world.filter("a", ["n1"])
    pauses = []
    for _ in range(6):
        while seats(world):
            world.tick(1)
        pauses.append(pause(world, "a", "n1"))
    assert pauses == [5, 10, 20, 40, 60, 60]

    for name in "ab":
        world.filter(name, ["n1"])
        world.bind(name, "n1")
    assert world.node_of("a") == "n1"
    for name in "ab":
        world.apply("DELETED", world.get("Pod", name))
        world.put(member(name).uid(f"again-{name}"))
    world.filter("a", ["n1"])
    while seats(world):
        world.tick(1)
    assert pause(world, "a", "n1") == 5, "a gang that ran starts afresh"


def test_offers_without_a_usable_node_end_in_a_pause(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2"), make_group("g", 2), member("a"), member("b"))
    world.filter("a", ["n1"])
    for _ in range(tenure.MOST_MISSES - 1):
        assert world.filter("b", ["n2"])["NodeNames"] == []
    assert len(seats(world)) == 2
    world.filter("b", ["n2"])
    assert seats(world) == {}
    assert refusal(world) == "Backoff"
    assert pause(world, "a", "n1") == 5


def test_offers_that_miss_are_counted_in_a_row_only(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2"), make_group("g", 2), member("a"), member("b"))
    for _ in range(5):
        world.filter("a", ["n1"])
        for _ in range(tenure.MOST_MISSES - 1):
            world.filter("b", ["n2"])
    assert len(seats(world)) == 2


# -- seats that are taken away


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda world, node: world.put(node.cordoned()), id="the node is cordoned"),
        pytest.param(lambda world, node: world.put(node.taint("down")), id="the node is tainted"),
        pytest.param(lambda world, node: world.put(node.not_ready()), id="the node is not ready"),
        pytest.param(lambda world, node: world.remove(node), id="the node is deleted"),
        pytest.param(lambda world, node: world.put(node.gpus(3)), id="a device fails"),
        pytest.param(
            lambda world, node: world.put(make_pod("foreign").gpus(1).scheduler("other").on("n1")),
            id="another scheduler takes a device",
        ),
    ],
)
@pytest.mark.parametrize(
    "elsewhere", [True, False], ids=["there is room elsewhere", "there is no other room"]
)
def test_a_gang_that_loses_seats_before_it_runs_is_planned_anew_or_waits(
    make: Make, change: Callable[[World, NodeBuilder], None], elsewhere: bool
) -> None:
    node = make_node("n1").gpus(4)
    world = make(node, make_group("g", 2), *gated("g", 2))
    assert seats(world) == {"g-0": "n1", "g-1": "n1"}
    world.put(make_node("n2").gpus(4 if elsewhere else 1))
    assert world.filter("g-0", ["n1", "n2"])["NodeNames"] == ["n1"]
    change(world, node)
    world.tick(1)
    assert seats(world) == ({"g-0": "n2", "g-1": "n2"} if elsewhere else {})
    assert sum(world.service.inventory.columns.reserved(GPU)) == 2 * len(seats(world))
    assert bool(world.filter("g-0", ["n1", "n2"])["NodeNames"]) is elsewhere


def test_seats_beyond_what_the_others_need_are_lost_alone(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2").gpus(1), make_group("g", 2), *gated("g", count=3))
    assert sorted(seats(world).values()) == ["n1", "n1", "n2"]
    kept = {name: node for name, node in seats(world).items() if node == "n1"}
    world.put(make_node("n2").gpus(1).cordoned())
    assert seats(world) == kept


def test_a_member_whose_selector_changes_gives_its_seat_back_first(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2").gpus(2), make_group("g", 2), lag=True)
    for pod in gated("g"):
        world.put(pod)
    world.see(2)
    assert set(seats(world).values()) == {"n1"}, "their gates are still seen"
    for pod in gated("g"):
        world.put(pod.selector({"kubernetes.io/hostname": "n2"}))
    world.see()
    assert set(seats(world).values()) == {"n2"}


def test_a_pod_that_leaves_its_gang_leaves_its_seat(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g"))
    world.put(make_pod("g-0").gpus(1))
    assert seats(world) == {}
    assert refusal(world) == "Incomplete"


# -- more members than the minimum, fewer seats than members


def test_more_members_than_the_minimum_run_if_there_is_room(make: Make) -> None:
    world = make(make_node("n1").gpus(3), make_group("g", 2), *(member(name) for name in "abcd"))
    answers = {name: world.filter(name, ["n1"])["NodeNames"] for name in "abcd"}
    seated = [name for name, nodes in answers.items() if nodes]
    assert len(seated) == 3
    for name in seated:
        world.bind(name, "n1")
    assert [world.node_of(name) for name in seated] == ["n1"] * 3
    left = next(name for name in "abcd" if name not in seated)
    text = world.filter(left, ["n1"])["FailedAndUnresolvableNodes"]["n1"]
    assert "has its minimum and runs; this further member waits" in text


def test_seats_that_are_not_used_yet_are_planned_anew_when_they_stand_in_the_way(make: Make) -> None:
    world = make(
        make_node("n1").gpus(1).zone("a"), make_node("n2").gpus(1), make_group("g", 1), *gated("g", count=1)
    )
    assert seats(world) == {"g-0": "n1"}
    world.put(member("picky").gated().selector({"topology.kubernetes.io/zone": "a"}))
    world.put(make_group("g", 2))
    assert seats(world) == {"g-0": "n2", "picky": "n1"}


def test_a_plan_that_cannot_grow_keeps_the_seats_it_has(make: Make) -> None:
    world = make(make_node("n1").gpus(1), make_group("g", 1), *gated("g"))
    assert len(seats(world)) == 1
    world.put(make_group("g", 2))
    assert len(seats(world)) == 1
    assert world.error(world.bind(next(iter(seats(world))), "n1")) is None, "it is held"


def test_gangs_whose_plans_cannot_grow_do_not_wake_each_other_for_ever(make: Make) -> None:
    nodes = [make_node(f"n-{zone}").gpus(1).zone(zone) for zone in "gh"]
    pods = [pod.selector({"topology.kubernetes.io/zone": zone}) for zone in "gh" for pod in gated(zone)]
    world = make(*nodes, make_group("g", 1), make_group("h", 1), *pods)
    assert set(seats(world).values()) == {"n-g", "n-h"}
    for gang in "gh":
        world.put(make_group(gang, 2))
    world.tick(1)
    columns = world.service.inventory.columns
    before = columns.grown
    world.tick(3)
    assert columns.grown == before, "nothing came free"


# -- the seat of a member that went


@pytest.fixture
def wounded(make: Make) -> World:
    """Two of three run; the third has its seat, then goes. An older gang of higher priority wants the GPU."""
    running = [member(name).on("n1") for name in "ab"]
    world = make(make_node("n1").gpus(3), make_group("g", 3), *running, member("c").gated())
    assert seats(world) == {"c": "n1"}
    world.put(make_group("h", 1).created("2025-01-01T00:00:00Z"))
    world.put(gated("h", count=1, priority=9)[0])
    world.apply("DELETED", world.get("Pod", "c"))
    return world


def test_a_vacant_seat_is_kept_for_the_replacement(wounded: World) -> None:
    assert seats(wounded) == {}
    wounded.tick(20)
    assert seats(wounded) == {}, "the other gang does not get it"
    wounded.put(member("d"))
    assert wounded.filter("d", ["n1"])["NodeNames"] == ["n1"]
    assert wounded.error(wounded.bind("d", "n1")) == ""


def test_a_vacant_seat_is_given_up_when_no_replacement_comes(wounded: World) -> None:
    wounded.tick(32)
    assert seats(wounded) == {"h-0": "n1"}


def test_a_gang_that_does_not_run_keeps_no_vacant_seat(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g"))
    world.apply("DELETED", world.get("Pod", "g-0"))
    assert len(world.service.inventory.book) == 0
    spare = make(make_node("n1").gpus(2), make_group("g", 1), *gated("g"))
    spare.apply("DELETED", spare.get("Pod", "g-0"))
    assert len(spare.service.inventory.book) == 1, "the other is enough"


def test_a_gang_too_few_even_with_its_replacement_is_not_given_a_seat(make: Make) -> None:
    running = [member(name).on("n1") for name in "abc"]
    world = make(make_node("n1").gpus(6), make_group("g", 6), *running, member("d"))
    text = world.filter("d", ["n1"])["FailedAndUnresolvableNodes"]["n1"]
    assert text == "gang default/g has 4 of 6 members"


def test_a_failed_member_is_neither_usage_nor_a_member_and_its_replacement_binds_at_once(make: Make) -> None:
    running = [member(name).on("n1") for name in "abcde"]
    world = make(make_node("n1").gpus(6), make_group("g", 6), *running, member("f").on("n1", phase="Failed"))
    world.put(member("f2"))
    assert world.filter("f2", ["n1"])["NodeNames"] == ["n1"]
    assert world.error(world.bind("f2", "n1")) == ""


# -- a PodGroup that is created again


def test_a_pod_group_created_again_does_not_inherit_the_pause_of_the_former(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a"), member("b"))
    world.filter("a", ["n1"])
    world.tick(32)
    assert refusal(world) == "Backoff"
    world.remove(make_group("g", 2))
    world.put(make_group("g", 2).uid("second"))
    assert world.filter("a", ["n1"])["NodeNames"] == ["n1"]


def test_a_pod_group_that_is_only_edited_keeps_the_pause(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2), member("a"), member("b"))
    world.filter("a", ["n1"])
    world.tick(32)
    world.put(make_group("g", 1))
    assert world.filter("a", ["n1"])["NodeNames"] == []


# -- not ours to decide


def test_a_passive_process_plans_nothing(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2))
    world.active = False
    world.tick()
    for pod in gated("g"):
        world.put(pod)
    world.tick(5)
    assert seats(world) == {}
    assert "not active" in world.filter("g-0", ["n1"])["Error"]
    world.active = True
    world.tick()
    assert len(seats(world)) == 2


def test_an_incomplete_cache_plans_nothing_and_says_so(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", 2))
    world.problems = ["pods are not listed yet"]
    for pod in gated("g"):
        world.put(pod)
    world.tick(5)
    assert seats(world) == {}
    assert world.filter("g-0", ["n1"])["Error"] == "Muster is not ready: pods are not listed yet"
    world.problems = []
    world.tick()
    assert len(seats(world)) == 2


def test_members_of_another_scheduler_count_once_they_are_bound(make: Make) -> None:
    other = member("other").scheduler("default-scheduler")
    world = make(make_node("n1").gpus(2), make_group("g", 2), *gated("g", count=1), other)
    assert refusal(world) == "Incomplete"
    world.put(other.on("n1"))
    assert seats(world) == {"g-0": "n1"}
    assert world.service.inventory.book.get(PodUid("uid-other")) is None


def test_a_heartbeat_costs_the_waiting_gangs_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status update of a node, or a pod that joins another node's usage, makes nothing free: no round."""
    world = make(
        make_node("n1").gpus(1), make_group("g", 2), *(make_pod(n).gpus(1).gang("g").gated() for n in "ab")
    )
    looked: list[str] = []

    def look() -> list[object]:
        looked.append("round")
        return []

    monkeypatch.setattr(world.service.rounds, "_in_order", look)
    world.put(make_node("n1").gpus(1))
    world.put(make_pod("other").scheduler("default-scheduler").on("n1"))
    world.tick(5)
    assert looked == []
    world.put(make_node("n2").gpus(1))
    assert looked, "a new node may be what they wait for"
