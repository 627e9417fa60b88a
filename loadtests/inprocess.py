# SPDX-License-Identifier: Apache-2.0
"""`make bench`, first part: planner, verbs and watch events in this process, without a cluster.

Prints one row per figure: median, 99th percentile and what it is a figure of. Judges nothing: timings are
noisy, and thresholds belong to the load tests. Sizes are arguments, so that growth can be seen.

    python -m loadtests.inprocess [--nodes 5000 15000]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from app.codec.objects import ObjectDecoder
from app.codec.snapshot import value_of
from app.domain.changes import Change
from app.domain.ids import GangApi, GangKey
from app.domain.plan import Demand, Member, Plan
from app.extender.service import Service
from app.inventory.inventory import Inventory
from app.planner.plan import plan
from app.simulate.cluster import SnapshotCluster

GPU = "nvidia.com/gpu"
CREATED = "2026-01-01T00:00:00Z"
Json = dict[str, Any]


def node(index: int, *, gpus: int = 8) -> Json:
    """A node with 8 GPUs, as a real one looks in size."""
    amounts = {"cpu": "128", "memory": "1024Gi", "pods": "110", "ephemeral-storage": "900Gi", GPU: str(gpus)}
    labels = {f"example.com/label-{n}": f"value-{index % 7}" for n in range(12)}
    name = f"node-{index:05d}"
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {}, "status": {
            "allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip


def pod(name: str, *, gpus: int, gang: str = "", node: str = "", gated: bool = True) -> Json:
    """A member, gated unless it is on a node; without a gang an ordinary pod."""
    limits = {GPU: str(gpus), "cpu": "8"}
    container = {"name": "main", "image": "train:1", "resources": {"limits": limits}}
    spec: Json = {"schedulerName": "muster", "priority": 0, "containers": [container]}
    if node:
        spec["nodeName"] = node
    elif gated and gang:
        spec["schedulingGates"] = [{"name": "muster.dev/gang"}]
    labels = {"scheduling.x-k8s.io/pod-group": gang} if gang else {}
    meta = {
        "name": name,
        "namespace": "bench",
        "uid": name,
        "labels": labels,
        "creationTimestamp": CREATED,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def group(name: str, minimum: int) -> Json:
    """A PodGroup of the label API."""
    api = "scheduling.x-k8s.io/v1alpha1"
    meta = {"name": name, "namespace": "bench", "uid": f"pg-{name}", "creationTimestamp": CREATED}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": {"minMember": minimum}}


def changes(decoder: ObjectDecoder, objects: list[Json]) -> list[Change]:
    """Objects as the watch would tell them."""
    return [Change(value=value) for obj in objects if (value := value_of(decoder, obj)) is not None]


class Table:
    """Rows of figures, kubectl-like."""

    def __init__(self) -> None:
        print(f"{'FIGURE':<62}{'P50':>12}{'P99':>12}")

    def row(self, what: str, seconds: list[float]) -> float:
        """Print one row in ms; returns the median in seconds."""
        mid, high = np.percentile(seconds, [50, 99])
        print(f"{what:<62}{mid * 1e3:>9.3f} ms{high * 1e3:>9.3f} ms", flush=True)
        return float(mid)

    def value(self, what: str, text: str) -> None:
        """A figure that is one number."""
        print(f"{what:<62}{text:>12}", flush=True)


def timed(work: Callable[[], object], *, times: int) -> list[float]:
    """Wall seconds of each run."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return found


def bench_planner(table: Table, nodes: int) -> None:
    """Plans of a large gang on an empty cluster and on a half-used one."""
    decoder, inventory = ObjectDecoder(), Inventory()
    inventory.apply(changes(decoder, [node(i) for i in range(nodes)]))
    inventory.apply(
        changes(decoder, [pod(f"used-{i}", gpus=1 + i % 8, node=f"node-{i:05d}") for i in range(0, nodes, 2)])
    )
    for count, gpus in ((64, 8), (512, 1)):
        template = decoder.pod(orjson.dumps(pod("m", gpus=gpus, gang="g"))).template
        members = tuple(Member(uid=str(i), template=template) for i in range(count))  # type: ignore[arg-type]
        demand = Demand(gang=GangKey(GangApi.LABEL, "bench", "g"), members=members, need=count)

        def once(demand: Demand = demand) -> None:
            inventory._views.clear()  # a fresh view is part of the price
            assert isinstance(plan(inventory.view(), demand), Plan)

        once()
        table.row(f"plan {count} x {gpus} GPU, {nodes:,} nodes", timed(once, times=100))


async def bench_verbs(table: Table, nodes: int) -> None:
    """filter and prioritize through the service, bytes in and out, without HTTP."""
    cluster = SnapshotCluster([])
    service = Service(
        inventory=Inventory(), binder=cluster, admitter=cluster, reporter=cluster, leadership=cluster,
        problems=list, clock=time.monotonic,
    )  # fmt: skip
    names = [f"node-{i:05d}" for i in range(nodes)]
    members = [pod(f"seated-{i}", gpus=8, gang="seated", gated=False) for i in range(8)]
    late = [pod(f"late-{i}", gpus=8, gang="late", gated=False) for i in range(nodes + 1)][:2]
    objects = [*(node(i) for i in range(nodes)), group("seated", 8), group("late", 9), *members, *late]
    service.observe(changes(service.decoder, objects))
    service.tick()

    async def verb(what: str, call: Callable[[bytes], Any], body: bytes) -> None:
        found = []
        await call(body)
        for _ in range(100):
            began = time.perf_counter()
            await call(body)
            found.append(time.perf_counter() - began)
        table.row(what, found)

    def body(obj: Json) -> bytes:
        return orjson.dumps({"Pod": obj, "Nodes": None, "NodeNames": names})

    echo = body(members[0])
    table.row(
        f"echo: decode and encode {nodes:,} names", timed(lambda: orjson.dumps(orjson.loads(echo)), times=100)
    )
    await verb(f"filter, planned member, {nodes:,} names", service.filter, body(members[0]))
    await verb(f"filter, waiting refusal, {nodes:,} names", service.filter, body(late[0]))
    single = body(pod("single", gpus=1))
    await verb(f"filter, ordinary GPU pod, {nodes:,} names", service.filter, single)
    await verb(f"prioritize, ordinary GPU pod, {nodes:,} names", service.prioritize, single)
    await verb(f"filter, CPU pod, {nodes:,} names", service.filter, body(pod("cpu", gpus=0)))


async def bench_backlog(table: Table, nodes: int, gangs: int) -> None:
    """A full cluster with many gangs waiting: one node's devices come free."""
    cluster = SnapshotCluster([])
    service = Service(
        inventory=Inventory(), binder=cluster, admitter=cluster, reporter=cluster, leadership=cluster,
        problems=list, clock=time.monotonic,
    )  # fmt: skip
    objects = [node(i) for i in range(nodes)]
    running = [pod(f"used-{i}", gpus=8, node=f"node-{i:05d}") for i in range(nodes)]
    for index in range(gangs):
        size = 2 + index % 7
        objects += [
            group(f"g{index}", size),
            *(pod(f"g{index}-{i}", gpus=8, gang=f"g{index}") for i in range(size)),
        ]
    service.observe(changes(service.decoder, [*objects, *running]))
    service.tick()
    found = []
    for index in range(50):
        gone = [Change(value=c.value, gone=True) for c in changes(service.decoder, [running[index % nodes]])]
        began = time.perf_counter()
        service.observe(gone)
        service.rounds.run()
        found.append(time.perf_counter() - began)
        service.observe(changes(service.decoder, [running[index % nodes]]))
        service.rounds.run()
    table.row(f"replan, {gangs:,} gangs wait, one of {nodes:,} nodes comes free", found)


def bench_events(table: Table, nodes: int) -> None:
    """Watch lines of nodes and pods, bytes to numbers."""
    decoder, inventory = ObjectDecoder(), Inventory()
    lines = [orjson.dumps(node(i)) for i in range(nodes)]
    pods = [
        orjson.dumps(pod(f"p-{i}", gpus=1, gang=f"g{i % 50}", node=f"node-{i % nodes:05d}"))
        for i in range(4 * nodes)
    ]
    began = time.perf_counter()
    for start in range(0, len(lines), 100):
        inventory.apply([Change(value=decoder.node(line)) for line in lines[start : start + 100]])
    middle = time.perf_counter()
    for start in range(0, len(pods), 100):
        inventory.apply([Change(value=decoder.pod(line)) for line in pods[start : start + 100]])
    end = time.perf_counter()
    table.value(f"node events applied, {nodes:,} nodes", f"{len(lines) / (middle - began):,.0f}/s")
    table.value(f"pod events applied, {nodes:,} nodes", f"{len(pods) / (end - middle):,.0f}/s")


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description="Muster's in-process figures on this machine.")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000, 15000])
    args = parser.parse_args()
    table = Table()
    for nodes in args.nodes:
        bench_events(table, nodes)
        bench_planner(table, nodes)
        asyncio.run(bench_verbs(table, nodes))
    asyncio.run(bench_backlog(table, 500, 2000))


if __name__ == "__main__":
    main()
