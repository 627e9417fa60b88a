# SPDX-License-Identifier: Apache-2.0
"""A report made beside the loop is the one that would have been made on it, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from app.domain.changes import Change
from app.domain.errors import InputError
from app.domain.ids import GangKey
from app.domain.reasons import Refusal
from app.explain.explain import explain
from app.explain.report import Report, Subject
from app.explain.sight import Sight
from app.extender.insight import explained, facts_of
from tests.builders import Builder, gone, key, make_group, make_node, make_pod, seen
from tests.extender.world import World

NOW = 1_767_229_200
NODES = [make_node(f"n{index}").gpus(8) for index in range(3)]
HOLDERS = [make_pod(f"h{index}").gpus(8).on(f"n{index}") for index in range(3)]
LOST = make_node("lost").label("nvidia.com/gpu.present", "true")
WAITS = [make_pod(name).gpus(8).gang("waits").gated() for name in "ab"]
PLANNED = [make_pod(f"p{name}").cpu("1").gang("planned").gated() for name in "ab"]
ALONE = make_pod("alone").gpus(4).scheduler("default-scheduler")
OBJECTS: list[Builder] = [
    *NODES, LOST, *HOLDERS, make_group("waits", 2), *WAITS, make_group("planned", 2), *PLANNED, ALONE,
]  # fmt: skip
SUBJECTS = [
    Subject("podgroup", "default", "waits"),
    Subject("podgroup", "default", "planned"),
    Subject("pod", "default", "a"),
    Subject("pod", "default", "alone"),
    Subject("pod", "default", "h1"),
]


@pytest.fixture
def world() -> Iterator[World]:
    made = World(*OBJECTS)
    yield made
    made.close()


def sight_of(world: World, subject: Subject) -> Sight:
    return world.run(world.cluster.read(subject))


def beside(world: World, subject: Subject, sight: Sight) -> Report:
    return world.run(explained(world.service, sight, subject, now=NOW))


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_it_is_the_same_as_on_the_loop(world: World, subject: Subject) -> None:
    sight = sight_of(world, subject)
    on_the_loop = explain(facts_of(world.service, sight, now=NOW), subject)
    assert on_the_loop.verdict.sentence
    assert beside(world, subject, sight) == on_the_loop


CHANGES = {
    "nodes come": [seen(make_node(f"late{index}").gpus(8)) for index in range(70)],
    "nodes go": [gone(node) for node in NODES],
    "labels change": [seen(LOST.label("nvidia.com/gpu.present", "false"))],
    "holders go": [gone(pod) for pod in HOLDERS],
    "new resources appear": [
        seen(make_pod("odd").gpus(1, f"example.com/r{index}").on("n1")) for index in range(9)
    ],
    "the gang goes": [gone(pod) for pod in WAITS],
    "the gang binds": [seen(pod.on("n1")) for pod in WAITS],
    "gangs come": [
        change
        for i in range(9)
        for change in (seen(make_group(f"x{i}", 1)), seen(make_pod(f"x{i}").gang(f"x{i}")))
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_happens_meanwhile_is_not_in_it(
    world: World, monkeypatch: pytest.MonkeyPatch, change: list[Change]
) -> None:
    """Muster is asked for its reason in the midst of it: there everything changes."""
    subject = SUBJECTS[0]
    sight, roster = sight_of(world, subject), world.service.roster
    refusal = roster.refusal(key("waits"))
    before = explain(facts_of(world.service, sight, now=NOW), subject)
    asked: list[threading.Thread] = []

    def changed(_: GangKey) -> Refusal:
        if not asked:
            world.service.observe(change)
        asked.append(threading.current_thread())
        return refusal

    monkeypatch.setattr(roster, "refusal", changed)
    assert beside(world, subject, sight) == before
    assert set(asked) == {threading.main_thread()}, "only the loop may diagnose"


def test_the_loop_goes_on_meanwhile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report waits for something that only another turn of the loop brings."""
    subject, turned = SUBJECTS[3], threading.Event()
    sight = sight_of(world, subject)

    def waiting(*args: object) -> str:
        assert turned.wait(10), "the loop stood still"
        return "made"

    monkeypatch.setattr("app.extender.insight.explain", waiting)

    async def turn() -> None:
        turned.set()

    async def both() -> object:
        made, _ = await asyncio.gather(explained(world.service, sight, subject, now=NOW), turn())
        return made

    assert world.run(both()) == "made"


def test_who_is_not_there_is_an_error_here_too(world: World) -> None:
    subject = Subject("pod", "default", "gone")
    with pytest.raises(InputError, match="there is no pod default/gone"):
        beside(world, subject, sight_of(world, subject))
