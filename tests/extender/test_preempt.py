# SPDX-License-Identifier: Apache-2.0
"""Preempt calls: never a victim that leaves a gang below its minimum, unless it is the whole gang."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest

from tests.builders import PodBuilder, make_group, make_node, make_pod, preempt_body
from tests.extender.conftest import Make
from tests.extender.world import World

PREEMPTOR = make_pod("p").gpus(1).priority(1000)


def member(name: str, gang: str = "g") -> PodBuilder:
    return make_pod(name).gpus(1).gang(gang)


def send(world: World, body: bytes) -> dict[str, Any]:
    answer = orjson.loads(world.run(world.service.preempt(body)))
    assert set(answer) == {"NodeNameToMetaVictims"}
    kept: dict[str, Any] = answer["NodeNameToMetaVictims"]
    return kept


def kept(
    world: World, victims: Mapping[str, Sequence[PodBuilder]], pod: PodBuilder = PREEMPTOR
) -> dict[str, list[str]]:
    """Node → names of the victims, of the candidates that were kept."""
    answer = send(world, preempt_body(pod, victims))
    return {
        node: [pod["UID"].removeprefix("uid-") for pod in entry["Pods"]] for node, entry in answer.items()
    }


@pytest.fixture
def world(make: Make) -> World:
    """A gang of three whose minimum is two, one of two, a single pod; the preemptor."""
    return make(
        make_node("n1").gpus(8), make_node("n2").gpus(8), make_node("n3").gpus(8), PREEMPTOR,
        make_group("three", 2), *(member(f"t{n}", "three").on("n1") for n in range(3)),
        make_group("two", 2), *(member(f"w{n}", "two").on("n2") for n in range(2)),
        make_pod("single").gpus(1).on("n3"),
    )  # fmt: skip


T0, T1, T2 = (member(f"t{n}", "three") for n in range(3))
W0, W1 = (member(f"w{n}", "two") for n in range(2))
SINGLE = make_pod("single")


@pytest.mark.parametrize(
    ("victims", "want"),
    [
        pytest.param({"n2": [W0], "n3": [SINGLE]}, {"n3"}, id="one of a gang at its minimum is spared"),
        pytest.param({"n1": [T0], "n2": [W0]}, {"n1"}, id="one above the minimum may go"),
        pytest.param({"n1": [T0, T1]}, set(), id="two of three leave a cripple"),
        pytest.param(
            {"n2": [W0, W1], "n3": [SINGLE]}, {"n3"}, id="a whole gang is spared for something cheaper"
        ),
        pytest.param({"n2": [W0, W1]}, {"n2"}, id="a whole gang goes if nothing is cheaper"),
        pytest.param(
            {"n1": [T0, T1, T2], "n2": [W0]}, {"n1"}, id="a whole gang rather than a part of another"
        ),
        pytest.param({"n2": [W0, W1, T0]}, {"n2"}, id="a whole gang and one above the minimum of another"),
        pytest.param({"n2": [W0, W1, T0, T1]}, set(), id="a whole gang and a part of another"),
        pytest.param({"n3": [SINGLE, W0]}, set(), id="a part of a gang beside a single pod"),
        pytest.param({"n3": [make_pod("unknown")]}, {"n3"}, id="a victim we do not know is nobody's member"),
        pytest.param({"n3": [], "n1": [T0]}, {"n1"}, id="a node without victims is never answered"),
        pytest.param({}, set(), id="no candidates"),
    ],
)
def test_which_candidates_are_kept(
    world: World, victims: dict[str, list[PodBuilder]], want: set[str]
) -> None:
    names = {node: [pod.get("metadata.name") for pod in victims[node]] for node in want}
    assert kept(world, victims) == names, "with their victims unchanged"


def test_both_forms_of_the_body_are_understood_and_answered_with_uids(world: World) -> None:
    victims = {"n1": {"Pods": [T0.build()], "NumPDBViolations": 1}, "n2": {"Pods": [W0.build()]}}
    body = {"Pod": PREEMPTOR.build(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    assert send(world, orjson.dumps(body)) == {"n1": {"Pods": [{"UID": "uid-t0"}], "NumPDBViolations": 1}}


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(member("m").priority(1000), id="a member"),
        pytest.param(make_pod("m").native("g").priority(1000), id="a member by the native API"),
        pytest.param(member("m").native("h").priority(1000), id="a pod of two gangs"),
        pytest.param(member("unseen").priority(1000), id="a member that the watch has not shown"),
    ],
)
def test_a_gang_member_preempts_nobody(world: World, pod: PodBuilder) -> None:
    if pod.get("metadata.name") == "m":
        world.put(pod)
    assert kept(world, {"n3": [SINGLE]}, pod) == {}


def test_a_gang_of_one_may_preempt(world: World) -> None:
    pod = make_pod("s").gpus(1).priority(1000).gated()
    assert kept(world, {"n3": [SINGLE]}, pod) == {"n3": ["single"]}, "the watch may be behind"
    world.put(pod)
    assert kept(world, {"n3": [SINGLE]}, pod) == {"n3": ["single"]}


def test_members_held_at_the_barrier_count_as_standing(make: Make) -> None:
    held = [member(name) for name in "abc"]
    world = make(make_node("n1").gpus(3), make_group("g", 3), *held)
    for name in "abc":
        world.filter(name, ["n1"])
    calls = [world.bind(name, "n1") for name in "ab"]
    assert [world.error(call) for call in calls] == [None, None]
    assert kept(world, {"n1": [held[0]]}) == {}, "the other would wait in vain"
    assert kept(world, {"n1": held[:2]}) == {"n1": ["a", "b"]}


@pytest.mark.parametrize("minimum", [1, 2])
def test_members_that_succeeded_count_as_long_as_another_goes_on(make: Make, minimum: int) -> None:
    done = member("done").on("n1", phase="Succeeded")
    running = [member(name).on("n1") for name in "ab"]
    world = make(make_node("n1").gpus(3), make_group("g", minimum), done, *running)
    assert kept(world, {"n1": running[:1]}) == {"n1": ["a"]}, "one runs and one has succeeded"
    cheaper = {"n1": running, "n2": [SINGLE]}
    assert kept(world, cheaper) == {"n2": ["single"]}, "with both gone nothing is left of it"


def test_what_is_left_of_a_wounded_gang_counts_as_the_whole(make: Make) -> None:
    world = make(make_node("n1").gpus(3), make_group("g", 2), member("a").on("n1"))
    assert kept(world, {"n1": [member("a")]}) == {"n1": ["a"]}
    assert kept(world, {"n1": [member("a")], "n2": [SINGLE]}) == {"n2": ["single"]}


def test_a_gang_without_a_pod_group_has_no_minimum_to_keep(make: Make) -> None:
    world = make(make_node("n1").gpus(3), member("a").on("n1"), member("b").on("n1"))
    assert kept(world, {"n1": [member("a")]}) == {"n1": ["a"]}


def test_nobody_is_evicted_where_the_preemptor_would_not_fit_then_either(make: Make) -> None:
    gang = [make_pod(name).gpus(2).gang("g").gated() for name in "ab"]
    low = make_pod("low").gpus(2).on("n1")
    world = make(make_node("n1").gpus(6), make_group("g", 2), low, *gang)
    assert kept(world, {"n1": [low]}, make_pod("p").gpus(3).priority(9)) == {}, "the rest is reserved"
    assert kept(world, {"n1": [low]}, make_pod("p").gpus(2).priority(9)) == {"n1": ["low"]}


@pytest.mark.parametrize("state", ["passive", "not ready"])
def test_a_process_that_may_not_decide_preempts_nobody(world: World, state: str) -> None:
    if state == "passive":
        world.active = False
        world.tick()
    else:
        world.problems = ["pods are not listed yet"]
    assert kept(world, {"n3": [SINGLE]}) == {}
