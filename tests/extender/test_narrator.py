# SPDX-License-Identifier: Apache-2.0
"""What people are told: one sentence a change on each waiting member and its PodGroup, renewed later."""

from __future__ import annotations

from collections import Counter

import pytest

from app.extender.narrator import RENEW_SECONDS
from tests.builders import Builder, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make
from tests.extender.diary import Diary, Told
from tests.extender.world import World


def member(name: str, gang: str = "g", gpus: int = 1) -> PodBuilder:
    return make_pod(name).gpus(gpus).gang(gang).gated()


@pytest.fixture
def stage(make: Make) -> tuple[World, Diary]:
    """One node of two GPUs, and a diary of what is told."""
    world = make(make_node("n1").gpus(2))
    return world, Diary(world)


def put(world: World, *objects: Builder) -> None:
    for one in objects:
        world.put(one)


def heard(diary: Diary) -> dict[str, str]:
    """Subject → sentence; each subject must have been told once."""
    told = diary.hear()
    assert len({event.name for event in told}) == len(told), told
    return {event.name: event.message for event in told}


@pytest.mark.parametrize(
    ("objects", "reason", "said"),
    [
        pytest.param([member("a")], "GangNoPodGroup", "has no PodGroup yet", id="no PodGroup"),
        pytest.param(
            [make_group("g", 2), member("a")],
            "GangIncomplete",
            "gang default/g has 1 of 2 members",
            id="incomplete",
        ),
        pytest.param(
            [make_group("g", 2), member("a"), member("b").gate("example.com/quota")],
            "GangForeignGate",
            "pod b is held by gate example.com/quota",
            id="a gate of others",
        ),
        pytest.param(
            [make_group("g", 1), member("a", gpus=3)],
            "GangNeverFits",
            "a member requests 3 nvidia.com/gpu and the largest node has 2",
            id="can never fit",
        ),
        pytest.param(
            [make_pod("r").gpus(2).on("n1"), make_group("g", 1), member("a")],
            "GangBusy",
            "0 of 2 nvidia.com/gpu free; pod default/r holds 2",
            id="busy",
        ),
        pytest.param(
            [make_group("h", 1), member("h0", "h", 2), make_group("g", 1), member("a")],
            "GangBehind",
            "gang default/g waits behind gang default/h",
            id="behind another gang",
        ),
    ],
)
def test_the_sentence_on_the_pod_names_the_blocker(
    stage: tuple[World, Diary], objects: list[Builder], reason: str, said: str
) -> None:
    world, diary = stage
    put(world, *objects)
    world.tick(2)
    (event,) = [event for event in diary.hear() if event.name == "a"]
    assert (event.reason, event.warning) == (reason, reason == "GangNeverFits")
    assert said in event.message


def test_every_waiting_member_and_the_pod_group_are_told_once_for_each_change(
    stage: tuple[World, Diary],
) -> None:
    world, diary = stage
    put(world, make_group("g", 4), member("a"), member("b"))
    world.tick(10)
    assert heard(diary) == dict.fromkeys(["group g", "a", "b"], "gang default/g has 2 of 4 members")
    world.tick(60)
    assert diary.hear() == [], "nothing new"
    put(world, member("c"))
    world.tick(2)
    assert heard(diary) == dict.fromkeys(["group g", "a", "b", "c"], "gang default/g has 3 of 4 members")


def test_a_member_that_joins_a_waiting_gang_is_told_alone(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_pod("r").gpus(2).on("n1"), make_group("g", 1), member("a"))
    world.tick(2)
    assert set(heard(diary)) == {"group g", "a"}
    put(world, member("b"))
    world.tick(5)
    assert set(heard(diary)) == {"b"}


def test_the_sentence_is_said_again_before_the_api_forgets_it(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_group("g", 2), member("a"))
    world.tick(2)
    first = heard(diary)
    world.tick(RENEW_SECONDS - 5)
    assert diary.hear() == []
    world.tick(10)
    assert heard(diary) == first


def test_nothing_more_is_said_to_members_that_got_their_seats(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_group("g", 2), member("a"))
    world.tick(2)
    diary.hear()
    put(world, member("b"))
    world.tick(RENEW_SECONDS)
    assert [event for event in diary.hear() if event.reason == "GangIncomplete"] == []


def test_a_gang_that_is_complete_and_seated_within_a_second_is_not_told_that_it_was_not(
    stage: tuple[World, Diary],
) -> None:
    world, diary = stage
    for n in range(20):
        world.tick(n / 10)  # at any moment between two looks
        pods = [member(f"{name}{n}", f"g{n}") for name in "ab"]
        put(world, make_group(f"g{n}", 2), pods[0])
        world.tick(0.8)
        put(world, pods[1])
        world.tick(0.3)
        assert "schedulingGates" not in world.get("Pod", f"a{n}")["spec"], "it has its seat"
        assert [event for event in diary.hear() if event.reason == "GangIncomplete"] == []
        for pod in pods:
            world.remove(pod)


def test_a_change_in_a_long_queue_is_told_within_five_seconds(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    for n in range(300):
        put(world, make_group(f"g{n}", 2), member(f"p{n}", f"g{n}"))
    world.tick(60)
    assert len({event.name for event in diary.hear()}) == 600, "everybody has been told"
    put(world, make_group("g299", 3))
    world.tick(5)
    assert [event.message for event in diary.hear() if event.name == "p299"] == [
        "gang default/g299 has 1 of 3 members"
    ]


def test_a_long_queue_is_told_a_few_gangs_at_a_time(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    for n in range(100):
        put(world, make_group(f"g{n}", 2), member(f"p{n}", f"g{n}"))
    for _ in range(10):
        world.tick(1)
        assert len(diary.hear()) <= 2 * 20


def test_a_sentence_is_taken_back_when_its_pod_is_gone(stage: tuple[World, Diary]) -> None:
    world, _ = stage
    forgotten: list[str] = []
    world.cluster.forget = lambda subject: forgotten.append(subject.name)  # type: ignore[method-assign,union-attr]
    put(world, make_group("g", 2), member("a"), member("b"))
    world.remove(member("a"))
    world.put(member("b").on("n1"))
    assert {"a", "b"} <= set(forgotten)


# -- warnings


def test_a_pod_of_two_gangs_is_warned_once(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    pod = member("a").native("h")
    put(world, pod, pod.label("other", "label"))
    world.tick(5)
    (event,) = diary.hear()
    assert (event.name, event.reason, event.warning) == ("a", "GangMixedApis", True)
    assert "pod-group=g and spec.schedulingGroup.podGroupName=h" in event.message


@pytest.mark.parametrize("minimum", [0, -1, None])
def test_a_minimum_that_is_no_minimum_is_warned_of_once(
    stage: tuple[World, Diary], minimum: int | None
) -> None:
    world, diary = stage
    put(world, make_group("g", minimum), member("a").gate("x"), member("b").gate("x"))
    world.tick(5)
    told = [event for event in diary.hear() if event.reason == "GangMinimum"]
    assert told == [
        Told("group g", "GangMinimum", "spec.minMember is absent or below 1: it counts as 1", True)
    ]


def test_a_pod_group_that_was_created_again_is_warned_of_again(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    for uid in ("one", "two"):
        put(world, make_group("g", 0).uid(uid), member("a").gate("x"))
        world.tick(5)
        assert [event.name for event in diary.hear() if event.reason == "GangMinimum"] == ["group g"]
        world.remove(make_group("g", 0).uid(uid))


def test_mixed_priorities_are_warned_of(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_group("g", 3), member("a").priority(5), member("b").priority(3))
    world.tick(2)
    (event,) = [event for event in diary.hear() if event.reason == "GangPriorities"]
    assert event.warning and event.message.endswith("queues with the lowest, 3")


def test_two_warnings_of_one_group_are_each_given_once(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_group("g", 0), member("a").priority(5).gate("x"), member("b").priority(3).gate("x"))
    for number in range(3):
        world.tick(2)
        put(world, member(f"c{number}").priority(5).gate("x"))
    world.tick(2)
    warned = [event.reason for event in diary.hear() if event.warning]
    assert sorted(warned) == ["GangMinimum", "GangPriorities"]


# -- gates that are none of our business


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        pytest.param(
            make_pod("p").gpus(1).gated().scheduler("volcano"),
            "spec.schedulerName is volcano",
            id="another scheduler",
        ),
        pytest.param(
            make_pod("p").cpu("1").gated(),
            "the pod belongs to no gang and asks for no device",
            id="no gang and no device",
        ),
        pytest.param(
            make_pod("p").gang("g").gated().scheduler("volcano"),
            "spec.schedulerName is volcano",
            id="a member that another scheduler has taken over",
        ),
    ],
)
@pytest.mark.parametrize("early", [True, False], ids=["there at start", "created later"])
def test_a_gate_that_is_not_ours_to_keep_is_lifted_and_said_why(
    make: Make, pod: PodBuilder, why: str, early: bool
) -> None:
    world = make(make_node("n1").gpus(2))
    world.active = False
    world.tick()
    diary = Diary(world)
    if early:
        world.put(pod)
        assert diary.written == []
    world.active = True
    world.tick()
    if not early:
        world.put(pod)
    assert set(diary.written) == {"lift p"}
    assert Told("p", "GateReleased", f"{why}: muster.dev/gang is lifted", False) in diary.hear()
    assert "schedulingGates" not in world.get("Pod", "p")["spec"]


def test_the_gate_of_a_pod_being_deleted_is_left_alone(stage: tuple[World, Diary]) -> None:
    world, diary = stage
    put(world, make_pod("p").gated().scheduler("volcano").deleting())
    world.tick(5)
    assert (diary.written, diary.hear()) == ([], [])


def test_a_gated_pod_without_devices_that_belongs_to_a_gang_keeps_its_gate(
    stage: tuple[World, Diary],
) -> None:
    world, diary = stage
    put(world, make_group("g", 3), make_pod("launcher").cpu("1").gang("g").gated(), member("a"))
    world.tick(5)
    assert diary.written == []


# -- counts


def test_the_pod_group_shows_how_many_run(stage: tuple[World, Diary]) -> None:
    world, _ = stage
    put(
        world,
        make_group("g", 2),
        member("a").on("n1"),
        member("b").on("n1", phase="Failed"),
        member("c").gate("x"),
    )
    world.tick(2)
    assert world.get("PodGroup", "g")["status"] == {"scheduled": 2, "running": 1, "succeeded": 0, "failed": 1}


def test_no_event_ever_names_a_change_that_did_not_happen(stage: tuple[World, Diary]) -> None:
    """Heartbeats of nodes and pods of others leave the queue as it is."""
    world, diary = stage
    put(world, make_group("g", 2), member("a"))
    world.tick(5)
    diary.hear()
    for n in range(20):
        put(
            world,
            make_node("n1").gpus(2),
            make_pod("other").scheduler("x").set("metadata.resourceVersion", str(n)),
        )
        world.tick(2)
    assert Counter(event.name for event in diary.hear()) == Counter()
