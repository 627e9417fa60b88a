# SPDX-License-Identifier: Apache-2.0
"""The verdict in one sentence: what Muster itself says of its own pods, the planner's word for others.

Finds nothing by itself: what blocks besides room are the findings, and the first of them is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.domain.ids import GangApi
from app.domain.plan import Plan
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.attempt import last_attempt
from app.explain.blocker import blocker, mixed_apis, surplus, unplannable
from app.explain.case import Case
from app.explain.dra.claims import CLAIM, CLASS, SLICE
from app.explain.finding import Finding, Weight
from app.explain.makers import finished
from app.explain.objects import text
from app.explain.report import Outcome, Verdict, verdict
from app.explain.words import count, listed
from app.inventory.gangs import Gang

OUTCOMES: Final = {
    Reason.NO_POD_GROUP: Outcome.BLOCKED,
    Reason.MIXED_APIS: Outcome.BLOCKED,
    Reason.INCOMPLETE: Outcome.BLOCKED,
    Reason.FOREIGN_GATE: Outcome.BLOCKED,
    Reason.NEVER_FITS: Outcome.NEVER_FITS,
    Reason.NO_PACKING: Outcome.NO_PACKING,
    Reason.PENDING: Outcome.FITS,
    Reason.UNSEEN: Outcome.UNKNOWN,
    Reason.INTERNAL: Outcome.UNKNOWN,
}
"""What a reason of Muster's comes to; all others mean that the gang waits for room."""

_OF_ROOM: Final = {
    Reason.NEVER_FITS: "can never fit as the cluster stands",
    Reason.NO_PACKING: "waits: no packing was found, not even on an empty cluster, which is no proof",
    Reason.BUSY: "waits",
}
"""What is said of a pod on its own, before what is short: the reasons speak of gangs."""

_NO_PROOF: Final = "no packing was found, which is no proof, since some nodes could not be read"

WANTS_NODES: Final = (Outcome.BUSY, Outcome.NEVER_FITS, Outcome.NO_PACKING)
"""Outcomes that say nothing when nodes were not seen: there may be room on them."""


def judge(case: Case, findings: Iterable[Finding]) -> Verdict:
    """The verdict on a case, given all that was found."""
    blocking = next((one.text for one in findings if one.weight is Weight.BLOCKS), "")
    found = _settled(case, blocking) or _room(case)
    if found.code is not Outcome.FITS:
        return found
    if blocking:
        return verdict(Outcome.BLOCKED, f"{case.subject} does not start: {blocking}")
    doubt = _doubt(case)
    if doubt:
        return verdict(Outcome.UNKNOWN, f"{case.subject}: could not tell, {doubt}")
    if case.facts.namespaces is not None:
        return verdict(Outcome.FITS, f"{found.sentence}; at best, since other namespaces were not read")
    return found


def _doubt(case: Case) -> str:
    """Claims that were not read; for pods of other schedulers, room that these refuse for what they alone can
    judge."""
    unread = [kind.partition(".")[0] for kind in (CLAIM, CLASS, SLICE) if case.facts.blind(kind)]
    if unread and any("resource claims" in pod.template.unmodelled for pod in case.waiting):
        return f"there is room, and what its resource claims need was not read ({', '.join(unread)})"
    for pod in () if case.ours else case.waiting:
        said = last_attempt(pod)
        if pod.template.unmodelled and said.reason == "Unschedulable":
            what = listed(pod.template.unmodelled)
            return f"there is room, and {pod.scheduler} alone judges {what}; it says: {said.message}"
    return ""


# -- where no room is asked for


def _settled(case: Case, blocking: str) -> Verdict | None:
    """The verdict where no room is asked for; None where it is."""
    if case.focus is not None:
        return _settled_pod(case, case.focus)
    if not case.pods:
        return _without_pods(case, blocking)
    if case.gang is not None and not case.gang.roll.missing:
        more = (
            f"; {count(len(case.waiting), 'more waits', 'more wait')}: {_why(case)}" if case.waiting else ""
        )
        return verdict(Outcome.RUNS, f"{case.subject} runs with {_members(case)}{more}")
    if case.waiting:
        return None
    if case.gang is not None and case.bound:
        lack = f": {blocking}" if blocking else ""
        return verdict(Outcome.BLOCKED, f"{case.subject} is wounded: it runs {_members(case)}{lack}")
    if case.bound:
        return verdict(Outcome.RUNS, f"{case.subject} runs: {_on_nodes(case)}")
    return _ended(case) or _none_alive(case, blocking)


def _none_alive(case: Case, blocking: str) -> Verdict:
    """The verdict where all pods have ended: it is over, unless somebody is to create more."""
    dead = f"{count(len(case.pods), 'pod has', 'pods have')} ended and none is alive"
    if not any(maker.short for maker in case.makers):
        return verdict(Outcome.FINISHED, f"{case.subject} has ended: {dead}")
    more = blocking or "more are to be created, and are not there yet"
    return verdict(Outcome.BLOCKED, f"{case.subject} does not run: {dead}; {more}")


def _settled_pod(case: Case, pod: Pod) -> Verdict | None:
    if not pod.alive:
        what = "is being deleted" if pod.deleting else f"has ended: {pod.failure or pod.phase}"
        return verdict(Outcome.FINISHED, f"{case.subject} {what}")
    if pod.node is None:
        return None
    return verdict(
        Outcome.RUNS, f"{case.subject} is on node {pod.node}; its phase is {pod.phase}{_wounded(case)}"
    )


def _wounded(case: Case) -> str:
    """What a member that runs should know of its gang."""
    if case.gang is None or not case.gang.roll.wounded:
        return ""
    return f"; its gang {case.gang.key} is wounded: {_members(case)} run"


def _without_pods(case: Case, blocking: str) -> Verdict:
    ended = _ended(case)
    if ended is not None:
        return ended
    if case.facts.blind("Pod"):
        return verdict(Outcome.UNKNOWN, f"{case.subject}: could not tell, since pods were not read")
    if blocking:
        return verdict(Outcome.BLOCKED, f"{case.subject} has no pods: {blocking}")
    if case.makers and not any(maker.wanted for maker in case.makers):
        return verdict(Outcome.FINISHED, f"{case.subject} has no pods, and wants none")
    return verdict(Outcome.BLOCKED, f"{case.subject} has no pods")


def _ended(case: Case) -> Verdict | None:
    """The verdict on a Job that says itself that it is over."""
    condition = finished(case.root) if case.root is not None else None
    if condition is None:
        return None
    if text(condition, "type") != "Failed":
        return verdict(Outcome.FINISHED, f"{case.subject} is complete")
    return verdict(Outcome.FINISHED, f"{case.subject} has failed: {text(condition, 'reason') or 'no reason'}")


def _on_nodes(case: Case) -> str:
    wanted = sum(maker.wanted for maker in case.makers)
    if wanted > len(case.bound):
        return f"{len(case.bound)} of {count(wanted, 'pod')} are on nodes"
    return count(len(case.bound), "pod is on a node", "pods are on nodes")


def _members(case: Case) -> str:
    return f"{case.settled} of {count(len(case.pods), 'member')} (minimum {case.minimum})"


# -- where it is


def _room(case: Case) -> Verdict:
    """The verdict on pods that wait for a place."""
    reserved = _reserved(case)
    if reserved is not None:
        return reserved
    refusal = reason(case)
    if refusal is not None:
        outcome = OUTCOMES.get(refusal.reason, Outcome.BUSY)
        if case.facts.blind("Node") and outcome in WANTS_NODES:
            return verdict(Outcome.UNKNOWN, f"{case.subject}: could not tell, since nodes were not read")
        if case.facts.partly("Node") and outcome is Outcome.NEVER_FITS:
            return verdict(Outcome.NO_PACKING, f"{case.subject} waits: {_NO_PROOF}: {refusal.subject}")
        return verdict(outcome, f"{case.subject} {refused(case, refusal)}{_elsewhere(case, refusal)}")
    assert isinstance(case.now, Plan), "what is not refused has a plan"
    return verdict(Outcome.FITS, f"{case.subject} {_fitting(case, case.now)}")


def _elsewhere(case: Case, refusal: Refusal) -> str:
    """Members that Muster does not count, since another scheduler is to place them."""
    others = [pod for pod in case.waiting if pod.scheduler != case.inventory.scheduler]
    if refusal.reason is not Reason.INCOMPLETE or not others:
        return ""
    names = listed(sorted({pod.scheduler for pod in others}))
    return f"; {count(len(others), 'more waits', 'more wait')} for {names}"


def _reserved(case: Case) -> Verdict | None:
    """The verdict where Muster has seats for it."""
    bookings = [one for one in case.booked if case.focus is None or one.uid == case.focus.uid]
    if not bookings:
        return None
    seats = f"a seat on node {bookings[0].node}" if len(bookings) == 1 else f"{len(bookings)} seats"
    return verdict(Outcome.FITS, f"{case.subject} fits: {_booked(case, seats)}")


def _booked(case: Case, seats: str) -> str:
    """What Muster has reserved, or would if it were started with what was read."""
    who = f"{len(case.booked)} of {count(len(case.waiting), 'waiting pod')}" if case.gang is None else "it"
    if case.facts.supposed:
        return f"Muster would reserve {seats} for {who} now"
    whose = "it" if case.focus is None or case.focus.single else f"its gang {case.key}"
    state = f"; {whose} is {case.facts.state(case.gang)}" if case.gang is not None else ""
    return f"Muster has reserved {seats} for {who}{state}"


def _fitting(case: Case, found: Plan) -> str:
    """What the planner found, told of the pod or of all."""
    late = f"{listed(case.schedulers)} {'has' if len(case.schedulers) == 1 else 'have'} not placed"
    nodes = listed(dict.fromkeys(str(seat.node) for seat in found.seats), most=2)
    if case.focus is None and len(case.waiting) > 1:
        seats = f"seats for {len(found.seats)} of {len(case.waiting)} pods that wait, on {nodes}"
        return f"fits now: {seats}; {late} them yet"
    if case.focus is None or len(case.waiting) == 1:
        return f"fits now: on node {nodes}; {late} it yet"
    whole = f"its gang has seats for {len(found.seats)} of {len(case.waiting)} pods that wait, on {nodes}"
    return f"fits now: {whole}; {late} them yet"


def reason(case: Case) -> Refusal | None:
    """Why the waiting pods have no seats: Muster's own words for a gang of its own; None if they fit."""
    ours = [pod for pod in _asked_about(case) if pod.scheduler == case.inventory.scheduler]
    mixed = next((found for pod in ours if (found := mixed_apis(pod)) is not None), None)
    if mixed is not None:
        return mixed
    gang = case.inventory.gangs.get(ours[0].gang) if ours and ours[0].gang is not None else None
    if gang is not None:
        return _said(case, gang)
    if not isinstance(case.now, Refusal) or case.demand is None:
        return None
    return blocker(case.inventory, case.demand, case.now)


def _asked_about(case: Case) -> list[Pod]:
    """The pods whose scheduler gives the reason: the one asked about, or all that wait."""
    return [case.focus] if case.focus is not None and case.focus in case.waiting else case.waiting


def _said(case: Case, gang: Gang) -> Refusal:
    """Muster's own word on a gang."""
    said = case.facts.refusal(gang.key)
    blocked = unplannable(gang) if said.reason is Reason.PENDING else None
    return blocked or said


def refused(case: Case, refusal: Refusal) -> str:
    """A refusal as the rest of a sentence about the subject. The subject is not told its own name again."""
    gang = f"gang {refusal.gang} "
    if refusal.gang is None or not refusal.text.startswith(gang):
        return f"waits: {refusal.text}"
    alone = case.gang is None or refusal.gang.api is GangApi.SINGLE
    if alone and refusal.reason in _OF_ROOM:
        return f"{_OF_ROOM[refusal.reason]}: {refusal.subject}"
    rest = refusal.text.removeprefix(gang)
    if refusal.reason is Reason.NEVER_FITS:
        rest = f"{_OF_ROOM[refusal.reason]}: {refusal.subject}"
    elif refusal.reason is Reason.BUSY:
        rest = f"has seats for {refusal.have} of {count(refusal.need, 'member')}: {refusal.subject}"
    if not alone and case.subject.kind != "podgroup":
        return f"waits: {gang}{rest}"
    return rest if rest.startswith(("waits", "can never", "is about")) else f"waits: it {rest}"


def _why(case: Case) -> str:
    """Why members beyond the minimum have no seats."""
    found = reason(case)
    if found is None:
        return "there is room, and they are about to be placed"
    told = found if found.reason is Reason.SURPLUS else surplus(found)
    return told.subject
