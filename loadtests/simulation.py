# SPDX-License-Identifier: Apache-2.0
"""What a scheduler without any latency would reach: best-fit backfill of a workload, in virtual time.

Written on the planner and the order of the backlog alone: no API, no loop, no rounds. A gang arrives whole,
is seated the moment its turn comes and it fits, holds its GPUs from then on and gives all of them back when
its run time is over. It is judged as real runs are: as courses, by `accounting.sharing_figures`.

    python -m loadtests.simulation --workload contended --seed 1 [--nodes 32] [--starvation-seconds 60]
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from app.cli.table import table
from app.domain.changes import Change
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, NodeName, PodUid
from app.domain.node import Node
from app.domain.placement import Template
from app.domain.plan import Plan
from app.domain.pod import GATE, SCHEDULER, Pod
from app.extender.backlog import Backlog, Place
from app.extender.claims import claim_of
from app.extender.starvation import Starvation
from app.inventory.inventory import Inventory
from app.planner.plan import plan
from loadtests.runner.accounting import Course, Life, sharing_figures
from loadtests.workload import WORKLOADS, GangSpec, Workload

GPU: Final = "nvidia.com/gpu"
HEADERS: Final = (
    "workload",
    "seed",
    "nodes",
    "gangs",
    "useful",
    "wait-p50",
    "wait-p99",
    "longest",
    "makespan",
)


class Run(msgspec.Struct, frozen=True):
    """When a gang ran, in seconds from the start of the workload: all of it bound, until it ended."""

    start_seconds: float
    end_seconds: float


def simulate(workload: Workload, *, starvation_seconds: float = 0.0) -> dict[str, Run]:
    """Serve the workload without latency; by gang, those that ran. What can never fit does not."""
    return _Simulation(workload, starvation_seconds).run()


def courses(workload: Workload, runs: Mapping[str, Run]) -> list[Course]:
    """What a witness of the runs would have seen. All members of a gang are created when it arrives."""
    return [_course(gang, runs.get(gang.name)) for gang in workload.gangs]


def _course(gang: GangSpec, run: Run | None) -> Course:
    life = Life(created=gang.arrival_seconds)
    if run is not None:
        life.bound, life.gone = run.start_seconds, run.end_seconds
    return Course(gpus=gang.gpus, members=gang.members, lives=(life,) * gang.members)


def last_end(runs: Mapping[str, Run]) -> float:
    """When the last gang ended, in seconds from the start of the workload; 0 if nobody ran."""
    return max((run.end_seconds for run in runs.values()), default=0.0)


class _Simulation:
    """`_runs` is what has been decided so far; `_ends` a heap of (end, name)."""

    def __init__(self, workload: Workload, starvation_seconds: float) -> None:
        self._now = 0.0
        self._inventory = Inventory()
        self._backlog = Backlog()
        self._starvation = Starvation(
            self._inventory, self._backlog, seconds=starvation_seconds, clock=lambda: self._now
        )
        self._arrivals = sorted(workload.gangs, key=lambda gang: gang.arrival_seconds)
        self._specs = {key_of(gang): gang for gang in workload.gangs}
        self._ends: list[tuple[float, GangKey]] = []
        self._runs: dict[str, Run] = {}
        self._inventory.apply(
            Change(value=_node(n, workload.gpus_per_node, pods=workload.gpus)) for n in range(workload.nodes)
        )

    def run(self) -> dict[str, Run]:
        """From event to event until nothing happens any more."""
        coming = iter(self._arrivals)
        following = next(coming, None)
        while following is not None or self._ends:
            times = [following.arrival_seconds] if following is not None else []
            self._now = min(times + [end for end, _ in self._ends[:1]])
            while self._ends and self._ends[0][0] <= self._now:
                self._end(heapq.heappop(self._ends)[1])
            while following is not None and following.arrival_seconds <= self._now:
                self._arrive(following)
                following = next(coming, None)
            self._seat_all()
        return self._runs

    def _arrive(self, gang: GangSpec) -> None:
        key = key_of(gang)
        self._inventory.apply(Change(value=value) for value in _objects(gang))
        known = self._inventory.gangs.get(key)
        assert known is not None, "it has just arrived"
        claim = claim_of(known, self._inventory, None)
        self._backlog.put(key, claim, apart=None)
        self._starvation.waits(claim.rank)

    def _end(self, key: GangKey) -> None:
        for booking in self._inventory.book.of(key):
            self._inventory.release(booking.uid)

    def _seat_all(self) -> None:
        """Everybody who waits, in order; who does not fit is passed over."""
        self._starvation.begin()
        for place in self._backlog.in_order(self._refused):
            demand, fence = place.claim.demand, self._starvation.fence_before(place)
            assert demand is not None, "a gang that waits has members"
            view = self._inventory.view(priority=demand.priority)
            verdict = plan(view if fence is None else fence.outside(view, self._inventory), demand)
            if isinstance(verdict, Plan):
                self._start(place, verdict)
            else:
                place.line.refuse(verdict, self._generations(place), fence)

    def _start(self, place: Place, seats: Plan) -> None:
        gang = self._specs[place.key]
        self._inventory.reserve(seats)
        self._backlog.drop(place.key)
        self._starvation.left(place.claim.rank)
        self._starvation.seated(place.claim.rank)
        end = self._now + gang.run_seconds
        self._runs[gang.name] = Run(self._now, end)
        heapq.heappush(self._ends, (end, place.key))

    def _refused(self, place: Place) -> bool:
        return place.line.stands(self._generations(place), self._starvation.fence_before(place))

    def _generations(self, place: Place) -> tuple[int, ...]:
        return self._inventory.columns.generations(place.claim.names)


def key_of(gang: GangSpec) -> GangKey:
    """The key under which a gang is simulated."""
    return GangKey(GangApi.LABEL, "simulation", gang.name)


def _objects(gang: GangSpec) -> Iterable[PodGroup | Pod]:
    """A PodGroup and its pods. Its age in milliseconds stands for seconds: only the order counts."""
    key, created = key_of(gang), round(1000 * gang.arrival_seconds)
    yield PodGroup(key=key, uid=gang.name, created=created, declared=gang.members)
    template = Template(requests=((GPU, gang.gpus), ("pods", 1)))
    for index in range(gang.members):
        name = f"{gang.name}-{index}"
        yield Pod(
            uid=PodUid(name), namespace=key.namespace, name=name, template=template, created=created,
            scheduler=SCHEDULER, priority=gang.priority, gates=(GATE,), gang=key,
        )  # fmt: skip


def _node(index: int, gpus: int, *, pods: int) -> Node:
    name = NodeName(f"node-{index:05d}")
    amounts = {GPU: gpus, "pods": pods}
    return Node(name=name, uid=name, allocatable=amounts, capacity=amounts, labels={})


def main() -> None:
    """Simulate one workload and print what came of it."""
    parser = argparse.ArgumentParser(description="Best-fit backfill without latency, in virtual time.")
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="contended")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--nodes", type=int, help="as the workload has it, if not given")
    parser.add_argument("--starvation-seconds", type=float, default=0.0, help="0: nobody is protected")
    args = parser.parse_args()
    size = {"nodes": args.nodes} if args.nodes else {}
    rows = []
    for seed in args.seed:
        workload = WORKLOADS[args.workload](seed, **size)
        runs = simulate(workload, starvation_seconds=args.starvation_seconds)
        rows.append([args.workload, seed, workload.nodes, len(workload.gangs), *_figures(workload, runs)])
    print(table(HEADERS, rows))


def _figures(workload: Workload, runs: Mapping[str, Run]) -> list[str]:
    until = last_end(runs)
    found = sharing_figures(courses(workload, runs), gpus=workload.gpus, until=until)
    seconds = [found[f"wait_{which}_seconds"] for which in ("p50", "p99", "longest")]
    seconds.append(until - workload.gangs[0].arrival_seconds)
    return [f"{found['gpu_time_ratio']:.3f}", *(f"{value:.1f}s" for value in seconds)]


if __name__ == "__main__":
    main()
