# SPDX-License-Identifier: Apache-2.0
"""Read 1, nodes: those that have what is asked for and that the pods may not use, and why.

A node is counted for one reason alone: first what the pods choose, then the node's state, then its taints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from app.domain.node import UNSCHEDULABLE
from app.domain.placement import Taint
from app.explain.case import Case
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit
from app.explain.pool import DOWN, Pool
from app.explain.reads.evidence import numbers, on_node
from app.explain.reads.selectors import choice, selects_none
from app.explain.words import count, in_units, listed

_CONDITION: Final = ".status.conditions[?(@.type=='Ready')].status"


@finding(
    "NodesNotReady",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="not ready: {nodes} with {amount} {name}",
    meaning=(
        "Kubelet of these nodes says that it is not ready, or has not been heard from. What they have still"
        " shows as allocatable, and no pod is placed there."
    ),
    confirm=("kubectl describe node {first}",),
    decide=("repair the nodes or take them out",),
)
def nodes_not_ready(case: Case) -> Iterable[Hit]:
    """Nodes that would do and are not ready."""
    for pool, rows in _kept(case, lambda taint: taint.key in DOWN):
        yield _hit(case, pool, _CONDITION, dict.fromkeys(rows, "not True"))


@finding(
    "NodesCordoned",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="cordoned: {nodes} with {amount} {name}, {free} of them free",
    meaning=(
        "Somebody, or a tool that drains nodes, has marked these nodes as unschedulable. What they have still"
        " shows as allocatable, and no new pod is placed there."
    ),
    confirm=("kubectl describe node {first}",),
    decide=("uncordon the nodes once whatever they were cordoned for is done",),
)
def nodes_cordoned(case: Case) -> Iterable[Hit]:
    """Nodes that would do and are cordoned."""
    for pool, rows in _kept(case, lambda taint: taint.key == UNSCHEDULABLE.key):
        yield _hit(case, pool, ".spec.unschedulable", dict.fromkeys(rows, "true"))


@finding(
    "TaintNotTolerated",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="taint not tolerated: {nodes} with {amount} {name}, {free} of them free; {what}",
    meaning=(
        "A taint keeps pods off a node unless they tolerate it. Dedicated pools, nodes under maintenance and"
        " nodes that are only kept for devices are tainted; the pods in question lack the toleration."
    ),
    confirm=("kubectl get node {first} -o jsonpath='{{.spec.taints}}'",),
    decide=("add the toleration to the pods, if they may use these nodes", "or take the taint off"),
)
def taint_not_tolerated(case: Case) -> Iterable[Hit]:
    """Nodes that would do but for a taint; the taints that keep most away are named."""
    for pool, rows in _kept(case, lambda taint: taint.key not in (*DOWN, UNSCHEDULABLE.key)):
        names = {row: _taint(taint) for row, taint in rows.items()}
        yield _hit(case, pool, ".spec.taints", names, what=_grouped(pool, names))


@finding(
    "NodesNotSelected",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="not selected by {what}: {nodes} with {amount} {name}, {free} of them free",
    meaning=(
        "`nodeSelector` and required node affinity leave only some of the nodes that have the devices. What"
        " the others have free does not help these pods."
    ),
    confirm=("kubectl get node {first} --show-labels",),
    decide=("widen the selector or the affinity, if the other nodes would do",),
)
def nodes_not_selected(case: Case) -> Iterable[Hit]:
    """Nodes that the pods' own choice leaves out, where it leaves some in."""
    if case.fits:
        return
    for pool in case.pools:
        rows = [row for row, why in case.barred[pool.name].items() if why is None]
        if rows and not selects_none(case, pool):
            what = choice(pool.template)
            yield _hit(case, pool, ".metadata.labels", dict.fromkeys(rows, "not selected"), what=what)


def _kept(case: Case, belongs: Callable[[Taint], bool]) -> Iterator[tuple[Pool, dict[int, Taint]]]:
    """Per pool the rows whose taint belongs to a finding; none where the pods fit without them."""
    if case.fits:
        return
    for pool in case.pools:
        rows = {row: why for row, why in case.barred[pool.name].items() if why is not None and belongs(why)}
        if rows:
            yield pool, rows


def _hit(case: Case, pool: Pool, field: str, values: dict[int, str], what: str = "") -> Hit:
    """Rows that are kept away, what they have, and the value that keeps each."""
    rows = sorted(values, key=lambda row: -int(pool.free[row]))
    return hit(
        *(on_node(case, row, field, f"{values[row]}; {numbers(pool, [row])}") for row in rows[:200]),
        name=pool.name,
        nodes=count(len(rows), "node"),
        amount=in_units(pool.name, int(pool.allocatable[rows].sum())),
        free=in_units(pool.name, int(pool.free[rows].sum())),
        first=case.inventory.names[rows[0]],
        what=what,
    )


def _grouped(pool: Pool, taints: dict[int, str]) -> str:
    """The taints, those first that keep most away."""
    weights: Counter[str] = Counter()
    for row, taint in taints.items():
        weights[taint] += int(pool.allocatable[row])
    counts = Counter(taints.values())
    return listed([f"{taint} ({count(counts[taint], 'node')})" for taint, _ in weights.most_common()])


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    nodes_not_ready,
    nodes_cordoned,
    taint_not_tolerated,
    nodes_not_selected,
)
