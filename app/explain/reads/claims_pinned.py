# SPDX-License-Identifier: Apache-2.0
"""Read 4, allocations that tie pods to nodes on which there is no place for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from app.codec.snapshot import JsonObject
from app.domain.placement import Template
from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.dra.claims import Asked, Consumer, State
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import name_of, namespace_of
from app.explain.reads.claims_allocated import allocations, consumers_of, results, whereabouts
from app.explain.reads.claims_words import pods_of, weight_of, who
from app.explain.words import listed
from app.inventory.columns import Mask
from app.planner.capacity import seats_per_row


def _others(case: Case, claim: JsonObject, group: list[Asked]) -> list[Consumer]:
    """Who else it is reserved for, and may use it still."""
    own = {asked.pod.uid for asked in group if asked.pod.node is None}
    found = case.dra.consumers(claim)
    return [
        one
        for one in found
        if one.state in (State.ALIVE, State.UNKNOWN) and (one.pod is None or one.pod.uid not in own)
    ]


@finding(
    "ResourceClaimPinsPod",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="devices allocated for {who} are where there is no place for a pod: {places}; {outlook}",
    meaning=(
        "A claim that has been allocated ties its pods to the nodes from which its devices can be reached."
        " That happens when a pod lost its place after its claim was allocated, and to claims that pods"
        " share. The scheduler takes an allocation back by itself if nobody else has the claim; while others"
        " use it, the pod can start nowhere else."
    ),
    confirm=(
        "kubectl get resourceclaim {claim} -n {namespace} -o jsonpath='{{.status}}'",
        "kubectl describe node {node}",
    ),
    decide=("make room on the node, or stop the others that use the claim",),
)
def pinned(case: Case) -> Iterable[Hit]:
    """Allocated claims of waiting pods whose nodes do not take them: those that others use, and the rest."""
    takes: dict[Template, tuple[Mask, Mask]] = {}
    found: defaultdict[bool, list[_Pin]] = defaultdict(list)
    for claim, group in allocations(case):
        pods = [pod for pod in pods_of(group) if pod.node is None]
        mask = case.dra.rows(claim) if pods else None
        if mask is None:
            continue
        template = pods[0].template
        if template not in takes:
            takes[template] = _takes(case, template)
        why = _refused(mask, *takes[template])
        if why:
            others = _others(case, claim, group)
            rows = np.flatnonzero(mask)
            node = case.inventory.names[rows[0]] if len(rows) else ""
            place = f"{whereabouts(case, claim)}, {why}"
            found[bool(others)].append(_Pin(claim, pods, others, node, place))
    for shared in sorted(found, reverse=True):
        yield _pinned(case, found[shared], shared=shared)


class _Pin(msgspec.Struct):
    claim: JsonObject
    pods: list[Pod]
    others: list[Consumer]
    node: str
    place: str


def _pinned(case: Case, pins: list[_Pin], *, shared: bool) -> Hit:
    first, pods = pins[0].claim, [pod for pin in pins for pod in pin.pods]
    users = listed(dict.fromkeys(str(other) for pin in pins for other in pin.others))
    return hit(
        *(one for pin in pins for one in (*results(pin.claim), *consumers_of(pin.claim, pin.others))),
        weight=(weight_of(case, pods) or Weight.BLOCKS) if shared else None,
        who=who(pods),
        places=listed(f"claim {name_of(pin.claim)} on {pin.place}" for pin in pins),
        outlook=f"used by {users}, so they stay there"
        if shared
        else "the scheduler gives them back when it next tries the pod",
        claim=name_of(first),
        namespace=namespace_of(first),
        node=pins[0].node,
    )


def _takes(case: Case, template: Template) -> tuple[Mask, Mask]:
    """Rows that admit a template, and rows that have room for it besides, reservations aside."""
    view = case.inventory.view_without_reservations()
    seats = seats_per_row(view, template, view.free, most=1)
    return case.inventory.admitting(template), seats > 0


def _refused(mask: Mask, admitted: Mask, roomy: Mask) -> str:
    """Why none of the rows takes a pod; empty if one does."""
    if (mask & roomy).any():
        return ""
    if not mask.any():
        return "where none can start"
    if not (mask & admitted).any():
        return "which labels, taints or a cordon keep it off"
    return "which is full"


FINDINGS: Final[tuple[Topic[Case], ...]] = (pinned,)
