# SPDX-License-Identifier: Apache-2.0
"""Seeded workloads: which gangs arrive when, how large they are and how long they run.

Pure functions of their arguments: the same seed gives the same workload on every machine, for every
scheduler under test and for the simulation. Creates nothing and measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType
from typing import Final

import msgspec

SIZES: Final = MappingProxyType({1: 45, 2: 10, 4: 13, 8: 13, 16: 10, 32: 6, 64: 3})
"""GPUs of a gang → weight, in the contended workload."""

SPREAD: Final = 0.8
"""Sigma of the logarithm of run times."""


class GangSpec(msgspec.Struct, frozen=True):
    """One gang: `members` pods of `gpus` GPUs each, all of which run for `run_seconds` once all are bound.

    `arrival_seconds` counts from the start of the workload; a greater `priority` goes first.
    """

    name: str
    arrival_seconds: float
    members: int
    gpus: int
    run_seconds: float
    priority: int = 0

    @property
    def gpu_seconds(self) -> float:
        """GPU time that the gang uses when it runs."""
        return self.members * self.gpus * self.run_seconds


class Workload(msgspec.Struct, frozen=True):
    """`gangs`, by arrival, for a cluster of equal nodes."""

    nodes: int
    gpus_per_node: int
    gangs: tuple[GangSpec, ...]

    @property
    def gpus(self) -> int:
        """GPUs of the cluster."""
        return self.nodes * self.gpus_per_node

    def pods(self) -> list[tuple[float, GangSpec, int]]:
        """(arrival seconds, gang, index of the member) in the order in which pods are created.

        Members of gangs that arrive at the same moment are interleaved: first the first member of each gang,
        then the second of each. Whoever places pods one by one in this order ends with many half gangs.
        """
        found = [(gang.arrival_seconds, index, gang) for gang in self.gangs for index in range(gang.members)]
        found.sort(key=lambda item: item[:2])
        return [(arrival, gang, index) for arrival, index, gang in found]


def contended(
    seed: int, *, nodes: int = 32, gpus_per_node: int = 8, gangs: int = 400, load: float = 1.3
) -> Workload:
    """More work than there is room for: gangs of 1–64 GPUs, Poisson arrivals at `load` times the capacity.

    From 8 GPUs on a gang has members of 8 GPUs each, below that one member. Run times are lognormal with a
    median of 8 s, cut to 3–40 s. Sizes beyond the cluster are left out. `load` is met by the gangs that were
    drawn, not only on average.
    """
    random = Random(seed)
    sizes = {size: weight for size, weight in SIZES.items() if size <= nodes * gpus_per_node}
    drawn = [_gang(index, *_shape(random, sizes), _run(random, 8.0, 3.0, 40.0)) for index in range(gangs)]
    mean = sum(gang.gpu_seconds for gang in drawn) / gangs
    gap = mean / (load * nodes * gpus_per_node)
    arrival, arrived = 0.0, []
    for gang in drawn:
        arrived.append(msgspec.structs.replace(gang, arrival_seconds=arrival))
        arrival = round(arrival + random.expovariate(1.0 / gap), 3)
    return Workload(nodes=nodes, gpus_per_node=gpus_per_node, gangs=tuple(arrived))


def deadlock(seed: int, *, nodes: int = 2, gpus_per_node: int = 8, gangs: int = 60) -> Workload:
    """All gangs at once, members interleaved: 2..`nodes` members of 4–8 GPUs (half a node to a whole one).

    Run times are lognormal with a median of 2 s, cut to 1–5 s: short, so that time lost between two gangs
    shows.
    """
    random = Random(seed)
    half = max(1, gpus_per_node // 2)
    drawn = [
        _gang(
            index,
            random.randint(2, max(2, nodes)),
            random.randint(half, gpus_per_node),
            _run(random, 2.0, 1.0, 5.0),
        )
        for index in range(gangs)
    ]
    return Workload(nodes=nodes, gpus_per_node=gpus_per_node, gangs=tuple(drawn))


WORKLOADS: Final[Mapping[str, Callable[..., Workload]]] = MappingProxyType(
    {"contended": contended, "deadlock": deadlock}
)
"""By the name that a command line or a scenario uses; each takes `seed` and, by keyword, `nodes`."""


def _shape(random: Random, sizes: Mapping[int, int]) -> tuple[int, int]:
    """(members, GPUs of each)."""
    (size,) = random.choices(list(sizes), weights=list(sizes.values()))
    return (size // 8, 8) if size >= 8 else (1, size)


def _run(random: Random, median: float, least: float, most: float) -> float:
    """A lognormal run time in seconds, cut to [least, most]."""
    return round(min(most, max(least, median * random.lognormvariate(0.0, SPREAD))), 3)


def _gang(index: int, members: int, gpus: int, run_seconds: float) -> GangSpec:
    return GangSpec(
        name=f"g{index:04d}", arrival_seconds=0.0, members=members, gpus=gpus, run_seconds=run_seconds
    )
