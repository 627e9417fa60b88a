# SPDX-License-Identifier: Apache-2.0
"""Planning rounds: which gangs are planned, in which order, and what is reserved for them.

A round sorts in the gangs that changed, then goes through those that wait: first those that run below
their minimum, then by priority, age of the PodGroup and name. Each is planned whole on what the earlier
ones left, and behind the fence of a gang that starves on what is outside of it. A refusal holds for all
that ask for the same, until a column they need has grown. Never talks to the API (admission does) and
never takes a seat from another gang (the tenure does).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import structlog

from app.domain.ids import GangKey
from app.domain.plan import Demand, Plan
from app.domain.reasons import Reason, Refusal
from app.extender.admission import Admission
from app.extender.backlog import Line, Place
from app.extender.claims import Claim, whole
from app.extender.fence import Fence
from app.extender.ports import Leadership
from app.extender.roster import Roster
from app.extender.singles import let_preempt
from app.extender.standing import Standing
from app.extender.starvation import Starvation
from app.extender.timing import Timing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase
from app.inventory.view import View
from app.planner.plan import plan

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
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._backlog = roster.backlog
        self._admission = admission
        self._leadership = leadership
        self._clock = clock
        self.starvation = Starvation(
            inventory, roster.backlog, seconds=timing.starvation_seconds, clock=clock
        )
        self.recovering = True
        """Until the first round of a life is over: gangs whose gates are lifted already come first in it."""
        self.closed = False
        """Set when the process ends: no seat is given any more, or its nomination would be left behind."""

    def run(self) -> None:
        """One round, if anything changed since the last and this process may act."""
        if self.closed or not self._leadership.active:
            return
        if not self._roster.round_due() and not self.recovering:
            return
        if self.recovering:
            self.starvation.forget()
        sorted_in = [key for key in self._roster.unsorted() if self._guarded(self._sort_in, key)]
        self.starvation.begin()
        for key in sorted_in:
            self._guarded(self._join_refused, key)
        for place in self._in_order():
            self._guarded(self._consider, place.key)
        self.recovering = False

    def call(self, key: GangKey) -> None:
        """kube-scheduler asks about a member that has no seat: from now on its gang is planned."""
        standing = self._roster.standing(key)
        if not standing.called:
            standing.called = True
            self._roster.lacks(key)
        self.run()

    def _guarded(self, step: Callable[[GangKey], None], key: GangKey) -> bool:
        """A fault of ours in one gang must not keep all others waiting. Whether there was none."""
        try:
            step(key)
        except Exception as fault:
            log.exception("a gang could not be planned", gang=str(key))
            self._leave(key)
            self._roster.look_again(key)
            why = Refusal(reason=Reason.INTERNAL, gang=key, subject=repr(fault)[:200])
            self._roster.standing(key).blocked(why)
            return False
        return True

    # -- who waits

    def _sort_in(self, key: GangKey) -> None:
        """A gang changed: give it its place in the backlog, or none."""
        gang = self._inventory.gangs.get(key)
        claim = self._roster.claim(gang) if gang is not None else None
        if gang is None and self._inventory.book.count(key):
            self._leave(key)  # a gang of one whose gate is lifted: its seat still stands, and may lapse
        elif gang is None:
            self._leave(key)
            self._roster.forget(key)
        elif claim is None or not claim.stands:
            self._leave(key)
            self._roster.lacking.discard(key)
        elif self._plannable(gang, claim):
            self._wait(key, claim)
        else:
            self._leave(key)

    def _plannable(self, gang: Gang, claim: Claim) -> bool:
        standing = self._roster.standing(gang.key)
        if claim.blocked is not None:
            if standing.refusal is not claim.blocked:
                standing.blocked(claim.blocked)
            return False
        return standing.retry_at <= self._clock() and self._in_play(gang, standing)

    def _wait(self, key: GangKey, claim: Claim) -> None:
        """What a gang with seats asks for depends on them, and one with nominated members sees more."""
        apart = key if claim.seats else self._inventory.viewpoint(key)
        before = self._backlog.get(key)
        self._backlog.put(key, claim, apart=apart)
        if before is None or before.claim.rank != claim.rank:
            if before is not None:
                self.starvation.left(before.claim.rank)
            self.starvation.waits(claim.rank)

    def _leave(self, key: GangKey) -> None:
        """The gang waits no more; the next round looks at it again."""
        place = self._backlog.drop(key)
        if place is not None:
            self.starvation.left(place.claim.rank)

    def _in_order(self) -> Iterator[Place]:
        if not self.recovering:
            return self._backlog.in_order(self._refused)
        places = sorted(self._backlog, key=lambda p: (p.claim.rank[0], self._all_gated(p.key), p.claim.rank))
        return (place for place in places if not self._refused(place))

    def _all_gated(self, key: GangKey) -> bool:
        """Whether no gate of the gang was lifted yet."""
        gang = self._inventory.gangs.get(key)
        return gang is not None and all(pod.gated for pod in gang.roll.ready)

    def _refused(self, place: Place) -> bool:
        """Whether it is known that the gang finds no seats now."""
        fence = self.starvation.fence_before(place)
        return place.line.stands(self._inventory.columns.generations(place.claim.names), fence)

    # -- one gang

    def _consider(self, key: GangKey) -> None:
        place, gang = self._backlog.get(key), self._inventory.gangs.get(key)
        assert place is not None and gang is not None, "who waits is there"
        if self._roster.claim(gang) is not place.claim:
            self._roster.lacks(key)  # a seat went without a word: its turn is in the next round
            return
        if self._fill_vacancies(gang):
            self._roster.look_again(key)
        claim = self._roster.claim(gang)
        assert claim.demand is not None, "a claim without members does not stand"
        fence = self.starvation.fence_before(place)
        verdict = plan(self._view(claim.demand, fence), claim.demand)
        if isinstance(verdict, Plan):
            self._seat(place, verdict)
        elif not self._replan(place, fence):
            self._refuse(place, verdict, fence)

    def _view(self, demand: Demand, fence: Fence | None, *, without: list[Booking] | None = None) -> View:
        """What is free for a gang; it would be, `without` some of its seats."""
        view = self._inventory.view(priority=demand.priority, gang=demand.gang)
        if without:
            free = view.free.copy()
            for seat in without:
                self._inventory.columns.shift(free, seat.row, seat.template.requests, sign=1)
            view = self._inventory.as_view(free)
        return view if fence is None else fence.outside(view, self._inventory)

    def _in_play(self, gang: Gang, standing: Standing) -> bool:
        """Pods without our gate are in kube-scheduler's own queue: until it has tried one of them, nothing is
        set aside for their gang, or other pods would wait for pods that nobody looks at. Those whose gate was
        waived when they were created are as good as gated: they queue in the same order."""
        roll = gang.roll
        return (
            standing.called
            or roll.wounded
            or any(pod.gated or pod.waived or pod.outcome for pod in roll.ready)
        )

    def _fill_vacancies(self, gang: Gang) -> bool:
        """The gang is planned now: what was kept for it is free for it. Whether there was any."""
        vacant = [booking for booking in self._inventory.book.of(gang.key) if booking.vacant]
        for booking in vacant:
            self._inventory.release(booking.uid)
        return bool(vacant)

    def _replan(self, place: Place, fence: Fence | None) -> bool:
        """The seats a gang has already may be in the way of the rest: plan it anew if none is in use yet.

        As long as there is no such plan, nothing is given back: what comes free wakes everybody who waits.
        """
        gang = self._inventory.gangs.get(place.key)
        old = self._inventory.book.of(place.key)
        if gang is None or not old or len(old) >= gang.roll.missing:
            return False
        if any(booking.phase is not Phase.RESERVED for booking in old):
            return False
        demand = whole(gang)
        verdict = plan(self._view(demand, fence, without=old), demand)
        if not isinstance(verdict, Plan):
            return False
        for booking in old:
            self._inventory.release(booking.uid)
        self._admission.withdraw(old)
        self._seat(place, verdict)
        return True

    def _seat(self, place: Place, verdict: Plan) -> None:
        existing = self._inventory.book.of(place.key)
        bookings = self._inventory.reserve(verdict, extend=existing[0].plan if existing else None)
        self._roster.standing(place.key).seated(self._clock())
        self._leave(place.key)
        self._roster.lacks(place.key)  # members for whom there was no seat wait on
        self.starvation.seated(place.claim.rank)
        self._admission.admit(bookings)

    def _refuse(self, place: Place, verdict: Refusal, fence: Fence | None) -> None:
        demand = place.claim.demand
        assert demand is not None, "only a demand is refused"
        if fence is not None and isinstance(plan(self._view(demand, None), demand), Plan):
            verdict = msgspec.structs.replace(verdict, reason=Reason.BEHIND, subject=str(fence.key))
        place.line.refuse(verdict, self._inventory.columns.generations(place.claim.names), fence)
        self.starvation.refused(place.line)
        self._let_preempt(place.line, [rank[-1] for rank in place.line.ranks])

    def _join_refused(self, key: GangKey) -> None:
        """Who joins a line that is refused already is refused with it."""
        place = self._backlog.get(key)
        if place is not None and self._refused(place):
            self._let_preempt(place.line, [key])

    def _let_preempt(self, line: Line, keys: list[GangKey]) -> None:
        """What only a fence holds back, preemption would not help."""
        if line.verdict is not None and line.verdict.reason is Reason.BUSY:
            let_preempt(keys, self._inventory, self._admission)
