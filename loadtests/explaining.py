# SPDX-License-Identifier: Apache-2.0
"""What an explanation costs a running Muster: all of it, and what of it holds up the loop that answers.

    python -m loadtests.explaining [--nodes 15000] [--pods 150000] [--times 5]

A full cluster in this process, some nodes of which have lost their device plugin; a gang that waits behind
others, a pod that waits on its own, and one that asks by a claim are explained in turn. `total` is CPU time
of the process, `step` that of the loop's thread in its longest step, and `late` by how much the loop came
late at the worst, in wall time: on a machine with neighbours, their part is in it. Each is the least of the
repetitions. Raw objects are at hand already. Judges nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Iterator

import orjson

from app.cli.table import table
from app.codec.objects import ObjectDecoder
from app.codec.snapshot import value_of
from app.domain.changes import Change
from app.explain.report import Subject
from app.explain.sight import Sight
from app.extender.insight import explained
from app.extender.service import Service
from app.inventory.inventory import Inventory
from app.simulate.cluster import SnapshotCluster
from loadtests.material.objects import CREATED, NAMESPACE, Json, gang, group, node, node_name, pod
from loadtests.shared.flags import positive

SIZE = 8
"""Members of a gang that runs, and devices of a node."""
LOST = 8
"""One node in so many has lost its device plugin."""
WAITING = 300
"""Gangs that wait before the one in question."""
PERIOD_SECONDS = 0.001
"""How often the loop is looked at."""
DRIVER, CLASS = "gpu.example.com", "gpu"


def _plain(nodes: int, pods: int) -> Iterator[Json]:
    """Every node with devices is full of members of gangs; the other pods ask for none."""
    for index in range(nodes):
        if index % LOST:
            yield node(index)
            continue
        lost = node(index, gpus=0)
        lost["metadata"]["labels"]["nvidia.com/gpu.present"] = "true"
        yield lost
    able = [index for index in range(nodes) if index % LOST]
    members = min(pods, SIZE * len(able))
    yield from (group(f"g{index}", SIZE) for index in range(members // SIZE))
    for index in range(members):
        yield pod(f"m-{index}", gpus=1, gang=f"g{index // SIZE}", on=node_name(able[index // SIZE]))
    yield from (pod(f"c-{index}", gpus=0, on=node_name(index % nodes)) for index in range(pods - members))


def _asked() -> Iterator[Json]:
    for index in range(WAITING):
        yield from gang(f"w{index}", 4, gpus=8, gated=True)
    yield from gang("wz", 64, gpus=8, gated=True)
    yield pod("alone", gpus=4)
    claiming = pod("claiming", gpus=0)
    claiming["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "waits"}]
    claiming["spec"]["schedulerName"] = "default-scheduler"
    yield claiming


def _devices(nodes: int) -> Iterator[Json]:
    """Slices of eight devices a node, each held by a claim, and the claim in question."""
    api = {"apiVersion": "resource.k8s.io/v1"}
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "H100"'}}
    yield {**api, "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {"selectors": [selector]}}
    request = {"name": "r", "exactly": {"deviceClassName": CLASS}}
    spec = {"devices": {"requests": [request]}}
    for index in range(nodes):
        name = node_name(index)
        devices = [
            {"name": f"gpu-{n}", "attributes": {"model": {"string": "H100"}, "index": {"int": n}}}
            for n in range(SIZE)
        ]
        slice_ = {
            "driver": DRIVER, "nodeName": name, "devices": devices,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        }  # fmt: skip
        yield {**api, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": slice_}
        held = [{"driver": DRIVER, "pool": name, "device": f"gpu-{n}", "request": "r"} for n in range(SIZE)]
        status = {"allocation": {"devices": {"results": held}}, "reservedFor": []}
        meta = {"name": f"held-{index}", "namespace": NAMESPACE, "uid": f"held-{index}"}
        yield {**api, "kind": "ResourceClaim", "metadata": meta, "spec": spec, "status": status}
    meta = {"name": "waits", "namespace": NAMESPACE, "uid": "waits", "creationTimestamp": CREATED}
    yield {**api, "kind": "ResourceClaim", "metadata": meta, "spec": spec}


async def _measure(nodes: int, pods: int, times: int) -> list[tuple[str, ...]]:
    asked = list(_asked())
    service = _service([*_plain(nodes, pods), *asked])
    near = [orjson.loads(orjson.dumps(one)) for one in [*asked, *_devices(nodes)]]
    sights = {
        Subject("podgroup", NAMESPACE, "wz"): Sight(asked),
        Subject("pod", NAMESPACE, "alone"): Sight(asked),
        Subject("pod", NAMESPACE, "claiming"): Sight(near),
    }
    gc.collect()
    gc.freeze()
    rows = []
    for subject, sight in sights.items():
        figures = [await _one(service, sight, subject) for _ in range(times)]
        rows.append((subject.name, *(f"{min(f):,.1f}" for f in zip(*figures, strict=True))))
    return rows


async def _one(service: Service, sight: Sight, subject: Subject) -> tuple[float, float, float]:
    """(total, step, late) of one report, in milliseconds."""
    step = late = 0.0

    async def turn() -> None:
        nonlocal step, late
        while True:
            worked, began = time.thread_time(), time.perf_counter()
            await asyncio.sleep(PERIOD_SECONDS)
            step = max(step, time.thread_time() - worked)
            late = max(late, time.perf_counter() - began - PERIOD_SECONDS)

    turning = asyncio.create_task(turn())
    await asyncio.sleep(0)
    began = time.process_time()
    await explained(service, sight, subject, now=0)
    total = time.process_time() - began
    await asyncio.sleep(2 * PERIOD_SECONDS)
    turning.cancel()
    return total * 1e3, step * 1e3, late * 1e3


def _service(objects: list[Json]) -> Service:
    """A service that has seen all of it and taken its first round."""
    nobody, decoder = SnapshotCluster(()), ObjectDecoder()
    service = Service(
        inventory=Inventory(), binder=nobody, admitter=nobody, reporter=nobody, leadership=nobody,
        problems=list, clock=time.monotonic,
    )  # fmt: skip
    values = (value_of(decoder, one) for one in objects)
    service.observe([Change(value=value) for value in values if value is not None])
    service.tick()
    return service


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time of explanations in a running Muster.")
    parser.add_argument("--nodes", type=positive, default=15_000)
    parser.add_argument("--pods", type=positive, default=150_000)
    parser.add_argument("--times", type=positive, default=5, help="repetitions; the least counts [5]")
    args = parser.parse_args()
    rows = asyncio.run(_measure(args.nodes, args.pods, args.times))
    print(table(["subject", "total ms", "step ms", "late ms"], rows))


if __name__ == "__main__":
    main()
