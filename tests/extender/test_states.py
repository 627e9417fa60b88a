# SPDX-License-Identifier: Apache-2.0
"""The tally of states is what a recount gives, whatever happened since it was last asked."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from app.domain.gang import GangState
from app.extender.states import Tally, state_of
from tests.builders import PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make, seats
from tests.extender.world import World

GANGS = ("a", "b", "c", "d")


class Life:
    """Things that happen to gangs of up to three members."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world, self._rng = world, rng
        self._pods: dict[str, PodBuilder] = {}

    def step(self) -> None:
        """One of them."""
        happens = [self._group, self._no_group, self._member, self._member, self._gone, self._ends]
        self._rng.choice([*happens, self._bind, self._bind, self._bind, self._wait])(self._rng.choice(GANGS))

    def _group(self, gang: str) -> None:
        self._world.put(make_group(gang, self._rng.choice([1, 2, 2, 3])))

    def _no_group(self, gang: str) -> None:
        self._world.remove(make_group(gang, 1))

    def _member(self, gang: str) -> None:
        name = f"{gang}-{self._rng.randrange(3)}"
        if name not in self._pods:
            pod = make_pod(name).gpus(1).gang(gang)
            self._pods[name] = pod if self._rng.random() < 0.3 else pod.gated()
            self._world.put(self._pods[name])

    def _gone(self, _: str) -> None:
        if self._pods:
            self._world.remove(self._pods.pop(self._rng.choice(sorted(self._pods))))

    def _ends(self, _: str) -> None:
        for pod in self._world.objects("Pod"):
            if pod["spec"].get("nodeName") and self._rng.random() < 0.3:
                pod["status"]["phase"] = self._rng.choice(["Running", "Succeeded", "Failed"])
                self._world.apply("MODIFIED", pod)

    def _bind(self, gang: str) -> None:
        for name, node in seats(self._world).items():
            if name.startswith(gang) and self._world.filter(name, ["n1"])["NodeNames"]:
                self._world.bind(name, node)
                if self._rng.random() < 0.3:
                    return

    def _wait(self, _: str) -> None:
        self._world.tick(self._rng.choice([1, 20, 61]))


@pytest.mark.parametrize("seed", range(4))
def test_a_tally_equals_a_recount_after_any_change(make: Make, seed: int) -> None:
    world = make(make_node("n1").gpus(8))
    inventory, life = world.service.inventory, Life(world, Random(seed))
    tally, seen = Tally(inventory), set[GangState]()
    for _ in range(300):
        life.step()
        recount = Counter(state_of(gang, inventory) for gang in inventory.gangs)
        assert tally.count() == recount
        seen |= recount.keys()
    assert len(seen) >= 5, sorted(seen)
