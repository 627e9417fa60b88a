# SPDX-License-Identifier: Apache-2.0
"""Read 4, allocations: which devices the claims have been given, where, for whom, and how these are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np

from app.codec.snapshot import JsonObject
from app.explain.case import Case
from app.explain.dra.claims import (
    MOST_CONSUMERS,
    Asked,
    Consumer,
    device_key,
    devices_of,
    label,
    reserved_for,
    reserves,
)
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import maps, name_of, namespace_of, text
from app.explain.reads.claims_words import pods_of, weight_of, who
from app.explain.words import listed


def allocations(case: Case) -> Iterable[tuple[JsonObject, list[Asked]]]:
    """Claims of the subject that have devices, each once, with the references to it."""
    groups: defaultdict[str, list[Asked]] = defaultdict(list)
    for asked in case.claims:
        if asked.claim is not None and not asked.open:
            groups[asked.reference.claim].append(asked)
    for group in groups.values():
        claim = group[0].claim
        if claim is not None:
            yield claim, group


def results(claim: JsonObject) -> list[Evidence]:
    """The devices of a claim."""
    where = f"resourceclaim/{label(claim)}"
    return [
        Evidence(where, f".status.allocation.devices.results[{request}]", "/".join(device))
        for request, device in devices_of(claim)
    ]


def consumers_of(claim: JsonObject, consumers: Iterable[Consumer]) -> list[Evidence]:
    """Those a claim is reserved for."""
    where = f"resourceclaim/{label(claim)}"
    return [Evidence(where, ".status.reservedFor", str(consumer)) for consumer in consumers]


def whereabouts(case: Case, claim: JsonObject) -> str:
    """A phrase for the nodes from which the devices can be reached."""
    mask = case.dra.rows(claim)
    if mask is None:
        return "every node"
    rows = np.flatnonzero(mask)
    names = [case.inventory.names[row] for row in rows[:2]]
    if not names:
        return "no node that is there"
    return f"node {names[0]}" if len(names) == 1 else f"{len(rows)} nodes, {names[0]} among them"


@finding(
    "ResourceClaimAllocated",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence="devices are allocated for {who}: {claims}",
    meaning=(
        "The scheduler has chosen devices for the claim. status.reservedFor names who may use it; a pod that"
        " is not among them does not start. A claim stays allocated after a failed bind even when it is"
        " reserved for nobody."
    ),
    confirm=("kubectl get resourceclaims -n {namespace} -o yaml",),
)
def allocation(case: Case) -> Iterable[Hit]:
    """The allocated claims of the subject; in order when its pods run on them."""
    every = list(allocations(case))
    if not every:
        return
    evidence, phrases = [], []
    for claim, _ in every:
        consumers = case.dra.consumers(claim)
        evidence += [*results(claim), *consumers_of(claim, consumers)]
        use = f"reserved for {listed(consumers)}" if consumers else "reserved for nobody"
        phrases.append(f"claim {name_of(claim)} on {whereabouts(case, claim)}, {use}")
    waits = any(asked.pod.node is None for _, group in every for asked in group)
    yield hit(
        *evidence,
        weight=None if waits else Weight.FINE,
        who=who(pods_of(asked for _, group in every for asked in group)),
        claims=listed(phrases),
        namespace=case.subject.namespace,
    )


@finding(
    "ResourceClaimFull",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="claim {claim} is reserved for {count} consumers, as many as it can have: {who} must wait",
    meaning=(
        "status.reservedFor of a claim has at most 256 entries. A pod that shares the claim and is not among"
        " them cannot start until one of the others has ended."
    ),
    confirm=("kubectl get resourceclaim {claim} -n {namespace} -o jsonpath='{{.status.reservedFor}}'",),
    decide=("let the pods share further claims, or use a claim of each pod's own by a template",),
)
def full(case: Case) -> Iterable[Hit]:
    """Per claim with as many consumers as it can have, of which some of the pods are not."""
    for claim, group in allocations(case):
        count = len(reserved_for(claim))
        left = [pod for pod in pods_of(group) if pod.node is None and not reserves(claim, pod)]
        if count >= MOST_CONSUMERS and left:
            yield hit(
                Evidence(f"resourceclaim/{label(claim)}", ".status.reservedFor", f"{count} entries"),
                weight=weight_of(case, left),
                claim=name_of(claim),
                namespace=namespace_of(claim),
                count=count,
                who=who(left),
            )


@finding(
    "AllocatedDeviceNotReady",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="device {device} of claim {claim} reports {kind}={status}: {message}",
    meaning=(
        "Drivers may report on the devices of a claim in status.devices. A condition Ready that is not True"
        " means the driver has not prepared the device, or has lost it. Not all drivers report, and a device"
        " without conditions is not known to be well."
    ),
    confirm=("kubectl get resourceclaim {claim} -n {namespace} -o jsonpath='{{.status.devices}}'",),
    decide=("see to the driver on the node; delete the pod to have its claim allocated anew",),
)
def not_ready(case: Case) -> Iterable[Hit]:
    """Per device of an allocated claim that its driver does not call ready."""
    for claim, _ in allocations(case):
        for item in maps(claim, "status", "devices"):
            for condition in maps(item, "conditions"):
                status = text(condition, "status")
                if text(condition, "type") == "Ready" and status != "True":
                    yield _report(claim, item, condition)


def _report(claim: JsonObject, item: JsonObject, condition: JsonObject) -> Hit:
    device = "/".join(device_key(item))
    status, since = text(condition, "status"), text(condition, "lastTransitionTime")
    where = f"resourceclaim/{label(claim)}"
    return hit(
        Evidence(where, f".status.devices[{device}].conditions[Ready]", f"{status} since {since}"),
        device=device,
        claim=name_of(claim),
        namespace=namespace_of(claim),
        kind="Ready",
        status=status or "nothing",
        message=text(condition, "message") or text(condition, "reason") or "no message",
    )


FINDINGS: Final[tuple[Topic[Case], ...]] = (full, not_ready, allocation)
