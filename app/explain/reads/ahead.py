# SPDX-License-Identifier: Apache-2.0
"""Read 3, who is before it: earlier gangs, reserved seats, nominated pods, pods of higher priority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from app.codec.objects import stamp
from app.domain.ids import GangKey
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.reads.evidence import name_of, object_of
from app.explain.words import count, in_units, listed
from app.inventory.gangs import Gang


@finding(
    "EarlierGangs",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{gangs} before this one in the order: {first}",
    meaning=(
        "Gangs are planned by priority, then by age of the PodGroup, then by name; a gang that runs below its"
        " minimum comes first. A later gang never takes what an earlier one could use now. It may use the"
        " rest, so standing behind others need not mean waiting for them."
    ),
    confirm=(
        "muster top",
        "kubectl get podgroups.scheduling.x-k8s.io -A --sort-by=.metadata.creationTimestamp",
    ),
    decide=("raise the priority of the members if this gang is more important",),
)
def earlier_gangs(case: Case) -> Iterable[Hit]:
    """Gangs that wait for devices of the same kind and come first; the one that Muster names first of all."""
    gang = case.gang
    if gang is None or not case.ours or case.fits or isinstance(case.when_empty, Refusal):
        return
    if not gang.roll.quorum:
        return  # it does not stand in the line
    named = _named(case, gang.key)
    wanted, own = set(case.devices), _place(gang)
    waiting = [other for other in case.inventory.gangs if other is not gang and _waits(other, wanted)]
    before = sorted((other for other in waiting if _place(other) < own), key=_place)
    before.sort(key=lambda other: str(other.key) != named)
    if not before:
        return
    evidence = [_standing(other) for other in (gang, *before)]
    yield hit(
        *evidence,
        gangs=count(len(before), "gang that waits for the same is", "gangs that wait for the same are"),
        first=listed(str(other.key) for other in before),
    )


def _named(case: Case, key: GangKey) -> str:
    refusal = case.facts.refusal(key)
    return refusal.subject if refusal.reason is Reason.BEHIND else ""


def _waits(gang: Gang, wanted: set[str]) -> bool:
    """Whether it lacks seats and has its quorum, and asks for one of these devices."""
    roll = gang.roll
    if not gang.defined or not roll.missing or not roll.quorum:
        return False
    first = next(iter(roll.ready), None)
    return first is not None and any(name in wanted and n for name, n in first.template.requests)


def _place(gang: Gang) -> tuple[bool, int, int, str]:
    return not gang.roll.wounded, -gang.roll.priority, gang.roll.created, str(gang.key)


def _standing(gang: Gang) -> Evidence:
    value = f"{gang.roll.priority}, created {stamp(gang.roll.created)}"
    return Evidence(object_of(gang.key), "priority", value)


@finding(
    "ReservedForOthers",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{held} {name} on nodes that it may use {would} for {who}",
    meaning=(
        "Muster sets seats aside for a gang that fits, until each of its members is bound or the plan is"
        " dropped. Reserved devices look free in `kubectl describe node`. A reservation that leads nowhere is"
        " given back by itself after a while."
    ),
    confirm=("muster top", "kubectl get podgroups.scheduling.x-k8s.io -A"),
)
def reserved_for_others(case: Case) -> Iterable[Hit]:
    """Per device: seats of other gangs on nodes that admit the pods."""
    if not case.ours or case.fits:
        return
    held: dict[str, Counter[GangKey]] = {name: Counter() for name in case.devices}
    for booking in case.inventory.book:
        if booking.gang is not None and booking.gang != case.key and case.admitting[booking.row]:
            for name, number in booking.template.requests:
                if name in held:
                    held[name][booking.gang] += number
    for name, gangs in held.items():
        if gangs:
            most = gangs.most_common()
            yield hit(
                *(Evidence(object_of(key), f"reserved {name}", in_units(name, n)) for key, n in most),
                held=in_units(name, gangs.total()),
                name=name,
                would="would be reserved first" if case.facts.supposed else "are reserved",
                who=listed(f"{name_of(key)}{_state(case, key)}" for key, _ in most),
            )


def _state(case: Case, key: GangKey) -> str:
    gang = case.inventory.gangs.get(key)
    return f" ({case.facts.state(gang)})" if gang is not None and not case.facts.supposed else ""


@finding(
    "NominatedPods",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{pods} as placed by a nominatedNodeName: {who}",
    meaning=(
        "A scheduler nominates a node for a pod that preempts others, or that waits in a late phase. All pods"
        " of equal or lower priority count the nominated pod as if it ran there, so its devices look free and"
        " are not. A nomination that nobody clears keeps them for ever."
    ),
    confirm=("kubectl get pods -A -o custom-columns=N:.metadata.name,NODE:.status.nominatedNodeName",),
    decide=("if the nomination is stale, delete that pod so that it is created anew",),
)
def nominated_pods(case: Case) -> Iterable[Hit]:
    """Nominations, without a seat of Muster's, on nodes that admit the pods and hold what they ask for."""
    if case.demand is None or case.fits:
        return
    own = {pod.uid for pod in case.pods}
    before = case.inventory.nominations_before(case.demand.priority, but=own)
    found = [pod for row, pod in before if case.admitting[row] and _asks_the_same(case, pod)]
    if found:
        yield hit(
            *(Evidence(f"pod/{pod.key}", ".status.nominatedNodeName", str(pod.nominated)) for pod in found),
            pods=count(len(found), "unbound pod counts", "unbound pods count"),
            who=listed(f"{pod.key} on {pod.nominated}" for pod in found),
        )


def _asks_the_same(case: Case, pod: Pod) -> bool:
    asked = {name for name, number in pod.template.requests if number}
    return bool(asked.intersection(case.devices))


@finding(
    "HigherPriorityWaits",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{pods} for the same devices with a higher priority than {priority}",
    meaning=(
        "kube-scheduler tries pods of higher priority first, and they may preempt those of lower priority. A"
        " pod of low priority gets what they leave."
    ),
    confirm=("kubectl get pods -A --field-selector spec.nodeName= --sort-by=.spec.priority",),
    decide=("give the pods a higher priorityClassName if they are more important",),
)
def higher_priority_waits(case: Case) -> Iterable[Hit]:
    """For pods of other schedulers, which know no order of gangs: unbound pods of higher priority."""
    if case.demand is None or case.ours or case.fits or not case.devices:
        return
    mine, wanted = case.demand.priority, set(case.devices)
    ahead = [
        pod
        for pod in case.inventory.pods.values()
        if pod.node is None and pod.priority > mine and pod.alive and not pod.gates and _asks(pod, wanted)
    ]
    if ahead:
        ahead.sort(key=lambda pod: (-pod.priority, pod.key))
        pods = count(len(ahead), "pod waits", "pods wait")
        evidence = (Evidence(f"pod/{pod.key}", ".spec.priority", str(pod.priority)) for pod in ahead)
        yield hit(*evidence, pods=pods, priority=mine)


def _asks(pod: Pod, wanted: set[str]) -> bool:
    return any(number and is_device(name) and name in wanted for name, number in pod.template.requests)


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    earlier_gangs,
    reserved_for_others,
    nominated_pods,
    higher_priority_waits,
)
