# SPDX-License-Identifier: Apache-2.0
"""What is allocatable, used, reserved and free, and which events change it."""

from __future__ import annotations

import numpy as np
import pytest

from app.domain.ids import NodeName
from app.domain.plan import Plan, Seat
from app.domain.pod import Pod
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase
from tests.builders import (
    GPU,
    Builder,
    PodBuilder,
    gone,
    inventory_of,
    key,
    make_group,
    make_node,
    make_pod,
    pod_of,
    seen,
)

N1, N2 = NodeName("n1"), NodeName("n2")
NODE = make_node("n1").gpus(8)
OTHER = make_node("n2").gpus(8)
POD = make_pod("p").gpus(3)
MEMBER = make_pod("m").gpus(2).gang("train").gated()


def gpus(inventory: Inventory, node: NodeName = N1) -> tuple[int, int, int]:
    """(allocatable, used, reserved)."""
    return inventory.columns.cell(GPU, inventory.columns.row_of[node])


def free(inventory: Inventory, node: NodeName = N1, *, priority: int = 0) -> int:
    view = inventory.view(priority=priority)
    return int(view.free[view.column_of[GPU], inventory.columns.row_of[node]])


def seat(pod: PodBuilder, node: NodeName = N1) -> Seat:
    decoded = pod_of(pod)
    return Seat(uid=decoded.uid, node=node, template=decoded.template)


def reserve(inventory: Inventory, *seats: Seat) -> None:
    inventory.reserve(Plan(gang=key("train"), seats=seats))


def generation(inventory: Inventory, name: str = GPU) -> int:
    return inventory.columns.generations([name])[0]


# -- usage


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        pytest.param(POD, 0, id="a pending pod holds nothing"),
        pytest.param(POD.on("n1"), 3, id="a bound pod does"),
        pytest.param(POD.on("n1", phase="Pending"), 3, id="before it runs"),
        pytest.param(POD.scheduler("default-scheduler").on("n1"), 3, id="whoever placed it"),
        pytest.param(POD.on("n1").deleting(), 3, id="while it terminates"),
        pytest.param(POD.on("n1").phase("Succeeded"), 0, id="succeeded: no more"),
        pytest.param(POD.on("n1").phase("Failed"), 0, id="failed: no more"),
        pytest.param(POD.on("n1").init({GPU: "5"}), 5, id="effective requests count"),
        pytest.param(POD.on("n1").resource_claim(), 3, id="beside a claim"),
        pytest.param(POD.on("n2"), 0, id="on another node: not here"),
    ],
)
def test_usage(pod: PodBuilder, used: int) -> None:
    assert gpus(inventory_of(NODE, OTHER, pod)) == (8, used, 0)


def test_each_resource_is_a_column_of_its_own() -> None:
    mig = "nvidia.com/mig-1g.10gb"
    node = make_node("n1").gpus(2).gpus(7, mig).gpus(4, "amd.com/gpu").cpu("64").memory("10Gi")
    pods = [
        make_pod("a").gpus(3, mig).cpu("1500m").on("n1"),
        make_pod("b").gpus(1, "amd.com/gpu").requests({"memory": "1Gi"}).on("n1"),
    ]
    columns = inventory_of(node, *pods).columns
    assert {name: columns.cell(name, 0)[:2] for name in columns.column_of} == {
        GPU: (2, 0),
        mig: (7, 3),
        "amd.com/gpu": (4, 1),
        "cpu": (64_000, 1500),
        "memory": (10 << 30, 1 << 30),
        "pods": (110, 2),
    }


def test_a_resource_no_node_has_is_counted_and_never_free() -> None:
    inventory = inventory_of(NODE, make_pod("p").gpus(1, "example.com/fpga").on("n1"))
    view = inventory.view()
    assert view.free[view.column_of["example.com/fpga"], 0] == -1
    assert inventory.columns.cell("example.com/none", 0) == (0, 0, 0)
    assert inventory.columns.generations(["example.com/none"]) == (0,)


def test_usage_follows_a_pod_through_its_life() -> None:
    inventory = inventory_of(NODE)
    states = [
        POD,
        POD.on("n1", phase="Pending"),
        POD.on("n1"),
        POD.on("n1").deleting(),
        POD.on("n1").phase("Failed"),
    ]
    used = []
    for state in states:
        inventory.apply([seen(state)])
        used.append(gpus(inventory)[1])
    inventory.apply([gone(states[-1])])
    assert [*used, gpus(inventory)[1]] == [0, 3, 3, 3, 0, 0]
    assert not inventory.pods


def test_a_resized_pod_counts_with_its_new_size() -> None:
    inventory = inventory_of(NODE, POD.on("n1"))
    inventory.apply([seen(POD.gpus(5).on("n1"))])
    assert gpus(inventory) == (8, 5, 0)


def test_a_replacement_of_the_same_name_is_counted_beside_the_old_pod() -> None:
    inventory = inventory_of(NODE, POD.on("n1").deleting(), POD.uid("again").on("n1"))
    assert gpus(inventory)[1] == 6
    inventory.apply([gone(POD.on("n1"))])
    assert gpus(inventory)[1] == 3


# -- nodes


def test_pods_may_be_seen_before_their_node() -> None:
    inventory = inventory_of(POD.on("n1"))
    assert gpus(inventory) == (0, 3, 0)
    inventory.apply([seen(NODE)])
    assert gpus(inventory) == (8, 3, 0)


def test_usage_survives_a_node_that_goes_and_comes_back() -> None:
    inventory = inventory_of(NODE, POD.on("n1"))
    inventory.apply([gone(NODE)])
    assert gpus(inventory) == (0, 3, 0)
    assert not inventory.admitting(pod_of(POD).template).any()
    inventory.apply([seen(NODE.uid("reborn"))])
    assert gpus(inventory) == (8, 3, 0)
    assert inventory.admitting(pod_of(POD).template).tolist() == [True]


def test_the_late_news_that_an_old_node_is_gone_does_not_touch_the_new_one() -> None:
    inventory = inventory_of(NODE, NODE.uid("reborn"))
    inventory.apply([gone(NODE)])
    assert gpus(inventory) == (8, 0, 0)
    assert inventory.nodes.get(0) is not None


def test_the_end_of_a_node_nobody_knew() -> None:
    inventory = Inventory()
    inventory.apply([gone(NODE)])
    assert gpus(inventory) == (0, 0, 0)


def test_free_turns_negative_when_devices_fail_under_running_pods() -> None:
    inventory = inventory_of(NODE, POD.on("n1"))
    inventory.apply([seen(NODE.allocatable({GPU: "1"}))])
    assert free(inventory) == -2


def test_capacity_without_allocatable_gives_nothing() -> None:
    inventory = inventory_of(NODE.allocatable({GPU: "0"}), OTHER)
    assert (free(inventory), free(inventory, N2)) == (0, 8)


def test_a_resource_that_a_node_stops_naming_is_gone() -> None:
    inventory = inventory_of(NODE)
    inventory.apply([seen(make_node("n1"))])
    assert gpus(inventory) == (0, 0, 0)


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param(OTHER.cordoned(), [True, False], id="cordoned"),
        pytest.param(OTHER.not_ready(), [True, False], id="not ready"),
        pytest.param(OTHER.taint("gpu"), [True, False], id="tainted"),
        pytest.param(OTHER.zone("b"), [True, False], id="moved to another zone"),
        pytest.param(OTHER.zone("a").gpus(1), [True, True], id="smaller"),
    ],
)
def test_which_nodes_admit_a_pod_follows_the_nodes(node: Builder, want: list[bool]) -> None:
    inventory = inventory_of(NODE.zone("a"), OTHER.zone("a"))
    template = pod_of(POD.in_zone("a")).template
    assert inventory.admitting(template).tolist() == [True, True]
    inventory.apply([seen(node)])
    assert inventory.admitting(template).tolist() == want
    inventory.apply([seen(OTHER.zone("a"))])
    assert inventory.admitting(template).tolist() == [True, True]


def test_many_nodes_and_resources_outgrow_the_first_tables() -> None:
    names = [f"n{i}" for i in range(200)]
    inventory = inventory_of(*(make_node(n).gpus(i).gpus(i, f"x.com/r{i % 20}") for i, n in enumerate(names)))
    template = pod_of(POD).template
    assert inventory.admitting(template).sum() == 200
    for i, name in enumerate(names):
        assert gpus(inventory, NodeName(name)) == (i, 0, 0)
    assert inventory.fits(template, inventory.view().free, range(200)).tolist() == [
        i >= 3 for i in range(200)
    ]


def test_resources_that_pods_alone_name_outgrow_the_first_tables() -> None:
    inventory = inventory_of(NODE, POD)
    for index in range(20):
        inventory.apply([seen(make_pod(f"odd-{index}").gpus(2, f"example.com/odd-{index}").on("n1"))])
    for index in range(20, 60):
        odd = pod_of(make_pod(f"odd-{index}").gpus(3, f"example.com/odd-{index}"))
        inventory.hold(Seat(odd.uid, N1, odd.template))
    columns = inventory.columns
    assert [columns.cell(f"example.com/odd-{index}", 0) for index in range(20)] == [(0, 2, 0)] * 20
    assert [columns.cell(f"example.com/odd-{index}", 0) for index in range(20, 60)] == [(0, 0, 3)] * 40
    assert inventory.columns.cell(GPU, 0) == (8, 0, 0)


# -- seats


def test_a_plan_is_set_aside_and_given_back() -> None:
    inventory = inventory_of(NODE, OTHER, MEMBER, MEMBER.named("m2"))
    reserve(inventory, seat(MEMBER), seat(MEMBER.named("m2"), N2))
    assert (gpus(inventory), gpus(inventory, N2)) == ((8, 0, 2), (8, 0, 2))
    assert free(inventory) == 6
    assert [booking.node for booking in inventory.book.of(key("train"))] == [N1, N2]
    assert inventory.book.gangs() == [key("train")]
    assert inventory.release(pod_of(MEMBER).uid) is not None
    assert inventory.release(pod_of(MEMBER).uid) is None
    assert (gpus(inventory), len(inventory.book), inventory.book.rows()) == ((8, 0, 0), 1, [1])


def test_a_seat_turns_into_usage_in_one_step() -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    before = generation(inventory)
    inventory.apply([seen(MEMBER.on("n1"))])
    assert gpus(inventory) == (8, 2, 0)
    assert len(inventory.book) == 0
    assert generation(inventory) == before, "nothing has become free"


def test_a_member_bound_elsewhere_frees_its_seat() -> None:
    inventory = inventory_of(NODE, OTHER, MEMBER)
    reserve(inventory, seat(MEMBER))
    before = generation(inventory)
    inventory.apply([seen(MEMBER.on("n2"))])
    assert (gpus(inventory), gpus(inventory, N2)) == ((8, 0, 0), (8, 2, 0))
    assert generation(inventory) > before


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(seen(MEMBER.deleting()), id="being deleted"),
        pytest.param(gone(MEMBER), id="gone"),
        pytest.param(seen(MEMBER.phase("Failed")), id="failed"),
        pytest.param(seen(MEMBER.on("n1").phase("Succeeded")), id="done before its binding was seen"),
    ],
)
def test_a_pod_that_ends_gives_its_seat_back(end: object) -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    before = generation(inventory)
    inventory.apply([end])  # type: ignore[list-item]
    assert (gpus(inventory), len(inventory.book)) == ((8, 0, 0), 0)
    assert generation(inventory) > before


def test_what_says_nothing_of_the_place_leaves_the_seat_alone() -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    inventory.apply([seen(MEMBER.attempted("0/1 nodes")), seen(MEMBER.ungated()), gone(MEMBER.uid("older"))])
    assert gpus(inventory) == (8, 0, 2)


def test_a_second_seat_for_the_same_pod_replaces_the_first() -> None:
    inventory = inventory_of(NODE, OTHER, MEMBER)
    reserve(inventory, seat(MEMBER))
    reserve(inventory, seat(MEMBER, N2))
    assert (gpus(inventory), gpus(inventory, N2), len(inventory.book)) == ((8, 0, 0), (8, 0, 2), 1)


def test_a_seat_moves_with_all_that_is_known_of_it() -> None:
    inventory = inventory_of(NODE, OTHER, MEMBER)
    reserve(inventory, seat(MEMBER))
    booking = inventory.book.get(pod_of(MEMBER).uid)
    assert booking is not None
    booking.phase, booking.nominated = Phase.ANSWERED, True
    moved = inventory.move(booking.uid, N2)
    assert (moved.node, moved.plan, moved.gang, moved.phase, moved.nominated) == (
        N2, booking.plan, key("train"), Phase.ANSWERED, True,
    )  # fmt: skip
    assert (gpus(inventory), gpus(inventory, N2)) == ((8, 0, 0), (8, 0, 2))


def test_plans_are_numbered_and_can_be_extended() -> None:
    inventory = inventory_of(NODE, MEMBER, MEMBER.named("m2"), MEMBER.named("m3"))
    first = inventory.reserve(Plan(gang=key("train"), seats=(seat(MEMBER),)))
    more = inventory.reserve(Plan(gang=key("train"), seats=(seat(MEMBER.named("m2")),)), extend=first[0].plan)
    other = inventory.reserve(Plan(gang=key("other"), seats=(seat(MEMBER.named("m3")),)))
    assert first[0].plan == more[0].plan < other[0].plan
    assert [booking.uid for booking in inventory.book.on(0)] == ["uid-m3", "uid-m", "uid-m2"], "latest first"


def test_an_ordinary_pod_can_hold_a_seat_without_a_gang() -> None:
    inventory = inventory_of(NODE, POD)
    inventory.hold(seat(POD))
    assert (gpus(inventory), inventory.book.gangs()) == ((8, 0, 3), [])
    inventory.apply([seen(POD.on("n1"))])
    assert (gpus(inventory), len(inventory.book)) == ((8, 3, 0), 0)


def test_a_seat_whose_place_was_taken_is_overdrawn() -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    assert not inventory.columns.overdrawn(0)
    inventory.apply([seen(make_pod("thief").gpus(7).on("n1"))])
    assert inventory.columns.overdrawn(0)
    inventory.release(pod_of(MEMBER).uid)
    assert not inventory.columns.overdrawn(0)


def test_overuse_by_others_does_not_concern_a_seat_that_needs_none_of_it() -> None:
    launcher = make_pod("launcher").cpu("1").gang("train")
    inventory = inventory_of(NODE, launcher, make_pod("thief").gpus(9).on("n1"))
    reserve(inventory, seat(launcher))
    assert not inventory.columns.overdrawn(0)


def test_a_pod_sees_its_own_seat_as_free() -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    column = inventory.columns.column_of[GPU]
    assert inventory.free_for(pod_of(MEMBER))[column, 0] == 8
    assert inventory.free_for(pod_of(POD))[column, 0] == 6


@pytest.mark.parametrize("rows", [[], [1], [2, 0], [1, 1, 0]])
def test_what_is_free_on_some_rows_is_what_is_free_there(rows: list[int]) -> None:
    nodes = [make_node(f"n{number}").gpus(8) for number in (1, 2, 3)]
    nominated = make_pod("other").gpus(2).nominated("n2")
    inventory = inventory_of(*nodes, MEMBER, nominated, make_pod("runs").gpus(1).on("n3"))
    reserve(inventory, seat(MEMBER))
    for pod in (MEMBER, POD, nominated):
        everywhere = inventory.free_for(pod_of(pod))
        assert (inventory.free_for(pod_of(pod), np.array(rows, np.intp)) == everywhere[:, rows]).all()


# -- nominations


@pytest.mark.parametrize(
    ("priority", "want"),
    [
        pytest.param(4, 5, id="of higher priority: counts as used"),
        pytest.param(5, 5, id="of equal priority: counts as used"),
        pytest.param(6, 8, id="of lower priority: does not"),
    ],
)
def test_a_nominated_pod_counts_by_its_priority(priority: int, want: int) -> None:
    inventory = inventory_of(NODE, POD.nominated("n1").priority(5))
    assert free(inventory, priority=priority) == want


def test_a_nomination_backed_by_a_seat_is_not_counted_twice() -> None:
    nominated = MEMBER.nominated("n1", by="muster")
    inventory = inventory_of(NODE, nominated)
    reserve(inventory, seat(nominated))
    assert free(inventory) == 6
    assert inventory.foreign_nominations() == []
    inventory.release(pod_of(nominated).uid)
    assert free(inventory) == 6, "a ghost nomination still keeps others out"
    assert [pod.uid for pod in inventory.foreign_nominations()] == ["uid-m"]


def test_a_gang_is_not_in_its_own_way() -> None:
    inventory = inventory_of(NODE, MEMBER.nominated("n1"), POD.nominated("n1"))
    column = inventory.columns.column_of[GPU]
    assert int(inventory.view(gang=key("train")).free[column, 0]) == 5
    assert int(inventory.view(gang=key("other")).free[column, 0]) == 3
    assert int(inventory.view().free[column, 0]) == 3


def test_nor_is_a_pod() -> None:
    inventory = inventory_of(NODE, POD.nominated("n1"))
    column = inventory.columns.column_of[GPU]
    assert inventory.free_for(pod_of(POD.nominated("n1")))[column, 0] == 8
    assert inventory.free_for(pod_of(MEMBER))[column, 0] == 5


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(seen(POD.priority(5)), id="cleared"),
        pytest.param(seen(POD.priority(5).nominated("n1").deleting()), id="the pod is being deleted"),
        pytest.param(seen(POD.priority(5).nominated("n2")), id="elsewhere"),
        pytest.param(gone(POD), id="the pod is gone"),
        pytest.param(seen(POD.priority(5).on("n2")), id="bound elsewhere"),
    ],
)
def test_a_nomination_ends(after: object) -> None:
    inventory = inventory_of(NODE, OTHER, POD.nominated("n1").priority(5))
    before = generation(inventory)
    inventory.apply([after])  # type: ignore[list-item]
    assert free(inventory) == 8
    assert generation(inventory) > before


def test_a_nominated_pod_of_less_priority_than_before_gives_way_to_more() -> None:
    inventory = inventory_of(NODE, POD.nominated("n1").priority(5))
    before = generation(inventory)
    inventory.apply([seen(POD.nominated("n1").priority(4))])
    assert (free(inventory, priority=5), free(inventory, priority=4)) == (8, 5)
    assert generation(inventory) > before


def test_a_nominated_pod_that_binds_where_it_was_nominated_frees_nothing() -> None:
    inventory = inventory_of(NODE, POD.nominated("n1"))
    before = generation(inventory)
    inventory.apply([seen(POD.on("n1"))])
    assert (free(inventory), generation(inventory)) == (5, before)


def test_a_nomination_to_a_node_nobody_has_seen_yet() -> None:
    inventory = inventory_of(POD.nominated("n1"))
    inventory.apply([seen(NODE)])
    assert free(inventory) == 5


# -- generations


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(gone(POD.on("n1")), id="a pod is gone"),
        pytest.param(seen(POD.on("n1").phase("Succeeded")), id="a pod is done"),
        pytest.param(seen(POD.gpus(1).on("n1")), id="a pod shrank"),
        pytest.param(seen(NODE.gpus(9)), id="a node grew"),
        pytest.param(seen(OTHER), id="a node came"),
        pytest.param(seen(NODE.zone("b")), id="a node changed its labels"),
        pytest.param(seen(NODE.uid("reborn")), id="a node was made anew"),
    ],
)
def test_the_generation_grows_when_something_became_free(change: object) -> None:
    inventory = inventory_of(NODE, POD.on("n1"))
    before = generation(inventory)
    inventory.apply([change])  # type: ignore[list-item]
    assert generation(inventory) > before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(seen(POD.on("n1")), id="the same pod again"),
        pytest.param(
            seen(POD.on("n1").set("metadata.annotations", {"a": "b"})), id="a heartbeat of a bound pod"
        ),
        pytest.param(seen(POD.on("n1").deleting()), id="a pod begins to terminate"),
        pytest.param(seen(make_pod("q").gpus(1).on("n1")), id="another pod is bound"),
        pytest.param(seen(make_pod("q").gpus(1)), id="a pod is created"),
        pytest.param(gone(make_pod("q").gpus(1)), id="a pod nobody knew is gone"),
        pytest.param(seen(NODE), id="a heartbeat of a node"),
        pytest.param(seen(NODE.gpus(7)), id="a node shrank"),
        pytest.param(gone(NODE), id="a node is gone"),
        pytest.param(seen(make_group("train", 2)), id="a PodGroup"),
        pytest.param(seen(make_pod("q").gpus(1).nominated("n1")), id="a nomination"),
        pytest.param(seen(make_pod("held").gpus(1).nominated("n1").attempted("x")), id="a nomination stays"),
    ],
)
def test_and_at_no_other_time(change: object) -> None:
    inventory = inventory_of(NODE, POD.on("n1"), make_pod("held").gpus(1).nominated("n1"))
    before = generation(inventory)
    inventory.apply([change])  # type: ignore[list-item]
    assert generation(inventory) == before


def test_only_the_columns_that_became_free_grow() -> None:
    inventory = inventory_of(NODE, make_pod("c").cpu("1").on("n1"))
    gpu, cpu = generation(inventory), generation(inventory, "cpu")
    inventory.apply([gone(make_pod("c").cpu("1").on("n1"))])
    assert generation(inventory) == gpu
    assert generation(inventory, "cpu") > cpu


def test_a_seat_away_from_the_nomination_frees_what_the_nomination_kept() -> None:
    inventory = inventory_of(NODE, OTHER, MEMBER.nominated("n1"))
    before = generation(inventory)
    reserve(inventory, seat(MEMBER, N2))
    assert (free(inventory), free(inventory, N2)) == (8, 6)
    assert generation(inventory) > before


def test_setting_a_seat_aside_frees_nothing() -> None:
    inventory = inventory_of(NODE, MEMBER)
    before = generation(inventory)
    reserve(inventory, seat(MEMBER))
    assert generation(inventory) == before
    inventory.release(pod_of(MEMBER).uid)
    assert generation(inventory) > before


# -- events


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(NODE, id="a node"),
        pytest.param(POD.on("n1"), id="a bound pod"),
        pytest.param(MEMBER, id="a member"),
        pytest.param(make_group("train", 2), id="a PodGroup"),
        pytest.param(POD.nominated("n1"), id="a nominated pod"),
    ],
)
def test_an_event_told_twice_changes_nothing(builder: Builder) -> None:
    once, twice = inventory_of(NODE, builder), inventory_of(NODE, builder, builder)
    assert once.view().free.tolist() == twice.view().free.tolist()
    assert once.columns.generation == twice.columns.generation
    assert len(once.gangs) == len(twice.gangs)


def test_apply_tells_what_it_touched() -> None:
    inventory = inventory_of(NODE, OTHER)
    touched = inventory.apply([seen(MEMBER), seen(POD.on("n2")), seen(NODE)])
    assert touched.gangs == {key("train")}
    assert touched.rows == {0, 1}
    assert [(before, after.name if after else None) for before, after in touched.pods] == [
        (None, "m"),
        (None, "p"),
    ]
    (change,) = inventory.apply([gone(POD.on("n2"))]).pods
    assert isinstance(change[0], Pod)
    assert change[1] is None


@pytest.mark.parametrize(
    ("change", "released"),
    [
        pytest.param(gone(MEMBER), ["uid-m"], id="of a pod that is gone"),
        pytest.param(seen(MEMBER.deleting()), ["uid-m"], id="of a pod that is being deleted"),
        pytest.param(seen(MEMBER.on("n1")), [], id="not of a pod that was bound"),
        pytest.param(seen(POD), [], id="not of a pod that came"),
    ],
)
def test_apply_tells_which_seats_were_given_back(change: object, released: list[str]) -> None:
    inventory = inventory_of(NODE, MEMBER)
    reserve(inventory, seat(MEMBER))
    touched = inventory.apply([change])  # type: ignore[list-item]
    assert [booking.uid for booking in touched.released] == released


def test_starts_that_failed_for_want_of_a_device_are_counted_by_node() -> None:
    bad = POD.on("n1").phase("Failed", reason="UnexpectedAdmissionError")
    inventory = inventory_of(NODE, POD.on("n1"), bad, bad.named("q").phase("Failed", reason="Evicted"))
    assert inventory.bad_starts[N1] == 1
    inventory.apply([seen(bad), gone(bad)])
    assert inventory.bad_starts[N1] == 0


def test_a_view_does_not_change_any_more() -> None:
    inventory = inventory_of(NODE)
    view = inventory.view()
    inventory.apply([seen(POD.on("n1"))])
    assert view.free[view.column_of[GPU], 0] == 8
    assert free(inventory) == 5
    with pytest.raises(ValueError, match="read-only"):
        view.free[0, 0] = 1


def test_a_view_is_made_once_for_the_same_question() -> None:
    inventory = inventory_of(NODE)
    assert inventory.view(priority=1) is inventory.view(priority=2)
    nominated = inventory_of(NODE, POD.nominated("n1").priority(2))
    assert nominated.view(priority=2) is not nominated.view(priority=3)


def test_what_ifs() -> None:
    inventory = inventory_of(NODE, POD.on("n1"), MEMBER)
    reserve(inventory, seat(MEMBER))
    column = inventory.columns.column_of[GPU]
    assert int(inventory.view().free[column, 0]) == 3
    assert int(inventory.view_without_reservations().free[column, 0]) == 5
    assert int(inventory.view_when_empty().free[column, 0]) == 8
