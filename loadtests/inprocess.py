# SPDX-License-Identifier: Apache-2.0
"""`make bench`: planner, verbs and watch events in this process, without a cluster.

Figures are CPU time of this process, so that neighbours on the machine do not count. Judges nothing: that is
`thresholds.yaml`'s and the report's. Sizes are arguments, so that growth can be seen.

    python -m loadtests.inprocess [--nodes 1000 5000 15000] [--runs 1] [--out DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import orjson

from app.cli.table import table
from app.codec.objects import ObjectDecoder
from app.codec.snapshot import value_of
from app.domain.changes import Change
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import Demand, Member, Plan
from app.extender.service import Service
from app.inventory.inventory import Inventory
from app.planner.plan import plan
from app.simulate.cluster import SnapshotCluster
from loadtests.material.bodies import nodes_args
from loadtests.material.objects import NAMESPACE, Json, gang, node, node_name, pod
from loadtests.record import Record, append
from loadtests.shared.flags import add_nodes, add_out, add_runs
from loadtests.shared.timing import timing

GANGS_TO_PLAN = ((64, 8), (512, 1))
"""(members, GPUs of each) of the gangs that the planner is timed with."""
BATCH = 100
"""Watch events applied at a time."""
FULL_NODES = 500
"""Nodes of the full cluster on which gangs wait."""
SETTLE_SECONDS = 30.0

Figures = dict[str, float]


def clock() -> float:
    """CPU time of this process in milliseconds."""
    return time.process_time() * 1e3


def events(nodes: int) -> Figures:
    """Watch lines of nodes, and of four pods a node: bytes to numbers."""
    decoder, inventory = ObjectDecoder(), Inventory()
    node_lines = [orjson.dumps(node(i)) for i in range(nodes)]
    pod_lines = [
        orjson.dumps(pod(f"p-{i}", gpus=1, gang=f"g{i % 50}", on=node_name(i % nodes)))
        for i in range(4 * nodes)
    ]

    def rate(lines: list[bytes], decode: Callable[[bytes], object]) -> float:
        began = clock()
        for start in range(0, len(lines), BATCH):
            inventory.apply([Change(value=decode(line)) for line in lines[start : start + BATCH]])  # type: ignore[arg-type]
        return len(lines) / (clock() - began) * 1e3

    return {
        "node_events_per_second": rate(node_lines, decoder.node),
        "pod_events_per_second": rate(pod_lines, decoder.pod),
    }


def plans(nodes: int, times: int) -> Figures:
    """Plans of large gangs where every other node is partly used, each right after a pod has come or gone."""
    decoder, inventory = ObjectDecoder(), Inventory()
    used = [pod(f"used-{i}", gpus=1 + i % 8, on=node_name(i)) for i in range(0, nodes, 2)]
    inventory.apply(_changes(decoder, [*(node(i) for i in range(nodes)), *used]))
    passing = decoder.pod(orjson.dumps(pod("passing", gpus=1, on=node_name(1))))
    found: Figures = {}
    for count, gpus in GANGS_TO_PLAN:
        template = decoder.pod(orjson.dumps(pod("m", gpus=gpus, gang="g"))).template
        members = tuple(Member(uid=PodUid(str(i)), template=template) for i in range(count))
        demand = Demand(gang=GangKey(GangApi.LABEL, NAMESPACE, "g"), members=members, need=count)
        taken = []
        for turn in range(times):
            inventory.apply([Change(value=passing, gone=turn % 2 == 1)])  # the view of before is stale
            began = clock()
            planned = plan(inventory.view(), demand)
            taken.append(clock() - began)
            assert isinstance(planned, Plan), planned
        found |= timing(f"plan_{count}x{gpus}", taken)
    return found


async def verbs(nodes: int, times: int) -> Figures:
    """filter and prioritize through the service, bytes in and out, without HTTP."""
    seated, late = gang("seated", 8, gpus=8), gang("late", 9, gpus=8)[:-1]  # late lacks its last member
    service = _service([*(node(i) for i in range(nodes)), *seated, *late])
    names = [node_name(i) for i in range(nodes)]
    planned = nodes_args(seated[1], names)
    seat = orjson.loads(await service.filter(planned))["NodeNames"]
    assert len(seat) == 1, "the gang has its seats"
    single = nodes_args(pod("single", gpus=1), names)

    async def echo(body: bytes) -> bytes:
        return orjson.dumps(orjson.loads(body))

    calls: dict[str, tuple[Callable[[bytes], Awaitable[object]], bytes]] = {
        "echo": (echo, planned),
        "filter_planned": (service.filter, planned),
        "filter_planned_one_name": (service.filter, nodes_args(seated[1], seat)),
        "filter_refusal": (service.filter, nodes_args(late[1], names)),
        "filter_ordinary": (service.filter, single),
        "prioritize_ordinary": (service.prioritize, single),
        "filter_cpu": (service.filter, nodes_args(pod("cpu", gpus=0), names)),
    }
    taken: dict[str, list[float]] = {what: [] for what in calls}
    with _settled():
        for _ in range(times):  # in turn: what slows the machine down slows all of them
            for what, (call, body) in calls.items():
                began = clock()
                await call(body)
                taken[what].append(clock() - began)
    return {name: value for what in calls for name, value in timing(what, taken[what]).items()}


async def backlog(gangs: int, times: int) -> Figures:
    """A full cluster, gangs of 1 to 8 members waiting: one node comes free and goes to the first that fits.

    From the watch event to its seats being set aside; as many gangs have one member as there are turns.
    """
    sizes = [1] * times + [2 + index % 7 for index in range(gangs - times)]
    waiting = [obj for index, size in enumerate(sizes) for obj in gang(f"g{index}", size, gpus=8, gated=True)]
    running = [pod(f"used-{i}", gpus=8, on=node_name(i)) for i in range(FULL_NODES)]
    service = _service([*(node(i) for i in range(FULL_NODES)), *running, *waiting])
    taken = []
    with _settled():
        for turn, gone in enumerate(_changes(service.decoder, running[:times]), start=1):
            began = clock()
            service.observe([Change(value=gone.value, gone=True)])
            await asyncio.wait_for(_seats(service, turn), SETTLE_SECONDS)
            taken.append(clock() - began)
            service.tick()
    return timing(f"replan_{gangs}", taken)


async def _seats(service: Service, count: int) -> None:
    """Until that many are set aside, one turn of the loop after another: nothing tells us."""
    while len(service.inventory.book) < count:  # noqa: ASYNC110
        await asyncio.sleep(0)


def _service(objects: list[Json]) -> Service:
    """A service on an embedded cluster that has seen all of it once."""
    cluster = SnapshotCluster(objects)
    service = Service.embedded(cluster, clock=time.monotonic)
    cluster.deliver = service.observe
    service.observe(cluster.initial())
    service.tick()
    return service


def _changes(decoder: ObjectDecoder, objects: list[Json]) -> list[Change]:
    return [Change(value=value) for obj in objects if (value := value_of(decoder, obj)) is not None]


@contextlib.contextmanager
def _settled() -> Iterator[None]:
    """As in `muster serve`: the garbage collector does not walk what the first lists brought."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def measure(*, nodes: list[int], times: int, gangs: int, run: int = 1) -> list[Record]:
    """One record per number of nodes, and one of the full cluster on which gangs wait."""
    records = []
    for size in nodes:
        print(f"inprocess: run {run}, {size:,} nodes", file=sys.stderr, flush=True)
        figures = {**events(size), **plans(size, times), **asyncio.run(verbs(size, times))}
        records.append(_record(size, run, figures))
    print(f"inprocess: run {run}, {gangs:,} gangs wait", file=sys.stderr, flush=True)
    figures = asyncio.run(backlog(gangs, min(times, gangs, FULL_NODES)))
    return [*records, _record(FULL_NODES, run, figures)]


def _record(nodes: int, run: int, figures: Figures) -> Record:
    return Record(scenario="inprocess", contender="muster", nodes=nodes, run=run, figures=figures)


def main() -> None:
    """Run all, print a table, keep the records if asked to."""
    parser = argparse.ArgumentParser(description="Muster's in-process figures on this machine.")
    add_nodes(parser)
    parser.add_argument("--times", type=int, default=100, help="repetitions within a run [100]")
    parser.add_argument("--gangs", type=int, default=2000, help="gangs that wait on the full cluster [2000]")
    add_runs(parser)
    add_out(parser)
    args = parser.parse_args()
    for run in range(1, args.runs + 1):
        records = measure(nodes=args.nodes, times=args.times, gangs=args.gangs, run=run)
        rows = [
            (name, f"{one.nodes:,}", f"{value:,.3f}")
            for one in records
            for name, value in one.figures.items()
        ]
        print(table(["figure", "nodes", "value"], rows), flush=True)
        if args.out:
            append(args.out, *records)


if __name__ == "__main__":
    main()
