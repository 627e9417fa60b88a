# SPDX-License-Identifier: Apache-2.0
"""Bind calls: nothing of a gang is bound before its minimum is there, and nobody waits in vain."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from app.extender.bind import AT_ONCE, NOT_ACTIVE
from app.extender.timing import Timing
from tests.builders import GPU, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make
from tests.extender.world import World


def member(name: str) -> PodBuilder:
    return make_pod(name).gpus(1).gang("g")


@pytest.fixture
def world() -> Iterator[World]:
    """Three members on a node of three; all filtered, none bound."""
    made = World(
        make_node("n1").gpus(3), make_group("g", min_member=3), member("a"), member("b"), member("c"),
        timing=Timing(seen_seconds=0.0, hold_seconds=15, gang_seconds=100, plan_seconds=30),
    )  # fmt: skip
    for name in "abc":
        assert made.filter(name, ["n1"])["NodeNames"] == ["n1"]
    yield made
    made.close()


def seats(world: World) -> int:
    return len(world.service.inventory.book)


def reserved(world: World) -> int:
    columns = world.service.inventory.columns
    return columns.cell(GPU, columns.row_of["n1"])[2]  # type: ignore[index]


def test_members_are_held_until_the_minimum_stands_at_the_barrier(world: World) -> None:
    calls = [world.bind("a", "n1"), world.bind("b", "n1")]
    assert [world.error(call) for call in calls] == [None, None]
    assert world.node_of("a") is None

    calls.append(world.bind("c", "n1"))
    assert [world.error(call) for call in calls] == ["", "", ""]
    assert [world.node_of(name) for name in "abc"] == ["n1"] * 3
    assert seats(world) == 0, "the watch has turned the seats into usage"


def test_a_member_deleted_while_held_is_answered_at_once_and_its_replacement_joins(world: World) -> None:
    first, second = world.bind("a", "n1"), world.bind("b", "n1")
    world.remove(member("a"))
    assert "deleted" in (world.error(first) or "")
    assert world.error(second) is None, "the others wait for the replacement"

    world.put(member("d"))
    assert world.filter("d", ["n1"])["NodeNames"] == ["n1"]
    calls = [world.bind("c", "n1"), world.bind("d", "n1")]
    assert [world.error(call) for call in (second, *calls)] == ["", "", ""]


def test_the_hold_lasts_while_a_member_waits_its_turn_in_a_queue_that_moves(make: Make) -> None:
    world = make(
        make_node("n1").gpus(9), make_group("g", 2), member("a"), member("b"), make_group("h", 2),
        make_pod("h0").gpus(1).gang("h"), timing=Timing(seen_seconds=0.0, hold_seconds=15, gang_seconds=100),
    )  # fmt: skip
    world.filter("a", ["n1"])
    call = world.bind("a", "n1")
    for _ in range(50):
        world.tick(1.0)
        world.filter("h0", ["n1"])  # kube-scheduler is busy with others
    assert world.error(call) is None
    world.tick(14.0)
    assert world.error(call) is None, "quiet for less than the hold"
    world.tick(4.0)
    assert "1 of 2" in (world.error(call) or "")


def test_a_member_whose_attempt_failed_prolongs_no_hold(make: Make) -> None:
    world = make(
        make_node("n1").gpus(9), make_group("g", 2), member("a"), member("b"), make_group("h", 2),
        make_pod("h0").gpus(1).gang("h"), timing=Timing(seen_seconds=0.0, hold_seconds=15, gang_seconds=100),
    )  # fmt: skip
    for name in "ab":
        world.filter(name, ["n1"])
    call = world.bind("a", "n1")
    world.put(member("b").attempted("no"))
    for _ in range(17):
        world.tick(1.0)
        world.filter("h0", ["n1"])
    assert "1 of 2" in (world.error(call) or ""), "b was tried, and has not come back"


def test_the_hold_ends_when_nobody_arrives_and_nothing_stays_reserved(world: World) -> None:
    calls = [world.bind("a", "n1"), world.bind("b", "n1")]
    world.apply("DELETED", world.get("Pod", "c"))  # nobody is on the way any more
    world.tick(14)
    assert [world.error(call) for call in calls] == [None, None]
    world.tick(3)
    assert all("2 of 3 members came to bind in time" in (world.error(call) or "") for call in calls)
    assert (seats(world), reserved(world)) == (0, 0)


def test_a_member_on_its_way_keeps_the_hold_open_until_the_gangs_own_deadline(world: World) -> None:
    calls = [world.bind("a", "n1"), world.bind("b", "n1")]
    world.tick(60)
    assert [world.error(call) for call in calls] == [None, None]
    world.tick(45)
    assert all(world.error(call) for call in calls)


def test_schedule_timeout_seconds_of_the_pod_group_is_the_deadline(world: World) -> None:
    world.put(make_group("g", min_member=3).timeout(20))
    for name in "abc":
        world.filter(name, ["n1"])
    call = world.bind("a", "n1")
    world.tick(19)
    assert world.error(call) is None
    world.tick(3)
    assert world.error(call)


def test_deleting_the_pod_group_answers_held_calls_at_once(world: World) -> None:
    call = world.bind("a", "n1")
    world.remove(make_group("g", min_member=3))
    assert "no PodGroup" in (world.error(call) or "")
    assert reserved(world) == 0


def test_lowering_the_minimum_opens_the_barrier(world: World) -> None:
    calls = [world.bind("a", "n1"), world.bind("b", "n1")]
    world.put(make_group("g", min_member=2))
    assert [world.error(call) for call in calls] == ["", ""]


def test_a_node_filled_by_others_while_members_are_held_turns_them_away(world: World) -> None:
    calls = [world.bind("a", "n1"), world.bind("b", "n1")]
    world.put(make_pod("foreign").gpus(2).scheduler("default-scheduler").on("n1"))
    assert all("filled by others" in (world.error(call) or "") for call in calls)
    assert world.error(world.bind("c", "n1"))
    assert not world.wrong


def test_becoming_passive_answers_held_calls_and_forgets_all_plans(world: World) -> None:
    call = world.bind("a", "n1")
    world.active = False
    world.tick()
    assert world.error(call)
    assert seats(world) == 0
    assert "not active" in (world.error(world.bind("b", "n1")) or "")


def test_shutdown_answers_held_calls_with_an_error(world: World) -> None:
    call = world.bind("a", "n1")
    world.run(world.service.stop())
    assert "shutting down" in (world.error(call) or "")


def test_a_lost_answer_keeps_the_seat_for_the_same_pod_which_is_retried_first(world: World) -> None:
    world.bind("a", "n1")
    world.bind("b", "n1")
    world.fail_next = "before"
    calls = world.bind("c", "n1")
    bound = [name for name in "abc" if world.node_of(name)]
    assert len(bound) == 2
    left = next(name for name in "abc" if name not in bound)
    assert reserved(world) == 1, "the seat of the one that failed"
    assert world.filter(left, ["n1"])["NodeNames"] == ["n1"]
    assert world.error(world.bind(left, "n1")) == "", "a gang with its minimum bound passes at once"
    assert calls.done()


@pytest.mark.parametrize("change", ["min raised", "group deleted"])
def test_a_lost_answer_keeps_the_place_of_a_pod_that_may_be_bound_whatever_happens_to_its_gang(
    make: Make, change: str
) -> None:
    world = make(make_node("n1").gpus(1), make_group("g", min_member=1), member("a"), lag=True)
    world.filter("a", ["n1"])
    world.fail_next = "after"
    world.bind("a", "n1")
    binding = world.unseen.pop()
    if change == "min raised":
        world.put(make_group("g", min_member=2))
    else:
        world.remove(make_group("g"))
    world.see()
    assert reserved(world) == 1, "the pod is on its node, which the watch has not shown yet"
    world.unseen.append(binding)
    world.see()
    assert (seats(world), reserved(world)) == (0, 0), "the seat has become usage"


@pytest.mark.parametrize("change", ["node filled", "group deleted"])
def test_the_place_of_a_member_in_doubt_is_given_back_when_it_was_not_bound(make: Make, change: str) -> None:
    world = make(make_node("n1").gpus(1), make_group("g", min_member=1), member("a"))
    world.filter("a", ["n1"])
    world.fail_next = "before"
    world.bind("a", "n1")
    if change == "node filled":
        world.put(make_pod("foreign").gpus(1).scheduler("other").on("n1"))
    else:
        world.remove(make_group("g"))
    world.tick(4)
    assert reserved(world) == 1
    world.tick(2)
    assert reserved(world) == 0


def test_a_member_in_doubt_does_not_open_the_barrier_for_others(make: Make) -> None:
    world = make(make_node("n1").gpus(2), make_group("g", min_member=1), member("a"), member("b"))
    for name in "ab":
        world.filter(name, ["n1"])
    world.fail_next = "before"
    world.bind("a", "n1")
    world.put(make_group("g", min_member=2))
    call = world.bind("b", "n1")
    assert world.error(call) is None
    assert world.error(world.bind("a", "n1")) == "", "its next call ends the doubt"
    assert world.error(call) == ""


def test_a_second_call_replaces_the_first_and_a_stray_node_is_refused(world: World) -> None:
    first = world.bind("a", "n1")
    second = world.bind("a", "n1")
    assert "newer bind call" in (world.error(first) or "")
    assert world.error(second) is None
    assert "not known" in (world.error(world.bind("b", "n9")) or "")


def test_a_caller_that_hangs_up_leaves_the_barrier(world: World) -> None:
    gone = asyncio.Event()

    async def call() -> bytes:
        meta = world.get("Pod", "a")["metadata"]
        body = b'{"PodName":"a","PodNamespace":"default","PodUID":"%s","Node":"n1"}' % meta["uid"].encode()
        return await world.service.bind_call(body, hung_up=gone.wait)

    task = world.loop.create_task(call())
    world.idle()
    assert len(world.service.bind.barrier) == 1
    gone.set()
    world.idle()
    assert task.done()
    assert len(world.service.bind.barrier) == 0
    calls = [world.bind("b", "n1"), world.bind("c", "n1")]
    assert [world.error(call) for call in calls] == [None, None], "the one that left does not count"


def test_a_member_that_arrives_does_not_have_all_others_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"m{n:02d}" for n in range(40)]
    many = World(make_node("n1").gpus(40), make_group("g", min_member=40), *map(member, names))
    for name in names:
        many.filter(name, ["n1"])
    columns, looks = many.service.inventory.columns, list[int]()
    overdrawn = columns.overdrawn

    def counted(row: int) -> bool:
        looks.append(row)
        return overdrawn(row)

    monkeypatch.setattr(columns, "overdrawn", counted)
    calls = [many.bind(name, "n1") for name in names[:-1]]
    before = len(looks)
    assert before < 10
    calls.append(many.bind(names[-1], "n1"))
    assert [many.error(call) for call in calls] == [""] * 40
    assert len(looks) - before >= 40, "right before the bindings everybody is looked at"
    many.close()


# -- a gang of hundreds


class Posts:
    """How many POSTs were begun in each turn of a world's loop, from now on, and how many are done.

    Each takes some turns, later ones more.
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_turn: Counter[int] = Counter()
        self.done = 0
        self._turn, self._loop, self._post = 0, world.loop, world.post
        monkeypatch.setattr(world, "post", self.post)
        self._count()

    def _count(self) -> None:
        self._turn += 1
        self._loop.call_soon(self._count)

    async def begin(self) -> None:
        """Until the first are begun."""
        while not self.by_turn:  # noqa: ASYNC110 - turn by turn
            await asyncio.sleep(0)

    async def post(self, pod: PodRef, node: NodeName) -> Outcome:
        """One more."""
        self.by_turn[self._turn] += 1
        for _ in range(3 * (1 + self.by_turn.total() // AT_ONCE)):
            await asyncio.sleep(0)
        outcome = await self._post(pod, node)
        self.done += 1
        return outcome


@pytest.fixture
def large(make: Make) -> tuple[World, list[asyncio.Task[bytes]]]:
    """Three times as many members as are posted in a turn, all but `m0` at the barrier."""
    names = [f"m{n}" for n in range(3 * AT_ONCE)]
    world = make(make_node("n1").gpus(len(names)), make_group("g", len(names)), *map(member, names))
    for name in names:
        world.filter(name, ["n1"])
    return world, [world.bind(name, "n1") for name in names[1:]]


def test_a_large_gang_is_posted_a_few_members_in_each_turn_of_the_loop(
    large: tuple[World, list[asyncio.Task[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, calls = large
    posts = Posts(world, monkeypatch)
    calls.append(world.bind("m0", "n1"))
    world.idle()
    assert [world.error(call) for call in calls] == [""] * 3 * AT_ONCE
    assert sorted(posts.by_turn.values()) == [AT_ONCE] * 3


def test_members_whose_turn_has_not_come_are_not_posted_by_who_is_not_active_any_more(
    large: tuple[World, list[asyncio.Task[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, calls = large
    posts = Posts(world, monkeypatch)

    async def depose() -> None:
        await posts.begin()
        world.active = False

    calls.append(world.bind_soon("m0", "n1"))
    world.run(depose())
    world.idle()
    assert posts.done == posts.by_turn.total() == AT_ONCE
    errors = Counter(world.error(call) for call in calls)
    assert errors == {"": AT_ONCE, NOT_ACTIVE: 2 * AT_ONCE}


def test_shutdown_waits_for_members_whose_turn_has_not_come(
    large: tuple[World, list[asyncio.Task[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, calls = large
    posts = Posts(world, monkeypatch)

    async def stop_halfway() -> int:
        await posts.begin()
        begun = posts.by_turn.total()
        await world.service.stop()
        return begun

    calls.append(world.bind_soon("m0", "n1"))
    assert world.loop.run_until_complete(stop_halfway()) < 3 * AT_ONCE
    assert posts.done == 3 * AT_ONCE
    assert [world.error(call) for call in calls] == [""] * 3 * AT_ONCE
