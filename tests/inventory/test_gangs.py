# SPDX-License-Identifier: Apache-2.0
"""Who counts towards a gang's quorum (design.md, Words)."""

from __future__ import annotations

import pytest

from app.inventory.gangs import RollCall
from tests.builders import (
    GroupBuilder,
    PodBuilder,
    gone,
    inventory_of,
    key,
    make_group,
    make_pod,
    pod_of,
    seen,
)

GROUP = make_group("train", 3)


def member(name: str) -> PodBuilder:
    return make_pod(name).gpus(1).gang("train").gated()


def roll_of(*pods: PodBuilder, group: GroupBuilder | None = GROUP) -> RollCall:
    inventory = inventory_of(*([group] if group else []), *pods)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    return gang.roll


A, B, C, D = (member(name) for name in "abcd")
BOUND = [pod.on("n1") for pod in (A, B, C, D)]
OTHERS = [member(name).scheduler("default-scheduler") for name in "xyz"]


@pytest.mark.parametrize(
    ("pods", "counted", "quorum"),
    [
        pytest.param([A, B], 2, False, id="two of three"),
        pytest.param([A, B, C], 3, True, id="three of three"),
        pytest.param([A, B, C, D], 4, True, id="more than the minimum"),
        pytest.param([A.ungated(), B.ungated(), C.ungated()], 3, True, id="members that never had a gate"),
        pytest.param([*BOUND[:2], C], 3, True, id="bound ones count"),
        pytest.param([A, B, C.gate("other/gate")], 2, False, id="a foreign gate: exists, but is not ready"),
        pytest.param([A, B, C.deleting()], 2, False, id="being deleted: does not count"),
        pytest.param([A, B, C.on("n1").deleting()], 2, False, id="nor when it is still on its node"),
        pytest.param([A, B, C.on("n1").phase("Failed")], 2, False, id="failed: does not count"),
        pytest.param([A, B, OTHERS[0]], 2, False, id="of another scheduler: not before it is bound"),
        pytest.param([A, B, OTHERS[0].on("n1")], 3, True, id="of another scheduler: once it is bound"),
        pytest.param(
            [C.on("n1").phase("Succeeded"), A, B], 2, False, id="succeeded in an earlier run: starts from 0"
        ),
        pytest.param(
            [C.on("n1").phase("Succeeded"), D.on("n1").phase("Succeeded"), A],
            1,
            False,
            id="also when all others have",
        ),
        pytest.param(
            [C.on("n1").phase("Succeeded"), BOUND[0], B],
            3,
            True,
            id="succeeded while another is at work: counts",
        ),
        pytest.param(
            [C.on("n1").phase("Succeeded"), A.on("n1").deleting(), B],
            1,
            False,
            id="succeeded while the last one at work is being deleted: does not",
        ),
    ],
)
def test_quorum(pods: list[PodBuilder], counted: int, quorum: bool) -> None:
    roll = roll_of(*pods)
    assert (roll.counted, roll.quorum) == (counted, quorum)


@pytest.mark.parametrize("minimum", [0, -5, None])
@pytest.mark.parametrize("native", [False, True], ids=["label", "native"])
def test_an_unusable_minimum_counts_as_one(minimum: int | None, native: bool) -> None:
    group = make_group("train", minimum)
    pod = make_pod("a").native("train") if native else A
    inventory = inventory_of(group.native() if native else group, pod)
    gang = inventory.gangs.get(key("train", native=native))
    assert gang is not None
    assert gang.roll.quorum
    assert gang.roll.minimum == 1


@pytest.mark.parametrize(
    ("pods", "missing", "wounded"),
    [
        pytest.param([A, B, C], 3, False, id="none bound: all are missing, none is hurt"),
        pytest.param(BOUND[:3], 0, False, id="running"),
        pytest.param(BOUND, 0, False, id="running with more than the minimum"),
        pytest.param([*BOUND[:2], C], 1, True, id="bound below the minimum"),
        pytest.param([*BOUND[:2], C.on("n1").deleting()], 1, True, id="one of three is being deleted"),
        pytest.param([*BOUND[:2], C.on("n1").phase("Succeeded")], 0, False, id="one of three is done"),
        pytest.param([pod.phase("Succeeded") for pod in BOUND[:3]], 3, False, id="all are done: over"),
    ],
)
def test_missing_and_wounded(pods: list[PodBuilder], missing: int, wounded: bool) -> None:
    roll = roll_of(*pods)
    assert (roll.missing, roll.wounded) == (missing, wounded)


def test_ready_members_come_oldest_first() -> None:
    late = A.created("2026-01-02T00:00:00Z")
    assert [pod.name for pod in roll_of(late, C, B).ready] == ["b", "c", "a"]


def test_members_behind_a_foreign_gate_are_told_apart() -> None:
    roll = roll_of(A, B.gate("other/gate"), C.gate("other/gate").deleting(), D.gate("x/y").ungated().on("n1"))
    assert [pod.name for pod in roll.gated_by_others] == ["b"]


def test_the_priority_of_a_gang_is_the_lowest_of_its_living_members() -> None:
    roll = roll_of(
        A.priority(9), B.priority(5), C.priority(1).on("n1").phase("Succeeded"), D.priority(0).deleting()
    )
    assert roll.priority == 5
    assert roll.priorities == {5, 9}
    assert roll_of(A).priorities == {0}


def test_a_gang_is_as_old_as_its_pod_group() -> None:
    group = GROUP.created("1970-01-01T00:00:09Z")
    assert roll_of(A.created("1970-01-01T00:00:01Z"), group=group).created == 9


def test_a_gang_of_one_needs_no_pod_group() -> None:
    pod = make_pod("solo").gpus(1).gated().created("1970-01-01T00:00:05Z")
    gang = inventory_of(pod).gangs.get(pod_of(pod).gang)  # type: ignore[arg-type]
    assert gang is not None
    assert gang.defined
    assert gang.roll.quorum
    assert gang.roll.created == 5


def test_without_its_pod_group_a_gang_is_undefined() -> None:
    inventory = inventory_of(A, B, C)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    defined = [gang.defined]
    for change in (seen(GROUP), gone(GROUP)):
        inventory.apply([change])
        defined.append(gang.defined)
    assert defined == [False, True, False]


def test_equal_names_in_the_two_apis_are_two_gangs() -> None:
    native = make_pod("n").native("train")
    inventory = inventory_of(GROUP, make_group("train", 1).native(), A, native)
    label_gang, native_gang = (
        inventory.gangs.get(key("train")),
        inventory.gangs.get(key("train", native=True)),
    )
    assert label_gang is not None
    assert native_gang is not None
    assert [pod.name for pod in label_gang.roll.members] == ["a"]
    assert [pod.name for pod in native_gang.roll.members] == ["n"]
    assert (label_gang.roll.quorum, native_gang.roll.quorum) == (False, True)


def test_equal_names_in_two_namespaces_are_two_gangs() -> None:
    elsewhere = make_pod("a", "team").gang("train").uid("elsewhere")
    inventory = inventory_of(A, elsewhere)
    assert len(inventory.gangs) == 2


# -- what changes a gang


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(C, id="a member comes"),
        pytest.param(B.on("n1"), id="a member is bound"),
        pytest.param(B.on("n1").phase("Succeeded"), id="a member succeeds"),
        pytest.param(B.deleting(), id="a member is being deleted"),
        pytest.param(B.gate("other/gate"), id="a foreign gate"),
        pytest.param(B.priority(3), id="another priority"),
        pytest.param(B.gpus(2), id="other requests"),
        pytest.param(GROUP.minimum(2), id="another minimum"),
        pytest.param(GROUP.timeout(9), id="another timeout"),
        pytest.param(GROUP.uid("reborn"), id="the PodGroup made anew"),
    ],
)
def test_what_matters_makes_a_new_version(change: PodBuilder | GroupBuilder) -> None:
    inventory = inventory_of(GROUP, A, B)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    before = gang.version
    touched = inventory.apply([seen(change)])
    assert gang.version > before
    assert touched.gangs == {key("train")}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(A, id="the same again"),
        pytest.param(A.set("metadata.annotations", {"a": "b"}), id="an annotation"),
        pytest.param(A.attempted("0/3 nodes"), id="an attempt"),
        pytest.param(A.nominated("n1"), id="a nomination"),
        pytest.param(GROUP.status(scheduled=3), id="status counts"),
    ],
)
def test_what_does_not_matter_makes_none(change: PodBuilder | GroupBuilder) -> None:
    inventory = inventory_of(GROUP, A, B)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    before = gang.version
    inventory.apply([seen(change)])
    assert gang.version == before


def test_the_roll_shows_the_latest_attempt_and_nomination_all_the_same() -> None:
    inventory = inventory_of(GROUP, A.ungated(), B)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    assert [pod.outcome for pod in gang.roll.ready] == ["", ""]
    inventory.apply([seen(A.ungated().attempted("0/3 nodes").nominated("n1"))])
    first, second = gang.roll.ready
    assert "0/3 nodes" in first.outcome
    assert first.nominated == "n1"
    assert second.outcome == ""


def test_the_roll_shows_the_latest_status_of_the_group() -> None:
    inventory = inventory_of(GROUP, A)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    assert gang.roll.group is not None
    inventory.apply([seen(GROUP.status(scheduled=3))])
    assert gang.roll.group is not None
    assert gang.roll.group.status == (("scheduled", 3),)


def test_a_replacement_is_another_member() -> None:
    inventory = inventory_of(GROUP, *BOUND[:3])
    again = C.uid("again")
    inventory.apply([seen(BOUND[2].deleting()), seen(again)])
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    assert (len(gang.roll.bound), gang.roll.missing, [pod.uid for pod in gang.roll.ready]) == (
        2,
        1,
        ["again"],
    )
    inventory.apply([gone(BOUND[2].deleting())])
    assert (gang.roll.missing, gang.roll.counted) == (1, 3)


def test_a_pod_that_changes_its_label_changes_its_gang() -> None:
    inventory = inventory_of(A)
    touched = inventory.apply([seen(A.gang("other"))])
    assert touched.gangs == {key("train"), key("other")}
    assert inventory.gangs.get(key("train")) is None
    assert inventory.gangs.get(key("other")) is not None


def test_a_gang_is_forgotten_with_its_last_trace() -> None:
    inventory = inventory_of(GROUP, A)
    inventory.apply([gone(GROUP)])
    assert inventory.gangs.get(key("train")) is not None
    inventory.apply([gone(A)])
    assert len(inventory.gangs) == 0
    inventory.apply([gone(GROUP), gone(A)])
    assert len(inventory.gangs) == 0


def test_a_minimum_raised_or_lowered_counts_at_once() -> None:
    inventory = inventory_of(GROUP, A, B)
    gang = inventory.gangs.get(key("train"))
    assert gang is not None
    verdicts = [(gang.roll.minimum, gang.roll.quorum)]
    for minimum in (2, 5):
        inventory.apply([seen(GROUP.minimum(minimum))])
        verdicts.append((gang.roll.minimum, gang.roll.quorum))
    assert verdicts == [(3, False), (2, True), (5, False)]
