# SPDX-License-Identifier: Apache-2.0
"""Scenarios: what is created when, on how many nodes, and how often it is measured. Creates nothing itself.

A scenario is a file `scenarios/<name>.yaml` with one of `burst`, `backlog` and `arrivals`, if need be with
`churn` beside it, and the sets of runs it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from loadtests.runner.accounting import FIGURES
from loadtests.shared.strict import Strict
from loadtests.workload import WORKLOADS, GangSpec, Workload

FOLDER = Path(__file__).parents[1] / "scenarios"

Count = Annotated[int, Meta(ge=1)]
Amount = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, le=1)]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What starts and ends as one: a gang, or a single pod (not `grouped`) that nobody knows a group of."""

    name: str
    members: int
    gpus: int
    grouped: bool = True
    arrival_seconds: float = 0.0
    run_seconds: float = 0.0


class Batch(Strict, frozen=True):
    """`count` gangs of `members` pods, or `count` single pods where `members` is absent; `gpus` per pod."""

    count: Count
    members: Amount = 0
    gpus: Amount = 0


class Backlog(Strict, frozen=True):
    """`waiting` gangs more than the cluster holds; every `every_seconds` one that runs ends, `ends` times."""

    waiting: Count
    members: Count
    gpus: Count
    ends: Count
    every_seconds: Positive = 1.0


class Arrivals(Strict, frozen=True):
    """A seeded workload of `loadtests.workload`: gangs come, run for their time once whole, and go."""

    workload: Literal["contended", "deadlock"]
    gangs: Count


class Churn(Strict, frozen=True):
    """Writes beside the scheduling, per second: node status updates, and updates of pods that run already."""

    node_updates_per_second: Amount
    pod_updates_per_second: Amount


class Runs(Strict, frozen=True):
    """How a set runs a scenario: each contender `repeats` times on each number of nodes.

    A run is ended after `limit_seconds`. `share` scales what is created, so that the short set can be short.
    """

    nodes: tuple[Count, ...]
    contenders: tuple[str, ...]
    repeats: Count = 1
    limit_seconds: Positive = 300.0
    share: Share = 1.0


class Scenario(Strict, frozen=True):
    """See the module. `measure` names the figures that the final table shows for it."""

    about: str
    measure: tuple[str, ...]
    sets: dict[Literal["short", "full"], Runs]
    gpus_per_node: Amount = 8
    burst: tuple[Batch, ...] = ()
    backlog: Backlog | None = None
    arrivals: Arrivals | None = None
    churn: Churn | None = None

    def __post_init__(self) -> None:
        """What must be together."""
        if sum(map(bool, (self.burst, self.backlog, self.arrivals))) != 1:
            raise ValueError("needs exactly one of `burst`, `backlog` and `arrivals`")
        for name in self.measure:
            if name not in FIGURES:
                raise ValueError(f"`measure`: no figure {name!r}, only {', '.join(sorted(FIGURES))}")

    def tasks(self, *, nodes: int, seed: int, share: float = 1.0) -> list[Task]:
        """All that is created, in the order of arrival."""
        if self.arrivals:
            return [_arriving(gang) for gang in self.workload(nodes=nodes, seed=seed, share=share).gangs]
        if self.backlog:
            one = self.backlog
            fitting = self.fitting(nodes=nodes)
            count = fitting + part(one.waiting, share)
            return list(_batch("g", Batch(count=count, members=one.members, gpus=one.gpus)))
        scaled = (msgspec.structs.replace(batch, count=part(batch.count, share)) for batch in self.burst)
        return [task for number, batch in enumerate(scaled) for task in _batch(chr(ord("a") + number), batch)]

    def workload(self, *, nodes: int, seed: int, share: float) -> Workload:
        """What `arrivals` asks for."""
        assert self.arrivals is not None
        make, gangs = WORKLOADS[self.arrivals.workload], part(self.arrivals.gangs, share)
        return make(seed, nodes=nodes, gpus_per_node=self.gpus_per_node, gangs=gangs)

    def fitting(self, *, nodes: int) -> int:
        """How many gangs of a backlog run at the same time."""
        assert self.backlog is not None
        return nodes * (self.gpus_per_node // self.backlog.gpus) // self.backlog.members


def part(count: int, share: float) -> int:
    """At least one."""
    return max(1, round(count * share))


def _batch(letter: str, batch: Batch) -> Iterator[Task]:
    for index in range(batch.count):
        yield Task(
            name=f"{letter}{index:04d}",
            members=batch.members or 1,
            gpus=batch.gpus,
            grouped=batch.members > 0,
        )


def _arriving(gang: GangSpec) -> Task:
    return Task(
        name=gang.name,
        members=gang.members,
        gpus=gang.gpus,
        arrival_seconds=gang.arrival_seconds,
        run_seconds=gang.run_seconds,
    )
