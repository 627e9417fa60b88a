# SPDX-License-Identifier: Apache-2.0
"""Read 1, devices: what is free where the pods may go, and whether it is enough for one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from app.domain.resources import PODS
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.pool import Pool
from app.explain.reads.evidence import numbers, on_node
from app.explain.words import count, in_units


@finding(
    "FreeDevices",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence=(
        "{name}: {free} of {there} free where the pods may go, at most {most} on one node;"
        " a pod asks for {ask}; nodes with as many free: {enough} of {nodes}"
    ),
    meaning=(
        "What is free is allocatable, less what pods on the node request, less what is reserved for others or"
        " kept for nominated pods. Only nodes count whose labels and taints admit the pods. The evidence has"
        " the numbers of each node, those with most free first. A pod needs all its devices on one node: the"
        " sum over nodes says little, the largest number on one node says much."
    ),
    confirm=("kubectl describe node {first}",),
)
def free_devices(case: Case) -> Iterable[Hit]:
    """Per resource that is asked for: free in sum, on one node, and nodes with room for a pod."""
    pools = () if case.booked else case.pools  # what its own seats take is not free, and not in its way
    if case.fits:
        pools = [pool for pool in pools if pool.name != PODS]  # nobody asked for them
    return (_free(case, pool) for pool in pools if pool.usable.any() and not scattered(pool))


@finding(
    "Fragmentation",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence=(
        "{name}: {free} of {there} free where the pods may go, but they lie scattered: at most {most} on one"
        " node, and a pod asks for {ask}"
    ),
    meaning=(
        "Enough devices are free in sum, and no node has as many free as one pod asks for. Devices of several"
        " nodes cannot serve one pod. Such devices look free wherever they are added up."
    ),
    confirm=("kubectl describe node {first}",),
    decide=(
        "end or move small pods on the node that has most free",
        "ask for fewer devices in each pod, and for more pods",
    ),
)
def fragmentation(case: Case) -> Iterable[Hit]:
    """Per resource: enough is free in sum, and no node has enough for one pod."""
    return (_free(case, pool) for pool in case.pools if scattered(pool) and not case.booked)


def scattered(pool: Pool) -> bool:
    """Whether enough is free in sum for a pod, and no node has it."""
    free, large = pool.free[pool.usable], pool.allocatable[pool.usable].max(initial=0)
    return bool(free.sum() >= pool.ask > free.max(initial=0) and large >= pool.ask)


def _free(case: Case, pool: Pool) -> Hit:
    rows = np.flatnonzero(pool.usable)
    rows = rows[np.argsort(-pool.free[rows], kind="stable")]
    each = (on_node(case, row, pool.name, numbers(pool, [row])) for row in rows[:100].tolist())
    free = pool.free[rows]
    return hit(
        Evidence(count(len(rows), "node"), pool.name, numbers(pool, rows)),
        *each,
        name=pool.name,
        free=in_units(pool.name, int(free.sum())),
        there=in_units(pool.name, int(pool.allocatable[rows].sum())),
        most=in_units(pool.name, int(free[0])),
        ask=in_units(pool.name, pool.ask),
        enough=int((free >= pool.ask).sum()),
        nodes=len(rows),
        first=case.inventory.names[rows[0]],
    )


FINDINGS: Final[tuple[Topic[Case], ...]] = (free_devices, fragmentation)
