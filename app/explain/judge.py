# SPDX-License-Identifier: Apache-2.0
"""The verdict in one sentence: what Muster itself says of its own pods, the planner's word for others.

Finds nothing by itself: what blocks besides room are the findings, and the first of them is named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.domain.plan import Plan
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import blocker, mixed_apis, surplus, unplannable
from app.explain.case import Case
from app.explain.finding import Finding, Weight
from app.explain.report import Outcome, Verdict, verdict

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


def judge(case: Case, findings: Iterable[Finding]) -> Verdict:
    """The verdict on a case, given all that was found."""
    found = _settled(case) or _room(case)
    blocking = next((one for one in findings if one.weight is Weight.BLOCKS), None)
    if found.code is Outcome.FITS and blocking is not None:
        return verdict(Outcome.BLOCKED, f"{case.subject} does not start: {blocking.text}")
    return found


def _settled(case: Case) -> Verdict | None:
    """The verdict where no room is asked for; None where it is."""
    focus = case.focus
    if focus is not None and focus.node is not None and focus.alive:
        return verdict(Outcome.RUNS, f"{case.subject} is on node {focus.node}; its phase is {focus.phase}")
    if focus is not None and not focus.alive:
        what = "is being deleted" if focus.deleting else f"has ended: {focus.failure or focus.phase}"
        return verdict(Outcome.FINISHED, f"{case.subject} {what}")
    if not case.pods:
        return verdict(Outcome.BLOCKED, f"{case.subject} has no pods")
    if case.gang is not None and not case.gang.roll.missing and focus is None:
        more = f"; {len(case.waiting)} further members wait: {_why(case)}" if case.waiting else ""
        return verdict(Outcome.RUNS, f"{case.subject} runs with {_members(case)}{more}")
    if case.waiting:
        return None
    if case.gang is not None and case.bound:
        return verdict(Outcome.BLOCKED, f"{case.subject} is wounded: it runs {_members(case)}")
    if case.bound:
        return verdict(Outcome.RUNS, f"{case.subject} runs: {len(case.bound)} pods are on nodes")
    return verdict(Outcome.FINISHED, f"{case.subject} has ended: none of its {len(case.pods)} pods is alive")


def _members(case: Case) -> str:
    return f"{case.settled} of {len(case.pods)} members (minimum {case.minimum})"


def _room(case: Case) -> Verdict:
    """The verdict on pods that wait for a place."""
    booked = len(case.inventory.book.of(case.gang.key)) if case.gang is not None else 0
    if case.ours and case.gang is not None and booked:
        state = case.facts.state(case.gang)
        text = f"{case.subject} fits: Muster has reserved {booked} seats for it; it is {state}"
        return verdict(Outcome.FITS, text)
    refusal = reason(case)
    if refusal is not None:
        return verdict(
            OUTCOMES.get(refusal.reason, Outcome.BUSY), f"{case.subject} waits: {refusal_text(case, refusal)}"
        )
    assert isinstance(case.now, Plan), "what is not refused has a plan"
    nodes = len({seat.node for seat in case.now.seats})
    who = " and ".join(case.schedulers)
    text = f"{case.subject} fits now: seats for {len(case.now.seats)} of {len(case.waiting)} waiting pods"
    return verdict(Outcome.FITS, f"{text} on {nodes} nodes; {who} has not placed it yet")


def reason(case: Case) -> Refusal | None:
    """Why the waiting pods have no seats: Muster's own words for a gang of its own; None if they fit."""
    mixed = next((found for pod in case.waiting if (found := mixed_apis(pod)) is not None), None)
    if mixed is not None:
        return mixed
    if case.ours and case.gang is not None:
        return case.facts.refusal(case.gang.key)
    blocked = unplannable(case.gang) if case.gang is not None and case.ours else None
    if blocked is not None:
        return blocked
    if not isinstance(case.now, Refusal) or case.demand is None:
        return None
    return blocker(case.inventory, case.demand, case.now)


def refusal_text(case: Case, refusal: Refusal) -> str:
    """The sentence of a refusal. One made for a pod on its own does not speak of gangs."""
    if case.gang is None and refusal.gang is not None:
        return refusal.subject or refusal.text
    return refusal.text


def _why(case: Case) -> str:
    found = reason(case)
    return refusal_text(case, surplus(found)) if found is not None else "they are about to be placed"
