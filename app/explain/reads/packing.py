# SPDX-License-Identifier: Apache-2.0
"""Read 3, packing: what could ever fit, and a sum of free devices that does not lie together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from app.domain.placement import Template
from app.domain.plan import Demand, Member, Plan
from app.domain.reasons import Refusal
from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import MOST_EVIDENCE, Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.reads.devices import scattered
from app.explain.words import count, in_units, listed
from app.inventory.columns import Matrix
from app.planner.plan import plan


@finding(
    "MinimumAboveCluster",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="at most {have} of {need} would have seats at once, even if the cluster were empty",
    meaning=(
        "The whole cluster as it stands, with every pod gone, has too few seats for the minimum: of the nodes"
        " that selectors, affinity and taints leave, by what is allocatable there. Waiting does not help. For"
        " members that are unlike each other it is the best packing that was found, which is no proof."
    ),
    confirm=("kubectl get nodes -o custom-columns=NAME:.metadata.name,ALLOCATABLE:.status.allocatable",),
    decide=("lower the minimum to {have}, ask for less per member, or add nodes",),
)
def minimum_above_cluster(case: Case) -> Iterable[Hit]:
    """Some, but too few of those that are needed at once would fit an empty cluster."""
    demand, empty = case.demand, case.when_empty
    if demand is None or not isinstance(empty, Refusal) or not empty.have:
        return
    evidence = [
        Evidence("cluster", f"sum of .status.allocatable['{name}']", _total(case, name))
        for name in case.devices
    ]
    yield hit(
        *evidence,
        weight=None if len(case.templates) == 1 else Weight.WARNS,
        have=empty.have,
        need=count(demand.need, "member"),
    )


def _total(case: Case, name: str) -> str:
    able = case.inventory.columns.allocatable(name)[case.admitting]
    total = in_units(name, int(able.sum()))
    return f"{total} on the nodes that admit a member, at most {_most(name, able)} on one"


def _most(name: str, able: Matrix) -> str:
    return in_units(name, int(able.max(initial=0)))


@finding(
    "FreeButScattered",
    read=Read.GROUP,
    sentence="{free} {name} are free on nodes that it may use and {asked} are needed, but not together:"
    " {best}",
    meaning=(
        "A pod needs all it asks for on one node. Free devices that are spread over many nodes add up to"
        " enough and hold no member, or too few of them. The sum counts only nodes that selectors, affinity"
        " and taints leave."
    ),
    confirm=("muster explain {kind} -n {namespace} {subject} -o wide",),
    decide=("wait for a whole node, move or end pods that break into nodes, or ask for less per member",),
)
def free_but_scattered(case: Case) -> Iterable[Hit]:
    """Of every device that is asked for enough is free in all, and there is no packing of the devices."""
    demand, refused = case.demand, case.now
    if demand is None or not isinstance(refused, Refusal) or isinstance(case.when_empty, Refusal):
        return
    if any(map(scattered, case.pools)) or isinstance(plan(case.view, _devices_of(demand)), Plan):
        return  # not even one pod has room, or it is another resource that runs out: findings of their own
    sums = [(name, _free(case, name), _asked(demand, name)) for name in case.devices]
    if not sums or any(int(free.sum()) < asked for _, free, asked in sums):
        return
    name, free, asked = min(sums, key=lambda one: int(one[1].sum()) - one[2])
    yield hit(
        *_per_node(case, name, free),
        free=in_units(name, int(free.sum())),
        name=name,
        asked=in_units(name, asked),
        best=_best(case, demand, refused, name, free),
        kind=case.subject.kind,
        namespace=case.subject.namespace,
        subject=case.subject.name,
    )


def _devices_of(demand: Demand) -> Demand:
    """The same, asking for nothing but devices."""
    made: dict[Template, Template] = {}
    for one in demand.members:
        if one.template not in made:
            devices = tuple((name, amount) for name, amount in one.template.requests if is_device(name))
            made[one.template] = msgspec.structs.replace(one.template, requests=devices)
    members = tuple(Member(uid=one.uid, template=made[one.template]) for one in demand.members)
    return msgspec.structs.replace(demand, members=members)


def _free(case: Case, name: str) -> Matrix:
    """Free of one resource by row, 0 where no member may go; shape (rows,)."""
    free: Matrix = np.where(case.admitting[: case.view.rows], case.free(name), 0)
    return free


def _asked(demand: Demand, name: str) -> int:
    """What the most modest of those that are needed ask for."""
    return sum(sorted(dict(m.template.requests).get(name, 0) for m in demand.members)[: demand.need])


def _per_node(case: Case, name: str, free: Matrix) -> Iterable[Evidence]:
    """Where it is free, most first; the last line stands for all that would be too many to show."""
    order, found = np.argsort(-free, kind="stable"), int((free > 0).sum())
    shown = found if found <= MOST_EVIDENCE else MOST_EVIDENCE - 1
    for row in order[:shown]:
        yield Evidence(f"node/{case.inventory.names[row]}", f"free {name}", in_units(name, int(free[row])))
    if shown < found:
        yield Evidence("", f"free {name}", f"on {found - shown} more nodes")


def _best(case: Case, demand: Demand, refused: Refusal, name: str, free: Matrix) -> str:
    """The largest part that fits, and where."""
    if not refused.have:
        return f"seats for 0 of {demand.need}; the most on a node is {_most(name, free)}"
    found = plan(case.view, msgspec.structs.replace(demand, need=refused.have))
    if not isinstance(found, Plan):
        return f"seats for {refused.have} of {demand.need}"
    nodes = Counter(seat.node for seat in found.seats).most_common()
    return f"seats for {len(found.seats)} of {demand.need}, " + listed(f"{n} on {node}" for node, n in nodes)


FINDINGS: Final[tuple[Topic[Case], ...]] = (minimum_above_cluster, free_but_scattered)
