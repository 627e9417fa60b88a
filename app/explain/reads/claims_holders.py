# SPDX-License-Identifier: Apache-2.0
"""Read 4, holders: which claims have the devices that are asked for, for whom, and which in vain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.codec.objects import seconds
from app.codec.snapshot import JsonObject
from app.explain.case import Case
from app.explain.dra.claims import CLAIM, label
from app.explain.dra.pools import Supply
from app.explain.finding import MOST_EVIDENCE, Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import name_of, namespace_of, text
from app.explain.words import listed, span


def _largest(supply: Supply) -> list[tuple[JsonObject, int]]:
    """The claims that hold devices and how many each, most first."""
    return sorted(supply.held.values(), key=lambda one: (-one[1], label(one[0])))


def _users(case: Case, claim: JsonObject) -> str:
    """`for pod a/x (priority 5)`."""
    consumers = case.dra.consumers(claim)
    return f"for {listed(consumers)}" if consumers else "for nobody"


@finding(
    "DevicesHeldByClaims",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence=(
        "{held} of {all} devices for '{what}' are held by claims ({count}), {most};"
        " priority does not free them: allocated devices are never preempted"
    ),
    meaning=(
        "A device that is allocated to a claim stays with it until the last pod that uses the claim has"
        " ended. Preemption does not help: kube-scheduler does not count on the devices of victims, so no"
        " pod, whatever its priority, evicts others for them. Where what is left is too little, the pod"
        " waits until holders end or somebody ends them. Pods of a higher priority wait like all others."
    ),
    confirm=("kubectl get resourceclaims -A", "kubectl get resourceclaim {claim} -n {namespace} -o yaml"),
    decide=("wait for the holders, or stop some of them",),
)
def held(case: Case) -> Iterable[Hit]:
    """Per alternative of each request: who holds devices it could use. Blocks where too few are left."""
    if case.facts.blind(CLAIM):
        return
    for need in case.needs:
        blocks = need.short(when_empty=False)
        for wanted, supply in need.options:
            if supply.held and not wanted.admin:
                yield _held(case, supply, what=str(wanted), weight=Weight.BLOCKS if blocks else None)


def _held(case: Case, supply: Supply, *, what: str, weight: Weight | None) -> Hit:
    claims = _largest(supply)
    first, count = claims[0]
    return hit(
        *(_holding(case, claim, n) for claim, n in claims[:MOST_EVIDENCE]),
        weight=weight,
        held=supply.in_use,
        count=len(claims),
        all=sum(supply.usable.values()),
        what=what,
        most=f"{count} by claim {label(first)} {_users(case, first)}",
        claim=name_of(first),
        namespace=namespace_of(first),
    )


def _holding(case: Case, claim: JsonObject, count: int) -> Evidence:
    where = f"resourceclaim/{label(claim)}"
    return Evidence(where, ".status.allocation", f"devices: {count}, {_users(case, claim)}")


@finding(
    "DevicesHeldForNobody",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="devices for '{what}' are held for nobody who runs: {held}, by {claims}",
    meaning=(
        "The claim has its devices, and all pods it is reserved for have finished or are gone, or it is"
        " reserved for nobody. The resourceclaim controller of kube-controller-manager takes devices back"
        " when the last pod has ended; that takes moments. If it lasts the controller does not run or cannot"
        " write. A claim that a failed bind has left reserved for nobody keeps its devices until its pod is"
        " scheduled or deleted, and one that was made by hand until it is used again or deleted."
    ),
    confirm=("kubectl get resourceclaim {claim} -n {namespace} -o jsonpath='{{.status}}'",),
    decide=("see to kube-controller-manager; delete claims, or pods that own them, that nobody needs",),
)
def in_vain(case: Case) -> Iterable[Hit]:
    """Per alternative of each request: claims without a pod that could be using the devices."""
    if case.facts.blind(CLAIM):
        return
    for need in case.needs:
        for wanted, supply in need.options:
            found = [(claim, n) for claim, n in _largest(supply) if case.dra.idle(claim)]
            if found:
                yield hit(
                    *(_idling(case, claim) for claim, _ in found),
                    held=sum(n for _, n in found),
                    what=wanted,
                    claims=listed(f"claim {label(c)}{_age(case, c)} {_users(case, c)}" for c, _ in found),
                    claim=name_of(found[0][0]),
                    namespace=namespace_of(found[0][0]),
                )


def _idling(case: Case, claim: JsonObject) -> Evidence:
    where = f"resourceclaim/{label(claim)}"
    return Evidence(where, ".status.reservedFor", listed(case.dra.consumers(claim)) or "empty")


def _age(case: Case, claim: JsonObject) -> str:
    """` (allocated 3h ago)`; nothing if the time is not known."""
    given = seconds(text(claim, "status", "allocation", "allocationTimestamp"))
    made = seconds(text(claim, "metadata", "creationTimestamp"))
    since = case.facts.now - (given or made)
    if not case.facts.now or not (given or made) or since < 0:
        return ""
    return f" ({'allocated' if given else 'made'} {span(since)} ago)"


FINDINGS: Final[tuple[Topic[Case], ...]] = (held, in_vain)
