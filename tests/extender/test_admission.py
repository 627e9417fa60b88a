# SPDX-License-Identifier: Apache-2.0
"""Admission: when a gate is lifted, when a pod is nominated, and that no nomination is left behind."""

from __future__ import annotations

import asyncio

import pytest

from app.domain.ids import PodUid
from app.extender.admission import MOST_NOMINATIONS
from app.extender.timing import Timing
from tests.builders import GroupBuilder, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.diary import Diary
from tests.extender.world import World

GROUP = make_group("g", 2)
FROM_TWO = Timing(seen_seconds=0.0, nominate_from_nodes=2)


def member(name: str) -> PodBuilder:
    return make_pod(name).gpus(1).gang("g")


def nominated(world: World, name: str) -> str | None:
    node: str | None = world.get("Pod", name)["status"].get("nominatedNodeName")
    return node


def refuse(world: World, name: str, *, at: str) -> None:
    """kube-scheduler records a failed attempt: its condition, and the nomination is cleared."""
    pod = world.get("Pod", name)
    status = {key: field for key, field in pod["status"].items() if key != "nominatedNodeName"}
    condition = {"type": "PodScheduled", "status": "False", "message": "no", "lastTransitionTime": at}
    world.apply("MODIFIED", {**pod, "status": {**status, "conditions": [condition]}})


# -- gates


@pytest.fixture
def quiet(make: Make) -> tuple[World, Diary]:
    """A node of two GPUs, and a diary of what is written."""
    world = make(make_node("n1").gpus(2))
    return world, Diary(world)


def test_gates_are_lifted_only_once_the_gang_has_its_seats(quiet: tuple[World, Diary]) -> None:
    world, diary = quiet
    blocker = make_pod("blocker").gpus(1).on("n1")
    for step in (blocker, GROUP, member("a").gated(), member("b").gated()):
        world.put(step)
        world.tick(10)
        assert diary.written == []
    world.remove(blocker)
    assert diary.take() == ["lift a", "lift b"]
    world.tick(10)
    assert diary.written == [], "once each; no nomination on a small cluster"


def test_an_incomplete_gang_keeps_its_gates(quiet: tuple[World, Diary]) -> None:
    world, diary = quiet
    for step in (GROUP, member("a").gated()):
        world.put(step)
    world.tick(60)
    assert diary.written == []
    world.put(member("b").gated())
    assert diary.written == ["lift a", "lift b"]


def test_the_gates_of_others_are_never_touched(quiet: tuple[World, Diary]) -> None:
    world, diary = quiet
    for step in (GROUP, member("a").gated(), member("b").gated().gate("example.com/quota")):
        world.put(step)
    world.tick(60)
    assert diary.written == []
    world.put(member("b").gated())
    assert diary.written == ["lift a", "lift b"]


def test_members_without_a_gate_join_those_that_have_one(quiet: tuple[World, Diary]) -> None:
    world, diary = quiet
    for step in (GROUP, member("a"), member("b").gated()):
        world.put(step)
    assert diary.written == ["lift b"]
    calls = []
    for name in "ab":
        assert world.filter(name, ["n1"])["NodeNames"] == ["n1"]
        calls.append(world.bind(name, "n1"))
    assert [world.error(call) for call in calls] == ["", ""]


def test_a_gate_that_cannot_be_lifted_gives_the_plan_up_and_is_tried_again_later(
    quiet: tuple[World, Diary],
) -> None:
    world, diary = quiet
    diary.refuse = {"lift"}
    for step in (GROUP, member("a").gated(), member("b").gated()):
        world.put(step)
    world.tick(1)
    assert seats(world) == {}, "nothing stays reserved for pods that cannot come"
    assert sorted(diary.take()) == ["lift a", "lift b"]
    world.tick(3)
    assert diary.take() == [], "it pauses"
    diary.refuse = set()
    world.tick(3)
    assert sorted(diary.take()) == ["lift a", "lift b"]
    assert len(seats(world)) == 2


def test_a_pod_created_again_under_the_same_name_does_not_lose_its_gate(make: Make) -> None:
    world = make(make_node("n1").gpus(2), GROUP, member("a").gated(), lag=True)
    diary = Diary(world)
    world.put(member("b").gated())
    world.apply("DELETED", world.get("Pod", "a"))
    world.put(member("a").uid("second").gated())
    world.see(1)  # both old members are known: they are admitted, but one of them is not there any more
    assert sorted(diary.take()) == ["lift a", "lift b"]
    assert world.get("Pod", "a")["spec"]["schedulingGates"], "the patch named another UID"


def test_a_passive_process_writes_nothing(quiet: tuple[World, Diary]) -> None:
    world, diary = quiet
    world.active = False
    world.tick()
    for step in (GROUP, member("a").gated(), member("b").gated()):
        world.put(step)
    world.tick(10)
    assert diary.written == []


# -- nominations


def test_on_a_large_cluster_the_nomination_comes_before_the_gate_is_lifted(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_node("n2"), GROUP, timing=FROM_TWO)
    diary = Diary(world)
    for name in "ab":
        world.put(member(name).gated())
    for name in "ab":
        assert diary.written.index(f"nominate {name} n1") < diary.written.index(f"lift {name}")
    assert len(diary.written) == 4
    world.tick(10)
    assert len(diary.written) == 4, "they stand: nothing to repeat"


@pytest.fixture
def refused(make: Make) -> tuple[World, Diary]:
    """A member is refused as its gang is incomplete; then the other one comes."""
    world = make(make_node("n1").gpus(2), GROUP, member("a"))
    diary = Diary(world)
    assert world.filter("a", ["n1"])["NodeNames"] == []
    world.put(member("b"))
    assert seats(world) == {"a": "n1", "b": "n1"}
    return world, diary


def test_a_refused_member_is_nominated_as_soon_as_its_attempt_has_an_outcome(
    refused: tuple[World, Diary],
) -> None:
    world, diary = refused
    world.run(_tick(world))
    assert diary.written == [], "the scheduler's own failure handling would clear it"
    refuse(world, "a", at="2026-01-01T00:00:01Z")
    world.run(_tick(world))
    assert diary.written == ["nominate a n1"]


def test_a_refused_member_without_an_outcome_is_nominated_after_a_second(
    refused: tuple[World, Diary],
) -> None:
    world, diary = refused
    world.now += 0.9
    world.run(_tick(world))
    assert diary.written == []
    world.now += 0.2
    world.run(_tick(world))
    assert sorted(diary.written) == ["nominate a n1", "nominate b n1"], "they sleep: nothing else wakes them"


def test_a_member_refused_long_ago_is_nominated_at_once(make: Make) -> None:
    world = make(make_node("n1").gpus(2), GROUP, member("a"))
    diary = Diary(world)
    world.filter("a", ["n1"])
    world.tick(10)
    world.put(member("b"))
    world.run(_tick(world))
    assert diary.written == ["nominate a n1"]


def test_a_member_that_failed_after_its_answer_is_nominated_a_second_later(
    refused: tuple[World, Diary],
) -> None:
    """Another plugin refused it, or it was not bound in time: kube-scheduler may be about to try again."""
    world, diary = refused
    for name in "ab":
        world.filter(name, ["n1"])
    refuse(world, "a", at="2026-01-01T00:00:01Z")
    world.run(_tick(world))
    assert diary.take() == []
    world.tick(2)
    assert diary.take() == ["nominate a n1"]


def test_a_member_that_got_its_answer_needs_no_nomination(refused: tuple[World, Diary]) -> None:
    world, diary = refused
    for name in "ab":
        assert world.filter(name, ["n1"])["NodeNames"] == ["n1"]
    world.tick(5)
    assert diary.written == []


def test_a_nomination_never_comes_inside_an_answer(refused: tuple[World, Diary]) -> None:
    world, diary = refused
    world.now += 5
    world.filter("a", ["n1"])
    world.filter("b", ["n9"])
    assert diary.written == []


def test_a_cleared_nomination_is_made_again_once_per_attempt_and_three_times_in_all(
    refused: tuple[World, Diary],
) -> None:
    world, diary = refused
    world.filter("b", ["n1"])
    for attempt in range(1, MOST_NOMINATIONS + 1):
        refuse(world, "a", at=f"2026-01-01T00:00:{attempt:02}Z")
        world.run(_tick(world))
        world.run(_tick(world))
        assert diary.take() == ["nominate a n1"]
        assert nominated(world, "a") == "n1"
    refuse(world, "a", at="2026-01-01T00:00:09Z")
    world.run(_tick(world))
    assert seats(world) == {}, "nominations do not help: the plan is given up"
    assert diary.take() == []


def test_dropping_a_plan_clears_its_nominations(refused: tuple[World, Diary]) -> None:
    world, diary = refused
    world.tick(2)
    assert (nominated(world, "a"), nominated(world, "b")) == ("n1", "n1")
    diary.take()
    world.remove(GROUP)
    assert sorted(diary.take()) == ["clear a", "clear b"]
    assert (nominated(world, "a"), nominated(world, "b")) == (None, None)


def test_a_lapsed_plan_leaves_no_nomination(refused: tuple[World, Diary]) -> None:
    world, _ = refused
    world.tick(33)
    assert seats(world) == {}
    assert (nominated(world, "a"), nominated(world, "b")) == (None, None)


def test_stopping_clears_our_nominations(refused: tuple[World, Diary]) -> None:
    world, _ = refused
    world.tick(2)
    world.run(world.service.stop())
    assert (nominated(world, "a"), nominated(world, "b")) == (None, None)


def test_a_nomination_that_fails_is_tried_again(refused: tuple[World, Diary]) -> None:
    world, diary = refused
    diary.refuse = {"nominate"}
    world.filter("b", ["n1"])
    booking = world.service.inventory.book.get(PodUid("uid-a"))
    world.now += 1.0
    world.run(_tick(world))
    assert booking is not None and not booking.nominated
    diary.refuse = set()
    world.tick(1)
    assert diary.written == ["nominate a n1", "nominate a n1"]
    assert nominated(world, "a") == "n1"


def test_a_plan_dropped_while_its_nominations_are_under_way_leaves_neither_them_nor_lifted_gates(
    make: Make,
) -> None:
    world = make(make_node("n1").gpus(2), GROUP, timing=Timing(seen_seconds=0.0, nominate_from_nodes=1))
    diary = Diary(world)
    diary.hold = asyncio.Event()
    for name in "ab":
        world.put(member(name).gated())
    assert diary.take() == ["nominate a n1", "nominate b n1"]
    world.remove(GROUP)
    diary.hold.set()
    world.idle()
    assert (nominated(world, "a"), nominated(world, "b")) == (None, None)
    assert not [line for line in diary.take() if line.startswith("lift")]


def test_a_seat_that_moves_takes_its_nomination_along(make: Make) -> None:
    world = make(make_node("n1").gpus(2), GROUP, timing=Timing(seen_seconds=0.0, nominate_from_nodes=1))
    for name in "ab":
        world.put(member(name).gated())
    assert nominated(world, "a") == "n1"
    world.put(make_node("n2").gpus(2))
    assert world.filter("a", ["n2"])["NodeNames"] == ["n2"], "the full offer left n1 out"
    world.remove(GROUP)
    assert (nominated(world, "a"), nominated(world, "b")) == (None, None)


# -- what a former life has left


def test_at_start_only_nominations_that_our_manager_made_are_cleared(make: Make) -> None:
    world = make(
        make_node("n1").gpus(8),
        make_pod("ours").gpus(1).gang("x").nominated("n1", by="muster"),
        make_pod("schedulers").gpus(1).nominated("n1"),
        make_pod("stranger").gpus(1).scheduler("other").nominated("n1", by="muster"),
        make_pod("gated").gpus(1).gang("x").gated().nominated("n1", by="muster"),
    )  # fmt: skip
    found = {name: nominated(world, name) for name in ("ours", "schedulers", "stranger", "gated")}
    assert found == {"ours": None, "schedulers": "n1", "stranger": "n1", "gated": None}


def test_at_start_a_nomination_stays_where_the_plan_has_its_seat(make: Make) -> None:
    world = make(
        make_node("n1").gpus(2), GROUP, member("b"), member("a").attempted("no").nominated("n1", by="muster")
    )
    assert seats(world) == {"a": "n1", "b": "n1"}
    assert nominated(world, "a") == "n1"


def test_a_nomination_of_a_former_life_goes_with_the_seat_it_was_found_for(make: Make) -> None:
    pod = member("a").attempted("no").nominated("n1", by="muster")
    group: GroupBuilder = GROUP
    world = make(make_node("n1").gpus(2), group, member("b"), pod)
    world.remove(group)
    assert seats(world) == {}
    assert nominated(world, "a") is None, "a ghost nomination would block GPUs"


def test_becoming_active_again_clears_what_was_left_in_between(make: Make) -> None:
    world = make(make_node("n1").gpus(2))
    world.active = False
    world.tick()
    world.put(make_pod("p").gpus(1).gang("x").nominated("n1", by="muster"))
    world.tick(5)
    assert nominated(world, "p") == "n1"
    world.active = True
    world.tick()
    assert nominated(world, "p") is None


async def _tick(world: World) -> None:
    world.service.tick()


# -- members without the gate: those that kube-scheduler has not come to yet need no waking


def ungated_gang(make: Make) -> World:
    """Planned at the first call, and the first member answered; the second was never tried."""
    world = make(make_node("n1").gpus(8), GROUP, member("a"), member("b"), make_pod("other").gpus(1))
    world.filter("a", ["n1"])
    return world


def test_a_member_that_was_never_tried_is_not_nominated_while_kube_scheduler_asks(make: Make) -> None:
    world = ungated_gang(make)
    for _ in range(10):
        world.tick(0.9)
        world.filter("a", ["n1"])
    assert nominated(world, "b") is None
    assert world.filter("b", ["n1"])["NodeNames"] == ["n1"]
    world.tick(10)
    assert nominated(world, "b") is None, "it was answered: there is nothing to wake it for"


def test_kube_scheduler_is_at_work_as_well_when_all_it_hears_is_no(make: Make) -> None:
    world = ungated_gang(make)
    world.put(make_group("h", 2))
    world.put(make_pod("h0").gpus(1).gang("h"))
    for _ in range(10):
        world.tick(0.9)
        world.filter("h0", ["n1"])
    assert nominated(world, "b") is None


def test_a_member_that_was_never_tried_is_nominated_when_kube_scheduler_has_gone_quiet(make: Make) -> None:
    world = ungated_gang(make)
    world.tick(1.0)
    assert nominated(world, "b") is None
    world.tick(1.1)
    assert nominated(world, "b") == "n1"


def test_a_member_whose_attempt_failed_is_woken_however_busy_kube_scheduler_is(make: Make) -> None:
    world = make(make_node("n1").gpus(8), GROUP, member("a"), member("b"))
    refuse(world, "b", at="2026-01-01T00:00:01Z")  # by a plugin of its own: no call came here
    world.filter("a", ["n1"])
    for _ in range(3):
        world.tick(0.9)
        world.filter("a", ["n1"])
    assert nominated(world, "b") == "n1"
