# SPDX-License-Identifier: Apache-2.0
"""What there is of one resource that waiting pods ask for, node by node, and who holds it.

Numbers alone, worked out once for all findings; judges nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from app.domain.ids import GangKey, PodUid
from app.domain.node import NOT_READY, UNSCHEDULABLE
from app.domain.placement import Taint, Template
from app.domain.pod import Pod
from app.inventory.columns import Mask, Matrix, Rows
from app.matching.nodes import selected, tolerated

if TYPE_CHECKING:
    from app.explain.case import Case

DOWN: Final = (NOT_READY.key, "node.kubernetes.io/unreachable")
"""Taints of a node that is not ready."""


class Pool(msgspec.Struct, frozen=True, gc=False):
    """One resource; the arrays have shape (rows,), amounts in its unit.

    `template` is of the pod that asks for most of it, and `ask` is how much. `admits` are the rows that
    labels and taints leave to one of the pods that ask; `free` is what is left there for them now.
    """

    name: str
    ask: int
    template: Template
    admits: Mask
    capacity: Matrix
    allocatable: Matrix
    used: Matrix
    reserved: Matrix
    free: Matrix

    @property
    def usable(self) -> Mask:
        """Rows that have the resource and admit a pod."""
        return self.admits & (self.allocatable > 0)

    @property
    def kept(self) -> Rows:
        """Rows that have it and admit none of the pods."""
        return np.flatnonzero(~self.admits & (self.allocatable > 0))


class Ledger(msgspec.Struct):
    """Who holds one resource on the usable rows of its pool.

    `held` is by gang, or by pod where there is none. `idle` are pods that are going or have not come to work,
    `sick` those with a device that is not healthy. `lower` is what pods of a lower priority hold, by row.
    `finished` pods are still listed on the nodes and hold nothing.
    """

    held: dict[GangKey | PodUid, int] = msgspec.field(default_factory=dict)
    idle: list[Pod] = msgspec.field(default_factory=list)
    sick: list[Pod] = msgspec.field(default_factory=list)
    lower: dict[int, int] = msgspec.field(default_factory=dict)
    finished: int = 0


def asked(template: Template, name: str) -> int:
    """How much of one resource a pod asks for."""
    return next((amount for request, amount in template.requests if request == name), 0)


def pool(case: Case, name: str) -> Pool:
    """The pool of a resource that one of the templates asks for."""
    columns = case.inventory.columns
    templates = [template for template in case.templates if asked(template, name)]
    largest = max(templates, key=lambda template: asked(template, name))
    return Pool(
        name=name,
        ask=asked(largest, name),
        template=largest,
        admits=np.logical_or.reduce([case.inventory.admitting(template) for template in templates]),
        capacity=case.capacity(name),
        allocatable=columns.allocatable(name),
        used=columns.used(name),
        reserved=columns.reserved(name),
        free=case.free(name),
    )


def ledger(case: Case) -> dict[str, Ledger]:
    """Who holds what of each pool of the case."""
    found = {pool.name: Ledger() for pool in case.pools}
    usable = {pool.name: pool.usable.tolist() for pool in case.pools}
    priority = min((pod.priority for pod in case.waiting), default=0)
    row_of = case.inventory.columns.row_of
    asks: dict[int, list[tuple[Ledger, list[bool], int]]] = {}
    for pod in case.inventory.pods.values():
        wanted = asks.get(id(pod.template))
        if wanted is None:
            requests = pod.template.requests
            wanted = asks[id(pod.template)] = [(found[n], usable[n], a) for n, a in requests if n in found]
        if wanted and pod.node is not None:
            row = row_of[pod.node]
            for one, here, amount in wanted:
                if here[row]:
                    _enter(one, pod, row, amount, priority)
    return found


def _enter(one: Ledger, pod: Pod, row: int, amount: int, priority: int) -> None:
    """Count a pod that is on a usable row."""
    phase = pod.phase
    if phase in ("Succeeded", "Failed"):
        one.finished += 1
        return
    holder = pod.gang or pod.uid
    one.held[holder] = one.held.get(holder, 0) + amount
    if pod.priority < priority:
        one.lower[row] = one.lower.get(row, 0) + amount
    if pod.deleting or pod.stuck or phase == "Pending":
        one.idle.append(pod)
    if pod.sick:
        one.sick.append(pod)


def barred(case: Case, pool: Pool) -> dict[int, Taint | None]:
    """Why rows that have it do not admit the pod: the first taint, None if it does not select them."""
    found: dict[int, Taint | None] = {}
    first: dict[tuple[Taint, ...], Taint | None] = {}
    for row in pool.kept.tolist():
        node = case.inventory.nodes.get(row)
        if node is None or not selected(pool.template, node.name, node.labels):
            found[row] = None
            continue
        if node.taints not in first:
            first[node.taints] = _first(pool.template, node.taints)
        found[row] = first[node.taints]
    return found


def _first(template: Template, taints: tuple[Taint, ...]) -> Taint | None:
    """The taint that keeps the pod away; the node's state rather than another."""
    against = [taint for taint in taints if not tolerated(template.tolerations, (taint,))]
    return min(against, key=lambda t: (t.key not in DOWN, t.key != UNSCHEDULABLE.key), default=None)
