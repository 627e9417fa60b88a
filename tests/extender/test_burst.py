# SPDX-License-Identifier: Apache-2.0
"""When new members are created without the gate: many a second, room for more, and nobody who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from app.domain.plan import Outcome
from app.extender.burst import REPEAT_SECONDS, REST_SECONDS, ROOM_WINDOWS
from app.extender.timing import Timing
from tests.builders import Builder, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World

RATE = 20
TIMING = Timing(seen_seconds=0.0, burst_pods_per_second=RATE)
NAMES = [f"n{number:02}" for number in range(40)]
NODES = [make_node(name).gpus(8) for name in NAMES]
Start = Callable[..., World]


@pytest.fixture
def start(make: Make) -> Start:
    """A world in which somebody listens; forty nodes of eight GPUs unless told otherwise."""

    def begin(*objects: Builder, timing: Timing = TIMING) -> World:
        return make(*(objects or NODES), timing=timing, bursts=True)

    return begin


def member(name: str, gang: str = "forming") -> PodBuilder:
    return make_pod(name).gpus(1).gang(gang)


def create(
    world: World, count: int, shape: Callable[[str], PodBuilder] = member, *, prefix: str = "w"
) -> None:
    """Within one second; the gang stays incomplete, so that nothing is planned."""
    world.put(make_group("forming", 1000))
    for number in range(count):
        world.put(shape(f"{prefix}{number}"))
    world.tick()


def used(gpus: int) -> list[PodBuilder]:
    """So many GPUs of each node."""
    return [make_pod(f"u{number}").gpus(gpus).on(name) for number, name in enumerate(NAMES)]


def waits(world: World, *, gpus: int) -> None:
    """A gang of one member that needs a node for itself, where none is left."""
    world.put(make_group("waits", 1))
    world.put(member("waits-0", "waits").gpus(gpus).gated())
    world.tick()


# -- it begins, and it is over


def test_every_life_begins_with_gates(start: Start) -> None:
    assert start().gates_left_off == [False]


def test_a_burst_begins_with_enough_members_in_a_second_and_ends_when_they_come_slowly(start: Start) -> None:
    here = start()
    create(here, RATE - 1)
    assert here.gates_left_off == [False]
    create(here, 1, prefix="x")
    assert here.gates_left_off == [False, True]
    here.tick(0.9)
    assert here.gates_left_off == [False, True], "said once"
    here.tick(1.0)
    assert here.gates_left_off == [False, True, False]


def test_it_goes_on_while_a_quarter_as_many_come(start: Start) -> None:
    here = start()
    create(here, RATE)
    for second in range(3):
        here.tick(0.9)
        create(here, RATE // 4, prefix=f"slow{second}-")
    assert here.gates_left_off == [False, True]
    here.tick(1.0)
    create(here, RATE // 4 - 1, prefix="slower-")
    assert here.gates_left_off == [False, True, False]


def test_members_that_come_at_a_walk_are_no_burst(start: Start) -> None:
    here = start()
    for second in range(4):
        create(here, RATE // 2, prefix=f"s{second}-")
        here.tick(1.0)
    assert here.gates_left_off == [False]


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda name: make_pod(name).gpus(1), id="single pods: they queue by their gate"),
        pytest.param(lambda name: make_pod(name).gpus(1).gated(), id="gangs of one"),
        pytest.param(lambda name: member(name).scheduler("other"), id="members of another scheduler"),
        pytest.param(lambda name: member(name).on("n00"), id="members on a node"),
        pytest.param(lambda name: member(name).phase("Failed"), id="members that are over"),
    ],
)
def test_who_gets_no_gate_for_its_gang_does_not_count(
    start: Start, shape: Callable[[str], PodBuilder]
) -> None:
    here = start()
    create(here, 2 * RATE, shape)
    assert here.gates_left_off == [False]


def test_a_pod_that_changes_has_not_come_again(start: Start) -> None:
    here = start()
    for _ in range(RATE):
        create(here, 2)
    assert here.gates_left_off == [False]


def test_the_first_list_is_no_burst(start: Start) -> None:
    pods = [member(f"w{number}") for number in range(2 * RATE)]
    assert start(*NODES, *pods).gates_left_off == [False]


def test_zero_is_never(start: Start) -> None:
    here = start(timing=Timing(seen_seconds=0.0, burst_pods_per_second=0))
    create(here, 100)
    assert here.gates_left_off == [False]


# -- room


def test_no_burst_where_what_comes_would_soon_fill_the_cluster(start: Start) -> None:
    here = start(*NODES[:2])
    create(here, RATE)
    assert here.gates_left_off == [False]


def test_used_devices_are_no_room(start: Start) -> None:
    here = start(*NODES, *used(7))
    create(here, RATE)
    assert here.gates_left_off == [False]


def test_reserved_seats_are_no_room(start: Start) -> None:
    here = start()
    here.put(make_group("planned", len(NAMES)))
    for number in range(len(NAMES)):
        here.put(member(f"planned-{number}", "planned").gpus(7).gated())
    here.tick(2.0)
    create(here, RATE)
    assert here.gates_left_off == [False]


def test_no_burst_while_a_gang_waits_for_room(start: Start) -> None:
    here = start(*NODES, *used(1))
    waits(here, gpus=8)
    create(here, RATE)
    assert here.gates_left_off == [False]


def test_a_burst_ends_at_once_when_a_gang_has_to_wait(start: Start) -> None:
    here = start(*NODES, *used(1))
    create(here, RATE)
    waits(here, gpus=8)
    assert here.gates_left_off == [False, True, False]


def test_a_gang_that_can_never_fit_does_not_count(start: Start) -> None:
    here = start()
    waits(here, gpus=9)
    here.tick(5.0)  # the narrator has looked into it
    create(here, RATE)
    assert here.gates_left_off == [False, True]


def waived(name: str, gang: str = "forming") -> PodBuilder:
    """Created in a burst."""
    return member(name, gang).set("metadata.annotations", {"muster.dev/gate": "none"})


def test_members_without_the_gate_will_need_room_before_they_have_seats(start: Start) -> None:
    here = start()
    rooms = len(NAMES) * 8 // RATE
    for second in range(rooms):
        create(here, RATE, waived, prefix=f"s{second}-")
        here.tick(0.9)
    assert here.gates_left_off == [False, True, False], "its gang is not complete and nothing is reserved"
    free = len(NAMES) * 8 - RATE * (rooms - ROOM_WINDOWS)
    assert free >= ROOM_WINDOWS * RATE


def test_of_members_with_seats_the_reservation_is_enough(start: Start) -> None:
    here = start()
    size = len(NAMES) * 8 - ROOM_WINDOWS * RATE
    here.put(make_group("seated", size))
    for number in range(size):
        here.put(waived(f"seated-{number}", "seated"))
    here.tick(2.0)
    assert len(here.service.inventory.book) == size
    assert here.gates_left_off == [False], "so many could not come five times again"
    create(here, RATE)
    assert here.gates_left_off == [False, True], "so few can"


def test_members_that_are_bound_or_gone_need_no_room_any_more(start: Start) -> None:
    here = start()
    many = [waived(f"w{number}") for number in range(250)]
    for one in many:
        here.put(one)
    here.tick(REST_SECONDS + 2.0)
    create(here, RATE, prefix="x")
    assert here.gates_left_off[-1] is False
    for number, one in enumerate(many):
        if number % 2:
            here.remove(one)
        else:
            here.put(one.on(NAMES[number % 10]))
    here.tick(2.0)
    create(here, RATE, prefix="y")
    assert here.gates_left_off[-1] is True


# -- whether it is worth it


@pytest.mark.parametrize(("failures", "lasts"), [(RATE // 4, True), (RATE // 4 + 1, False)])
def test_a_burst_of_which_many_attempts_fail_is_over(start: Start, failures: int, lasts: bool) -> None:
    here = start()
    create(here, RATE)
    for number in range(failures):
        here.put(member(f"w{number}").attempted("no"))
    here.tick(0.1)
    assert here.gates_left_off == ([False, True] if lasts else [False, True, False])


def test_a_gate_is_no_failed_attempt(start: Start) -> None:
    here = start()
    create(here, RATE, lambda name: member(name).gated())
    for number in range(RATE):
        here.put(member(f"w{number}").gated().attempted("no"))
    here.tick(0.1)
    assert here.gates_left_off == [False, True]


def test_between_two_bursts_there_is_rest(start: Start) -> None:
    here = start()
    create(here, RATE)
    here.tick(2.0)
    assert here.gates_left_off == [False, True, False]
    for second in range(int(REST_SECONDS) - 2):
        create(here, RATE, prefix=f"s{second}-")
        here.tick(1.0)
    assert here.gates_left_off == [False, True, False]
    here.tick(2.0)
    create(here, RATE, prefix="later-")
    assert here.gates_left_off == [False, True, False, True]


# -- members without the gate queue with the others


def test_a_complete_gang_without_gates_is_planned_in_its_turn(start: Start) -> None:
    here = start(make_node("n1").gpus(2))
    here.put(make_group("old", 2).created("2026-01-01T00:00:00Z"))
    here.put(make_group("new", 2).created("2026-01-02T00:00:00Z"))
    for gang, shape in (("new", member("new-0", "new").gated()), ("old", waived("old-0", "old"))):
        here.put(shape)
        assert seats(here) == {}, f"{gang} is not complete"
    here.put(waived("old-1", "old"))
    here.put(member("new-1", "new").gated())
    assert seats(here) == {"old-0": "n1", "old-1": "n1"}, "though kube-scheduler has asked about neither"


# -- whom to tell, and when


def test_without_the_object_to_label_every_member_is_gated_and_it_is_looked_for_less_and_less(
    start: Start,
) -> None:
    here = start()
    here.burst_outcome = Outcome(error="no such ConfigMap", gone=True)
    for second in range(9):
        create(here, RATE, prefix=f"s{second}-")
        assert here.service.burst is not None
        assert here.service.burst.told is False
        here.tick(1.0)
    assert here.gates_left_off == [False, True, True, True, True], "after 0, 1, 2 and 4 seconds"


def test_an_object_that_is_taken_away_in_a_burst_ends_it(start: Start) -> None:
    here = start()
    create(here, RATE)
    here.burst_outcome = Outcome(error="no such ConfigMap", gone=True)
    here.tick(REPEAT_SECONDS - 1)
    assert here.gates_left_off == [False, True, False], "gone is as good as told"


def test_one_word_at_a_time(start: Start) -> None:
    here = start()
    here.burst_heard = asyncio.Event()
    create(here, RATE)
    here.tick(0.1)  # the burst lasts
    here.tick(5.0)  # and now it does not
    assert here.gates_left_off == [False, True], "the answer is still on its way"
    here.burst_heard.set()
    here.tick(0.1)
    here.tick(0.1)
    assert here.gates_left_off == [False, True, False]


def test_the_end_of_a_burst_is_told_until_it_is_heard(start: Start) -> None:
    here = start()
    create(here, RATE)
    here.burst_outcome = Outcome(error="no answer")
    here.tick(2.0)
    assert here.gates_left_off == [False, True, False, False], "when it is over, and a second later"
    here.tick(1.0)
    assert here.gates_left_off == [False, True, False, False]
    here.tick(1.0)
    assert here.gates_left_off == [False, True, False, False, False], "and two seconds later"
    here.burst_outcome = Outcome()
    here.tick(4.0)
    said = len(here.gates_left_off)
    here.tick(REPEAT_SECONDS / 2)
    assert len(here.gates_left_off) == said


def test_a_beginning_whose_answer_was_lost_may_have_been_heard(start: Start) -> None:
    here = start()
    here.burst_outcome = Outcome(error="no answer")
    create(here, RATE)
    here.burst_outcome = Outcome()
    here.tick(3.0)
    assert here.gates_left_off == [False, True, False]


def test_the_last_word_is_said_again_now_and_then(start: Start) -> None:
    here = start()
    here.tick(REPEAT_SECONDS + 1)
    assert here.gates_left_off == [False, False]


def test_whoever_sees_nothing_sees_no_burst(start: Start) -> None:
    here = start()
    create(here, RATE)
    here.problems = ["the watch is silent"]
    here.tick(0.1)
    assert here.gates_left_off == [False, True, False]


def test_a_replica_that_stands_by_says_nothing_and_begins_anew_with_gates(start: Start) -> None:
    here = start()
    here.active = False
    here.tick(1.0)
    create(here, RATE)
    assert here.gates_left_off == [False]
    here.active = True
    here.tick(0.1)
    assert here.gates_left_off == [False, False]


def test_a_burst_before_the_change_of_leaders_is_forgotten(start: Start) -> None:
    here = start()
    create(here, RATE)
    for active in (False, True):
        here.active = active
        here.tick(0.1)
    assert here.gates_left_off == [False, True, False]


def test_gates_are_on_again_when_the_process_ends(start: Start) -> None:
    here = start()
    create(here, RATE)
    here.run(here.service.stop())
    assert here.gates_left_off == [False, True, False]


def test_the_process_ends_while_a_word_is_on_its_way(start: Start) -> None:
    here = start()
    here.burst_heard = asyncio.Event()
    create(here, RATE)
    here.loop.call_soon(here.burst_heard.set)
    here.run(here.service.stop())
    assert here.gates_left_off == [False, True, False]


def test_a_process_that_ends_outside_of_a_burst_has_nothing_to_say(start: Start) -> None:
    here = start()
    here.run(here.service.stop())
    assert here.gates_left_off == [False]
