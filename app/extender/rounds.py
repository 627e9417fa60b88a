# SPDX-License-Identifier: Apache-2.0
"""Planning rounds: which gangs are planned, in which order, and what is reserved for them.

A round goes through the gangs that lack seats: first those that run below their minimum, then by
priority, age of the PodGroup and name. Each is planned whole on what the earlier ones left. A gang that
was refused costs a comparison until it changes or a column it needs has grown. Never talks to the API
(admission does) and never takes a seat from another gang (the tenure does).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import structlog

from app.domain.ids import GangKey
from app.domain.plan import Plan
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.extender.admission import Admission
from app.extender.claims import Claim, Signature
from app.extender.ports import Leadership
from app.extender.roster import Roster
from app.extender.standing import Standing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase
from app.planner.plan import plan

Refused: TypeAlias = dict[tuple[Signature, GangKey | None], Refusal]
"""Refusals of this round, by what was asked and from whose view: the same need not be asked twice."""

log = structlog.get_logger()


class Rounds:
    """Gives gangs their seats."""

    def __init__(
        self,
        inventory: Inventory,
        roster: Roster,
        admission: Admission,
        *,
        leadership: Leadership,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._admission = admission
        self._leadership = leadership
        self._clock = clock
        self.recovering = True
        """Until the first round of a life is over: gangs whose gates are lifted already come first in it."""
        self.closed = False
        """Set when the process ends: no seat is given any more, or its nomination would be left behind."""

    def run(self) -> None:
        """One round, if anything changed since the last and this process may act."""
        if self.closed or not self._leadership.active or not self._roster.round_due():
            return
        refused: Refused = {}
        for gang, claim in self._in_order():
            try:
                self._consider(gang, claim, refused)
            except Exception as fault:  # a fault of ours in one gang must not keep all others waiting
                log.exception("a gang could not be planned", gang=str(gang.key))
                why = Refusal(reason=Reason.INTERNAL, gang=gang.key, subject=repr(fault)[:200])
                self._roster.standing(gang.key).blocked(why)
        self.recovering = False

    def call(self, key: GangKey) -> None:
        """kube-scheduler asks about a member that has no seat: from now on its gang is planned."""
        standing = self._roster.standing(key)
        if not standing.called:
            standing.called = self._roster.dirty = True
        self.run()

    def _in_order(self) -> list[tuple[Gang, Claim]]:
        found = []
        for key in list(self._roster.lacking):
            gang = self._inventory.gangs.get(key)
            if gang is None and self._inventory.book.count(key):
                continue  # a gang of one whose gate is lifted: its seat still stands, and may lapse
            if gang is None:
                self._roster.forget(key)
            claim = self._roster.claim(gang) if gang is not None else None
            if gang is None or claim is None or not claim.stands:
                self._roster.lacking.discard(key)
            else:
                found.append((gang, claim))
        if self.recovering:
            return sorted(found, key=lambda item: (item[1].rank[0], _all_gated(item[0]), item[1].rank))
        return sorted(found, key=lambda item: item[1].rank)

    def _consider(self, gang: Gang, claim: Claim, refused: Refused) -> None:
        standing = self._roster.standing(gang.key)
        if claim.blocked is not None:
            if standing.refusal is not claim.blocked:
                standing.blocked(claim.blocked)
            return
        if standing.refusal is not None and standing.basis == self._basis(claim):
            return
        if standing.retry_at > self._clock() or not self._in_play(gang, standing):
            return
        if self._fill_vacancies(gang):
            refused.clear()  # more is free than when the others were refused, so another round follows
        claim = self._roster.claim(gang)
        assert claim.demand is not None, "a claim without members does not stand"
        view = self._inventory.view(priority=claim.demand.priority, gang=gang.key)
        alike = (claim.signature, self._inventory.viewpoint(gang.key))
        verdict: Plan | Refusal | None = refused.get(alike)
        if verdict is None:
            verdict = plan(view, claim.demand)
        if isinstance(verdict, Plan):
            self._seat(gang, verdict)
            return
        refused.setdefault(alike, verdict)
        if not self._replan(gang):
            self._refuse(standing, verdict, claim)

    def _basis(self, claim: Claim) -> tuple[object, ...]:
        """What a refusal rests on."""
        return (claim.version, claim.seats, self._inventory.columns.generations(claim.names))

    def _in_play(self, gang: Gang, standing: Standing) -> bool:
        """Pods without our gate are in kube-scheduler's own queue: until it has tried one of them, nothing is
        set aside for their gang, or other pods would wait for pods that nobody looks at."""
        roll = gang.roll
        return standing.called or roll.wounded or any(pod.gated or pod.outcome for pod in roll.ready)

    def _fill_vacancies(self, gang: Gang) -> bool:
        """The gang is planned now: what was kept for it is free for it. Whether there was any."""
        vacant = [booking for booking in self._inventory.book.of(gang.key) if booking.vacant]
        for booking in vacant:
            self._inventory.release(booking.uid)
        return bool(vacant)

    def _replan(self, gang: Gang) -> bool:
        """The seats a gang has already may be in the way of the rest: plan it anew if none is in use yet."""
        old = self._inventory.book.of(gang.key)
        if not old or len(old) >= gang.roll.missing or any(b.phase is not Phase.RESERVED for b in old):
            return False
        for booking in old:
            self._inventory.release(booking.uid)
        demand = self._roster.claim(gang).demand
        view = self._inventory.view(priority=gang.roll.priority, gang=gang.key)
        verdict = plan(view, demand) if demand is not None else None
        if isinstance(verdict, Plan):
            self._admission.withdraw(old)
            self._seat(gang, verdict)
            return True
        seats = Plan(gang=gang.key, seats=tuple(booking.seat for booking in old))
        for made, booking in zip(self._inventory.reserve(seats, extend=old[0].plan), old, strict=True):
            made.nominated = booking.nominated
        return False

    def _seat(self, gang: Gang, verdict: Plan) -> None:
        existing = self._inventory.book.of(gang.key)
        bookings = self._inventory.reserve(verdict, extend=existing[0].plan if existing else None)
        self._roster.standing(gang.key).seated(self._clock())
        self._admission.admit(bookings)

    def _refuse(self, standing: Standing, refusal: Refusal, claim: Claim) -> None:
        assert claim.demand is not None, "only a demand is refused"
        standing.refused(refusal, claim.demand, self._basis(claim))
        pod = self._inventory.pods.get(claim.demand.members[0].uid)
        if pod is not None and pod.single and pod.preempts and self._would_preempt(pod):
            self._admission.release_gate(pod)

    def _would_preempt(self, pod: Pod) -> bool:
        """Whether pods of lower priority hold what a gang of one needs, on a node that admits it, and the
        preempt verb would let them go."""
        free = self._inventory.free_after_preempting(pod.priority)
        if free is None:
            return False
        rows = self._inventory.admitting(pod.template).nonzero()[0]
        return bool(self._inventory.fits(pod.template, free, rows).any())


def _all_gated(gang: Gang) -> bool:
    """Whether no gate of the gang was lifted yet."""
    return all(pod.gated for pod in gang.roll.ready)
