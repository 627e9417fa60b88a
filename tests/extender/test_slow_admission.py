# SPDX-License-Identifier: Apache-2.0
"""Thousands of pods at once, an API server or a kube-scheduler that takes its time: gangs are admitted one
after the other, each pod once, and none loses its seats because others were before it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from app.extender.timing import Timing
from tests.builders import make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.diary import Diary
from tests.extender.world import World

GANGS, MEMBERS = 5, 24
NOMINATING = Timing(seen_seconds=0.0, nominate_from_nodes=1)
NODES = [f"n{gang}" for gang in range(GANGS)]


class Turns:
    """In place of an event that holds writes: each `grant` lets one of them through."""

    def __init__(self) -> None:
        self._granted = asyncio.Semaphore(0)

    async def wait(self) -> None:
        await self._granted.acquire()

    def grant(self) -> None:
        self._granted.release()


@pytest.fixture
def slow(make: Make) -> Iterator[tuple[World, Diary, Turns]]:
    """A node per gang; no write is answered before it is granted."""
    world = make(*(make_node(name).gpus(MEMBERS) for name in NODES), timing=NOMINATING)
    diary, turns = Diary(world), Turns()
    diary.hold = turns  # type: ignore[assignment]  # waits like an event
    yield world, diary, turns
    diary.hold = None
    for _ in range(GANGS * MEMBERS):
        turns.grant()
    world.idle()


def put_gangs(world: World) -> None:
    for gang in range(GANGS):
        world.put(make_group(f"g{gang}", MEMBERS).created(f"2026-01-01T00:00:0{gang}Z"))
        for member in range(MEMBERS):
            world.put(make_pod(f"g{gang}-{member}").gpus(1).gang(f"g{gang}").gated())


def lines_of(written: list[str], verb: str, gang: str) -> list[int]:
    """Where in the diary the pods of a gang are written about."""
    return [spot for spot, line in enumerate(written) if line.startswith(f"{verb} {gang}-")]


def test_the_first_gang_is_through_before_the_last_begins(slow: tuple[World, Diary, Turns]) -> None:
    world, diary, turns = slow
    put_gangs(world)
    for _ in range(2 * GANGS * MEMBERS):
        turns.grant()
        world.idle()
    assert len(diary.written) == 2 * GANGS * MEMBERS, "each pod is nominated once and let in once"
    for before, after in zip(range(GANGS), range(2, GANGS), strict=False):
        assert (
            lines_of(diary.written, "lift", f"g{before}")[-1]
            < lines_of(diary.written, "nominate", f"g{after}")[0]
        )


def test_waiting_for_our_own_writes_is_not_idling(slow: tuple[World, Diary, Turns]) -> None:
    """Four minutes of writes, one a second; an idle plan lapses after half a minute."""
    world, diary, turns = slow
    put_gangs(world)
    for gang in range(GANGS):
        assert len(seats(world)) == (GANGS - gang) * MEMBERS
        while any(
            world.get("Pod", f"g{gang}-{member}")["spec"].get("schedulingGates") for member in range(MEMBERS)
        ):
            world.tick(1.0)
            turns.grant()
            world.idle()
        schedule(world, gang)
    assert len(diary.written) == 2 * GANGS * MEMBERS


def test_a_pod_in_line_whose_seat_moves_is_nominated_for_the_seat_it_has_then(
    slow: tuple[World, Diary, Turns],
) -> None:
    world, diary, turns = slow
    put_gangs(world)
    last = seats(world)[f"g{GANGS - 1}-0"]
    world.put(make_node("spare").gpus(MEMBERS))
    world.remove(make_node(last))
    for _ in range(4 * GANGS * MEMBERS):
        turns.grant()
        world.idle()
    moved = [line for line in diary.written if line.startswith(f"nominate g{GANGS - 1}-")]
    assert sorted(moved) == sorted(f"nominate g{GANGS - 1}-{member} spare" for member in range(MEMBERS))
    assert len(lines_of(diary.written, "lift", f"g{GANGS - 1}")) == MEMBERS


# -- a kube-scheduler that takes its time


def admitted(make: Make) -> World:
    """All gangs have their seats and are let in."""
    world = make(*(make_node(name).gpus(MEMBERS) for name in NODES), timing=NOMINATING)
    put_gangs(world)
    return world


def schedule(world: World, gang: int) -> None:
    """Every member is tried, and bound."""
    names = [f"g{gang}-{member}" for member in range(MEMBERS)]
    nodes = [world.filter(name, NODES)["NodeNames"][0] for name in names]
    held = [world.bind(name, node) for name, node in zip(names, nodes, strict=True)]
    world.idle()
    assert {World.error(task) for task in held} == {""}


def test_a_gang_far_back_in_the_queue_keeps_its_seats(make: Make) -> None:
    world = admitted(make)
    for gang in range(GANGS):
        world.tick(20)
        assert len(seats(world)) == (GANGS - gang) * MEMBERS
        schedule(world, gang)


def test_a_gang_that_is_passed_by_in_the_queue_lapses(make: Make) -> None:
    world = admitted(make)
    for gang in (0, 2):  # nobody asks about gang 1
        world.tick(20)
        schedule(world, gang)
    world.tick(12)
    assert not [name for name in seats(world) if name.startswith("g1-")]


def test_a_scheduler_that_asks_for_nothing_keeps_no_seats(make: Make) -> None:
    world = admitted(make)
    world.tick(32)
    assert not seats(world)
