# SPDX-License-Identifier: Apache-2.0
"""Takes seats back: those that no longer hold, those that nobody uses, and those of a gang that cannot start.

Decides how much of a plan a loss takes with it. Never gives a seat (the rounds do), except to keep one
for the replacement of a member that went.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import Plan, Seat
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import unplannable
from app.extender.admission import Admission
from app.extender.roster import Roster
from app.extender.timing import Timing
from app.inventory.inventory import Inventory, Touched
from app.inventory.reservations import VACANT, Booking, Phase

LOOK_SECONDS = 1.0
"""How often plans are looked at for being idle: that takes tens of seconds, and there may be thousands."""

MOST_MISSES = 8
"""Full offers in a row without a node for a seated member, before its gang's plan is given up."""


class Tenure:
    """`dropped` is told which pods lost a seat, and why."""

    def __init__(
        self,
        inventory: Inventory,
        roster: Roster,
        admission: Admission,
        *,
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._admission = admission
        self._timing = timing
        self._clock = clock
        self._next_look = 0.0
        self.dropped: Callable[[list[PodUid], Refusal], None] = lambda uids, refusal: None

    # -- what changed

    def changed(self, touched: Touched) -> None:
        """Take note of a batch that the inventory has applied, and give back seats that no longer hold."""
        for booking in touched.released:
            self._keep_vacancy(booking)
        for before, after in touched.pods:
            self._check_shape(before, after)
            self._admission.observed(before, after)
        for row in touched.rows:
            self._check_row(row)
        for key in touched.gangs:
            self._check_gang(key)
            self._roster.lacks(key)

    def _check_shape(self, before: Pod | None, after: Pod | None) -> None:
        if before is None or after is None:
            return
        booking = self._inventory.book.get(after.uid)
        if booking is None or booking.phase is Phase.POSTED:
            return
        if before.template != after.template or (after.gang != booking.gang and not _was_single(booking)):
            why = Refusal(reason=Reason.DISPLACED, gang=booking.gang, subject=f"pod {after.name} was changed")
            self._lose(booking, why)

    def _keep_vacancy(self, booking: Booking) -> None:
        """The seat of a member that went stays for its replacement, if others of the gang are bound and wait
        for it: half a gang computes nothing."""
        gang = self._inventory.gangs.get(booking.gang) if booking.gang is not None else None
        if gang is not None and gang.defined and gang.roll.wounded:
            seat = Seat(uid=PodUid(VACANT + booking.uid), node=booking.node, template=booking.template)
            self._inventory.reserve(Plan(gang=gang.key, seats=(seat,)), extend=booking.plan)
            self._roster.standing(gang.key).progress_at = self._clock()

    def _check_row(self, row: int) -> None:
        """A node that is overdrawn, gone, cordoned or tainted cannot keep its seats."""
        for booking in self._inventory.book.on(row):
            if booking.phase is Phase.POSTED:
                continue
            fine = bool(self._inventory.admitting(booking.template)[row])
            if fine and not self._inventory.columns.overdrawn(row):
                continue
            if self._inventory.book.get(booking.uid) is booking:
                subject = f"node {booking.node} " + (
                    "was filled by others" if fine else "takes its members no longer"
                )
                self._lose(booking, Refusal(reason=Reason.DISPLACED, gang=booking.gang, subject=subject))

    def _check_gang(self, key: GangKey) -> None:
        bookings = self._inventory.book.of(key)
        if not bookings or key.api is GangApi.SINGLE:
            return
        gang = self._inventory.gangs.get(key)
        if gang is None or not gang.defined:
            self.give_up(key, Refusal(reason=Reason.NO_POD_GROUP, gang=key))
        elif all(b.phase is Phase.RESERVED for b in bookings) and not gang.roll.quorum:
            refusal = unplannable(gang)
            if refusal is not None and not gang.roll.wounded:
                self.give_up(key, refusal)

    def unbound(self, booking: Booking) -> None:
        """The binding of a member has failed for certain: what changed meanwhile holds for its seat too."""
        booking.phase = Phase.RESERVED
        self._check_row(booking.row)
        if booking.gang is not None:
            self._check_gang(booking.gang)

    def _lose(self, booking: Booking, refusal: Refusal) -> None:
        """One seat is lost; the rest stay only if they still carry the gang to its minimum."""
        self._inventory.release(booking.uid)
        self._admission.withdraw([booking])
        self.dropped([booking.uid], refusal)
        if booking.gang is None:
            return
        self._roster.lacks(booking.gang)
        gang = self._inventory.gangs.get(booking.gang)
        left = self._inventory.book.of(booking.gang)
        posted = any(other.phase is Phase.POSTED for other in left)
        carried = gang is not None and (gang.roll.settled > 0 or len(left) >= gang.roll.missing)
        if not carried and not posted:
            self.give_up(booking.gang, refusal)

    # -- whole plans

    def give_up(self, key: GangKey, refusal: Refusal, *, penalty: bool = False) -> None:
        """Drop a gang's plan: every seat that is not being bound goes back at once."""
        lost = [b for b in self._inventory.book.of(key) if b.phase is not Phase.POSTED]
        for booking in lost:
            self._inventory.release(booking.uid)
        self._admission.withdraw(lost)
        self._roster.lacks(key)
        standing = self._roster.standing(key)
        standing.blocked(refusal)
        if penalty:
            self._roster.failed(key, self._timing)
        self.dropped([booking.uid for booking in lost], refusal)

    def missed(self, key: GangKey) -> None:
        """kube-scheduler offered nothing that the gang can use; after a few times in a row, pause."""
        standing = self._roster.standing(key)
        standing.misses += 1
        if standing.misses >= MOST_MISSES:
            standing.misses = 0
            self.give_up(key, Refusal(reason=Reason.NOT_OFFERED, gang=key), penalty=True)

    def abandon(self, refusal: Refusal) -> None:
        """This process may not act any more: forget every plan, so that the next life starts clean."""
        for key in self._inventory.book.gangs():
            self.give_up(key, msgspec.structs.replace(refusal, gang=key))

    def tick(self) -> None:
        """Let plans lapse that nobody uses, or that cannot be admitted."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + LOOK_SECONDS
            self._lapse_idle()
        for uid in self._admission.stuck:
            booking = self._inventory.book.get(uid)
            if booking is not None and booking.gang is not None:
                self.give_up(booking.gang, self._lapsed(booking.gang), penalty=True)
        self._admission.stuck.clear()

    def _lapse_idle(self) -> None:
        """Plans are admitted, and asked about by kube-scheduler, in the order in which they were made: a gang
        is idle only when those before it are through, or idle too, and nothing of it waits for us."""
        now, moved, moves = self._clock(), 0.0, deque(self._roster.moves())
        for key in self._inventory.book.gangs():
            bookings = self._inventory.book.of(key)
            standing = self._roster.standing(key)
            while moves and moves[0][0] <= bookings[0].plan:
                moved = max(moved, moves.popleft()[1])
            if any(self._admission.opening(booking.uid) for booking in bookings):
                standing.progress_at = now
            standing.progress_at = moved = max(moved, standing.progress_at)
            if now - moved > self._patience(bookings) and self._may_lapse(key, bookings):
                self.give_up(key, self._lapsed(key), penalty=True)

    def _may_lapse(self, key: GangKey, bookings: list[Booking]) -> bool:
        """Not while members are held or being bound (the barrier has deadlines of its own), and not what half
        a gang needs to be completed, unless nobody is there to take it."""
        if any(booking.phase >= Phase.HELD for booking in bookings):
            return False
        gang = self._inventory.gangs.get(key)
        wounded = gang is not None and gang.roll.wounded
        return not wounded or all(booking.vacant for booking in bookings)

    def _lapsed(self, key: GangKey) -> Refusal:
        gang = self._inventory.gangs.get(key)
        need = gang.roll.minimum if gang else 1
        return Refusal(reason=Reason.LAPSED, gang=key, have=gang.roll.settled if gang else 0, need=need)

    def _patience(self, bookings: list[Booking]) -> float:
        """Volumes and claims may take minutes between filter and bind."""
        slow = any({"volumes", "resource claims"} & set(booking.template.unmodelled) for booking in bookings)
        return self._timing.gang_seconds if slow else self._timing.plan_seconds


def _was_single(booking: Booking) -> bool:
    """Between the lifting of its gate and the label that goes with it nothing tells a gang of one apart."""
    return booking.gang is None or booking.gang.api is GangApi.SINGLE
