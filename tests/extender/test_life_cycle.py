# SPDX-License-Identifier: Apache-2.0
"""The life-cycle table of docs/concepts.md: what becomes of a gang when its PodGroup or its pods change.

One test for each row, in both APIs; the current PodGroup object rules.
"""

from __future__ import annotations

import asyncio

import pytest

from app.domain.gang import GangState
from app.extender.states import state_of
from tests.builders import GPU, Builder, GroupBuilder, PodBuilder, key, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World


class Stage:
    """A node of four GPUs and a gang `g` of one of the two APIs."""

    def __init__(self, make: Make, *, native: bool) -> None:
        self._make = make
        self._native = native
        self.world: World

    def begin(self, *objects: Builder, gpus: int = 4) -> World:
        self.world = self._make(make_node("n1").gpus(gpus), *objects)
        return self.world

    def group(self, minimum: int = 3, uid: str = "uid-g") -> GroupBuilder:
        group = make_group("g", minimum).uid(uid)
        return group.native() if self._native else group

    def pod(self, name: str) -> PodBuilder:
        pod = make_pod(name).gpus(1)
        return pod.native("g") if self._native else pod.gang("g")

    def pods(self, names: str = "abc") -> list[PodBuilder]:
        return [self.pod(name) for name in names]

    def running(self, names: str = "abc") -> list[PodBuilder]:
        return [self.pod(name).on("n1") for name in names]

    def filters(self, names: str = "abc") -> list[bool]:
        """kube-scheduler tries each; which are accepted?"""
        return [bool(self.world.filter(name, ["n1"])["NodeNames"]) for name in names]

    def binds(self, names: str = "abc") -> list[asyncio.Task[bytes]]:
        return [self.world.bind(name, "n1") for name in names]

    def answers(self, calls: list[asyncio.Task[bytes]]) -> list[str | None]:
        return [self.world.error(call) for call in calls]

    def why(self, name: str = "a") -> str:
        refused: dict[str, str] = self.world.filter(name, ["n1"])["FailedAndUnresolvableNodes"]
        return refused["n1"]

    def bound(self) -> list[str]:
        pods = self.world.objects("Pod")
        return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName"))

    def is_(self, state: GangState) -> bool:
        gang = self.world.service.inventory.gangs.get(key("g", native=self._native))
        assert gang is not None
        return state_of(gang, self.world.service.inventory) is state

    @property
    def reserved(self) -> int:
        return int(sum(self.world.service.inventory.columns.reserved(GPU)))


@pytest.fixture(params=[False, True], ids=["label API", "native API"])
def stage(make: Make, request: pytest.FixtureRequest) -> Stage:
    return Stage(make, native=request.param)


# -- the PodGroup comes


def test_pod_group_created_after_its_pods(stage: Stage) -> None:
    stage.begin(*stage.pods())
    assert stage.filters() == [False] * 3
    assert stage.why() == "gang default/g has no PodGroup yet: create it in the same namespace"
    assert stage.is_(GangState.FORMING)
    stage.world.put(stage.group())
    assert seats(stage.world) == dict.fromkeys("abc", "n1"), "no pod changed"
    assert (stage.filters(), stage.answers(stage.binds())) == ([True] * 3, [""] * 3)


def test_pod_group_created_between_its_pods(stage: Stage) -> None:
    stage.begin(stage.pod("a"))
    for step in (stage.pod("b"), stage.group(), stage.pod("c")):
        assert stage.filters("a") == [False]
        stage.world.put(step)
    assert stage.filters() == [True] * 3


# -- the PodGroup goes


def test_pod_group_deleted_while_waiting(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods("ab"))
    assert stage.why() == "gang default/g has 2 of 3 members"
    stage.world.remove(stage.group())
    assert "has no PodGroup" in stage.why()
    stage.world.put(stage.pod("c"))
    assert stage.filters() == [False] * 3, "never scheduled singly"


def test_pod_group_deleted_while_planned(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods())
    stage.filters()
    assert stage.is_(GangState.PLANNED) and stage.reserved == 3
    stage.world.remove(stage.group())
    assert stage.reserved == 0
    assert all("no PodGroup" in (error or "") for error in stage.answers(stage.binds()))


def test_pod_group_deleted_at_the_barrier(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods())
    stage.filters()
    calls = stage.binds("ab")
    assert stage.answers(calls) == [None, None] and stage.is_(GangState.GATHERING)
    stage.world.remove(stage.group())
    assert all("no PodGroup" in (error or "") for error in stage.answers(calls)), "answered at once"
    assert (stage.reserved, stage.bound()) == (0, [])


def test_pod_group_deleted_while_running(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.running())
    assert stage.is_(GangState.RUNNING)
    stage.world.remove(stage.group())
    stage.world.tick(60)
    assert stage.bound() == ["a", "b", "c"], "what runs is left alone"
    stage.world.put(stage.pod("d"))
    assert "no PodGroup" in stage.why("d"), "and nothing joins it"
    stage.world.put(stage.group(uid="second"))
    assert stage.filters("d") == [True]
    assert stage.answers(stage.binds("d")) == [""]


# -- the PodGroup is another one


def test_pod_group_created_again_while_waiting(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods("ab"))
    stage.filters("ab")
    stage.world.remove(stage.group())
    stage.world.put(stage.group(2, uid="second"))
    assert stage.filters("ab") == [True, True]
    assert stage.answers(stage.binds("ab")) == ["", ""]


def test_pod_group_created_again_at_the_barrier(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods())
    stage.filters()
    calls = stage.binds("ab")
    stage.world.remove(stage.group())
    assert all(stage.answers(calls))
    stage.world.put(stage.group(uid="second"))
    assert stage.filters() == [True] * 3
    assert stage.answers(stage.binds()) == [""] * 3


def test_pod_group_created_again_in_one_step_keeps_the_calls_it_can_still_use(stage: Stage) -> None:
    """The watch may show the new object without the deletion of the old one."""
    stage.begin(stage.group(), *stage.pods())
    stage.filters()
    calls = stage.binds("ab")
    stage.world.put(stage.group(uid="second"))
    assert stage.answers(calls + stage.binds("c")) == [""] * 3


def test_pod_group_created_again_while_running(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.running())
    stage.world.remove(stage.group())
    stage.world.put(stage.group(4, uid="second"))
    assert stage.is_(GangState.WOUNDED), "what runs counts towards the new one"
    stage.world.put(stage.pod("d"))
    assert stage.filters("d") == [True]
    assert stage.answers(stage.binds("d")) == [""]
    assert stage.is_(GangState.RUNNING)


# -- all pods are other ones


def test_all_pods_created_again_while_waiting(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods("ab"))
    for pod in stage.pods("ab"):
        stage.world.remove(pod)
    for name in "abc":
        stage.world.put(stage.pod(name).uid(f"second-{name}"))
    assert (stage.filters(), stage.answers(stage.binds())) == ([True] * 3, [""] * 3)


def test_all_pods_created_again_at_the_barrier(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.pods(), gpus=3)
    stage.filters()
    calls = stage.binds("ab")
    for pod in stage.pods():
        stage.world.remove(pod)
    assert all("deleted" in (error or "") for error in stage.answers(calls))
    assert stage.reserved == 0
    for name in "abc":
        stage.world.put(stage.pod(name).uid(f"second-{name}"))
    assert (stage.filters(), stage.answers(stage.binds())) == ([True] * 3, [""] * 3)


def test_all_pods_created_again_while_running(stage: Stage) -> None:
    stage.begin(stage.group(), *stage.running(), gpus=3)
    for name in "ab":
        stage.world.apply("DELETED", stage.world.get("Pod", name))
        stage.world.put(stage.pod(name).uid(f"second-{name}"))
    assert stage.filters("a") == [True], "one still runs: they are its replacements"
    stage.world.apply("DELETED", stage.world.get("Pod", "c"))
    stage.world.put(stage.pod("c").uid("second-c"))
    assert stage.filters() == [True] * 3
    calls = stage.binds("ab")
    assert stage.answers(calls) == [None, None], "nobody of the former run counts any more"
    assert stage.answers(calls + stage.binds("c")) == [""] * 3


def test_all_pods_created_again_after_a_run_that_succeeded(stage: Stage) -> None:
    """A Job submitted again onto the same PodGroup starts from nought."""
    done = [stage.pod(name).on("n1", phase="Succeeded") for name in "abc"]
    stage.begin(stage.group(), *done)
    for name in "de":
        stage.world.put(stage.pod(name))
    assert stage.why("d") == "gang default/g has 2 of 3 members"
    stage.world.put(stage.pod("f"))
    assert (stage.filters("def"), stage.answers(stage.binds("def"))) == ([True] * 3, [""] * 3)


def test_a_member_that_succeeded_counts_while_another_runs(stage: Stage) -> None:
    stage.begin(stage.group(2), stage.pod("a").on("n1", phase="Succeeded"), *stage.running("b"))
    assert stage.is_(GangState.RUNNING)


# -- the minimum is another one


def test_minimum_raised_while_waiting(stage: Stage) -> None:
    stage.begin(stage.group(5), *stage.pods())
    stage.world.put(stage.group(6))
    assert stage.why() == "gang default/g has 3 of 6 members"


def test_minimum_raised_while_planned(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.pods())
    assert stage.filters("a") == [True]
    stage.world.put(stage.group(4))
    calls = stage.binds("abc")
    assert not any(error == "" for error in stage.answers(calls)), "three of four are not enough"
    assert stage.bound() == []


def test_minimum_raised_at_the_barrier(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.pods())
    stage.filters()
    calls = stage.binds("ab")
    stage.world.put(stage.group(4))
    calls += stage.binds("c")
    assert stage.answers(calls) == [None] * 3
    stage.world.put(stage.pod("d"))
    assert stage.filters("d") == [True]
    assert stage.answers(calls + stage.binds("d")) == [""] * 4


def test_minimum_raised_while_running(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.running(), *stage.pods("de"), gpus=6)
    stage.world.put(stage.group(6))
    assert stage.why("d") == "gang default/g has 5 of 6 members"
    assert stage.is_(GangState.WOUNDED)
    stage.world.put(stage.pod("f"))
    assert stage.filters("def") == [True] * 3
    calls = stage.binds("de")
    assert stage.answers(calls) == [None, None]
    assert stage.answers(calls + stage.binds("f")) == [""] * 3


def test_minimum_lowered_while_waiting(stage: Stage) -> None:
    """A launcher that comes only when the others run, for example."""
    stage.begin(stage.group(5), *stage.pods())
    assert stage.filters() == [False] * 3
    stage.world.put(stage.group(3))
    assert seats(stage.world) == dict.fromkeys("abc", "n1"), "no pod changed"
    assert (stage.filters(), stage.answers(stage.binds())) == ([True] * 3, [""] * 3)


def test_minimum_lowered_at_the_barrier(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.pods())
    stage.filters()
    calls = stage.binds("ab")
    stage.world.put(stage.group(2))
    assert stage.answers(calls) == ["", ""], "at once"


def test_minimum_lowered_while_running(stage: Stage) -> None:
    stage.begin(stage.group(4), *stage.running())
    assert stage.is_(GangState.WOUNDED)
    stage.world.put(stage.group(3))
    assert stage.is_(GangState.RUNNING)


@pytest.mark.parametrize("minimum", [0, -3, None])
def test_a_minimum_that_is_no_minimum_counts_as_one(stage: Stage, minimum: int | None) -> None:
    stage.begin(stage.group().minimum(minimum), *stage.pods("ab"))
    assert stage.filters("ab") == [True, True]
    assert stage.answers(stage.binds("a")) == [""], "nobody waits for the other"


# -- members that are on their way out


def test_a_member_being_deleted_holds_its_devices_but_does_not_count(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.running("ab"), stage.pod("c").on("n1").deleting(), gpus=3)
    assert stage.is_(GangState.WOUNDED)
    stage.world.put(stage.pod("d"))
    assert "0 of 3" in stage.why("d"), "its GPU is in use until it is gone"
    stage.world.apply("DELETED", stage.world.get("Pod", "c"))
    assert stage.filters("d") == [True]


def test_a_pending_member_being_deleted_is_never_planned(stage: Stage) -> None:
    stage.begin(stage.group(3), *stage.pods("ab"), stage.pod("c").deleting())
    assert stage.why() == "gang default/g has 2 of 3 members"
    stage.world.put(stage.pod("d"))
    assert stage.filters("abd") == [True] * 3
    assert "c" not in seats(stage.world)


def test_equal_names_in_two_namespaces_are_two_gangs(make: Make) -> None:
    pods = [make_pod(f"{ns}-0", ns).gpus(1).gang("g") for ns in ("x", "y")]
    groups = [make_group("g", 2, ns).uid(f"uid-{ns}") for ns in ("x", "y")]
    world = make(make_node("n1").gpus(4), *groups, *pods)
    for namespace in ("x", "y"):
        refused = world.filter(f"{namespace}-0", ["n1"])["FailedAndUnresolvableNodes"]
        assert refused == {"n1": f"gang {namespace}/g has 1 of 2 members"}
