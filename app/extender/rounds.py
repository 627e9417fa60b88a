# SPDX-License-Identifier: Apache-2.0
"""Planning rounds: which gangs are planned, in which order, what is reserved and what is given back.

A round goes through the gangs that lack seats: first those that run below their minimum, then by
priority, age of the PodGroup and name. Each is planned whole on what the earlier ones left. A gang that
was refused costs a comparison until it changes or a column it needs has grown. Never talks to the API:
admission does.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import Plan, Seat
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import blocker, surplus, unplannable
from app.extender.admission import Admission
from app.extender.claims import Claim, Signature, claim_of
from app.extender.ports import Leadership
from app.extender.standing import Standing
from app.extender.timing import Timing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory, Touched
from app.inventory.reservations import VACANT, Booking, Phase
from app.planner.plan import plan

MOST_MISSES = 8
"""Full offers in a row without a node for a seated member, before its gang's plan is given up."""


class Rounds:
    """Gives gangs their seats and takes them back. `dropped` is told which pods lost a seat, and why."""

    def __init__(
        self,
        inventory: Inventory,
        admission: Admission,
        *,
        leadership: Leadership,
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._admission = admission
        self._leadership = leadership
        self._timing = timing
        self._clock = clock
        self._standing: dict[GangKey, Standing] = {}
        self._lacking: set[GangKey] = set()
        self._dirty = True
        self._recovering = True
        self.closed = False
        """Set when the process ends: no seat is given any more, or its nomination would be left behind."""
        self.dropped: Callable[[list[PodUid], Refusal], None] = lambda uids, refusal: None

    # -- what changed

    def changed(self, touched: Touched) -> None:
        """Take note of a batch that the inventory has applied, and give back seats that no longer hold."""
        self._dirty = True
        for booking in touched.released:
            self._keep_vacancy(booking)
        for before, after in touched.pods:
            self._check_shape(before, after)
            self._admission.observed(before, after)
        for row in touched.rows:
            self._check_row(row)
        for key in touched.gangs:
            self._check_gang(key)
            self._lacking.add(key)

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
            self._stand(gang.key).progress_at = self._clock()

    def _fill_vacancies(self, gang: Gang) -> bool:
        """The gang is planned now: what was kept for it is free for it. Whether there was any."""
        vacant = [booking for booking in self._inventory.book.of(gang.key) if booking.vacant]
        for booking in vacant:
            self._inventory.release(booking.uid)
        return bool(vacant)

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
        elif not gang.roll.quorum and all(b.phase is Phase.RESERVED for b in bookings):
            refusal = unplannable(gang)
            if refusal is not None and not gang.roll.wounded:
                self.give_up(key, refusal)

    def _lose(self, booking: Booking, refusal: Refusal) -> None:
        """One seat is lost; the rest stay only if they still carry the gang to its minimum."""
        self._inventory.release(booking.uid)
        self._admission.withdraw([booking])
        self.dropped([booking.uid], refusal)
        self._dirty = True
        if booking.gang is None:
            return
        self._lacking.add(booking.gang)
        gang = self._inventory.gangs.get(booking.gang)
        left = self._inventory.book.of(booking.gang)
        posted = any(other.phase is Phase.POSTED for other in left)
        carried = gang is not None and (gang.roll.settled > 0 or len(left) >= gang.roll.missing)
        if not carried and not posted:
            self.give_up(booking.gang, refusal)

    def give_up(self, key: GangKey, refusal: Refusal, *, penalty: bool = False) -> None:
        """Drop a gang's plan: every seat that is not being bound goes back at once."""
        lost = [b for b in self._inventory.book.of(key) if b.phase is not Phase.POSTED]
        for booking in lost:
            self._inventory.release(booking.uid)
        self._admission.withdraw(lost)
        self._lacking.add(key)
        self._dirty = True
        standing = self._stand(key)
        standing.blocked(refusal)
        if penalty:
            standing.failed(self._clock(), self._timing)
        self.dropped([booking.uid for booking in lost], refusal)

    # -- the round

    def run(self) -> None:
        """One round, if anything changed since the last and this process may act."""
        if self.closed or not self._dirty or not self._leadership.active:
            return
        self._dirty = False
        refused: dict[tuple[Signature, GangKey | None], Refusal] = {}
        for gang, claim in self._in_order():
            try:
                self._consider(gang, claim, refused)
            except Exception as fault:  # a fault of ours in one gang must not keep all others waiting
                self._stand(gang.key).blocked(
                    Refusal(reason=Reason.INTERNAL, gang=gang.key, subject=repr(fault)[:200])
                )
        self._recovering = False

    def _in_order(self) -> list[tuple[Gang, Claim]]:
        found = []
        for key in list(self._lacking):
            gang = self._inventory.gangs.get(key)
            if gang is None and self._inventory.book.count(key):
                continue  # a gang of one whose gate is lifted: its seat still stands, and may lapse
            if gang is None:
                self._standing.pop(key, None)
            claim = self._claim(gang) if gang is not None else None
            if gang is None or claim is None or not claim.stands:
                self._lacking.discard(key)
            else:
                found.append((gang, claim))
        if self._recovering:
            return sorted(found, key=lambda item: (item[1].rank[0], _all_gated(item[0]), item[1].rank))
        return sorted(found, key=lambda item: item[1].rank)

    def _claim(self, gang: Gang) -> Claim:
        standing = self._stand(gang.key)
        standing.claim = claim_of(gang, self._inventory, standing.claim)
        return standing.claim

    def _consider(
        self, gang: Gang, claim: Claim, refused: dict[tuple[Signature, GangKey | None], Refusal]
    ) -> None:
        standing = self._stand(gang.key)
        if claim.blocked is not None:
            if standing.refusal is not claim.blocked:
                standing.blocked(claim.blocked)
            return
        if standing.refusal is not None and standing.basis == self._basis(claim):
            return
        if standing.retry_at > self._clock() or not self._in_play(gang, standing):
            return
        if self._fill_vacancies(gang):
            refused.clear()  # more is free than when the others were refused
            self._dirty = True
        claim = self._claim(gang)
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

    def _replan(self, gang: Gang) -> bool:
        """The seats a gang has already may be in the way of the rest: plan it anew if none is in use yet."""
        old = self._inventory.book.of(gang.key)
        if not old or len(old) >= gang.roll.missing or any(b.phase is not Phase.RESERVED for b in old):
            return False
        for booking in old:
            self._inventory.release(booking.uid)
        demand = self._claim(gang).demand
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
        self._stand(gang.key).seated(self._clock())
        self._admission.admit(bookings)

    def _refuse(self, standing: Standing, refusal: Refusal, claim: Claim) -> None:
        assert claim.demand is not None, "only a demand is refused"
        demand = claim.demand
        standing.refused(refusal, demand, self._basis(claim))
        pod = self._inventory.pods.get(demand.members[0].uid)
        single = demand.gang.api is GangApi.SINGLE and pod is not None and pod.preempts
        if single and pod is not None and self._would_preempt(pod):
            self._admission.release_gate(pod)

    def _would_preempt(self, pod: Pod) -> bool:
        """Whether pods of lower priority hold what a gang of one needs, on a node that admits it, and the
        preempt verb would let them go."""
        free = self._inventory.free_after_preempting(pod.priority)
        if free is None:
            return False
        rows = self._inventory.admitting(pod.template).nonzero()[0]
        return bool(self._inventory.fits(pod.template, free, rows).any())

    # -- asked by the verbs

    def refusal(self, key: GangKey) -> Refusal:
        """Why a gang has no seats, as exactly as can be told now."""
        standing = self._standing.get(key)
        if standing is None or standing.refusal is None:
            return Refusal(reason=Reason.PENDING, gang=key)
        if standing.retry_at > self._clock() and standing.refusal.reason is not Reason.BACKOFF:
            return Refusal(reason=Reason.BACKOFF, gang=key, subject=standing.refusal.text)
        if (
            standing.demand is not None
            and standing.found is not None
            and standing.diagnosis_due(self._clock())
        ):
            gang = self._inventory.gangs.get(key)
            exact = blocker(self._inventory, standing.demand, standing.found)
            runs = gang is not None and gang.key.api is not GangApi.SINGLE and not gang.roll.missing
            standing.diagnosed(surplus(exact) if runs else exact, self._clock())
        return standing.refusal or Refusal(reason=Reason.PENDING, gang=key)

    def call(self, key: GangKey) -> None:
        """kube-scheduler asks about a member that has no seat: from now on its gang is planned."""
        standing = self._stand(key)
        if not standing.called:
            standing.called = self._dirty = True
        self.run()

    def progressed(self, key: GangKey) -> None:
        """A member of the gang moved on: its plan does not lapse yet."""
        standing = self._stand(key)
        standing.progress_at, standing.misses = self._clock(), 0

    def missed(self, key: GangKey) -> None:
        """kube-scheduler offered nothing that the gang can use; after a few times in a row, pause."""
        standing = self._stand(key)
        standing.misses += 1
        if standing.misses >= MOST_MISSES:
            standing.misses = 0
            refusal = Refusal(reason=Reason.NOT_OFFERED, gang=key)
            self.give_up(key, refusal, penalty=True)

    def succeeded(self, key: GangKey) -> None:
        """The gang reached its minimum: earlier failures are forgotten."""
        standing = self._stand(key)
        standing.failures, standing.retry_at = 0, 0.0

    def waiting(self) -> list[GangKey]:
        """Gangs that lack seats, in no particular order."""
        return [key for key in self._lacking if self.waits(key)]

    def waits(self, key: GangKey) -> bool:
        """Whether a gang lacks seats and has been given none."""
        return key in self._lacking and not self._inventory.book.of(key)

    def abandon(self, refusal: Refusal) -> None:
        """This process may not act any more: forget every plan, so that the next life starts clean."""
        for key in self._inventory.book.gangs():
            self.give_up(key, msgspec.structs.replace(refusal, gang=key))
        self._recovering = True

    def tick(self) -> None:
        """Let plans lapse that nobody uses, and let gangs try again whose pause is over."""
        now = self._clock()
        for key in self._inventory.book.gangs():
            bookings = self._inventory.book.of(key)
            vacant = all(booking.vacant for booking in bookings)
            if any(b.phase >= Phase.HELD for b in bookings) or (self._wounded(key) and not vacant):
                continue
            if now - self._stand(key).progress_at > self._patience(bookings):
                self.give_up(key, self._lapsed(key), penalty=True)
        for uid in self._admission.stuck:
            booking = self._inventory.book.get(uid)
            if booking is not None and booking.gang is not None:
                self.give_up(booking.gang, self._lapsed(booking.gang), penalty=True)
        self._admission.stuck.clear()
        if any(s.retry_at and s.retry_at <= now for s in self._standing.values()):
            for standing in self._standing.values():
                if standing.retry_at and standing.retry_at <= now:
                    standing.retry_at, standing.basis = 0.0, ()
            self._dirty = True

    def _lapsed(self, key: GangKey) -> Refusal:
        gang = self._inventory.gangs.get(key)
        need = gang.roll.minimum if gang else 1
        return Refusal(reason=Reason.LAPSED, gang=key, have=gang.roll.settled if gang else 0, need=need)

    def _wounded(self, key: GangKey) -> bool:
        gang = self._inventory.gangs.get(key)
        return gang is not None and gang.roll.wounded

    def _patience(self, bookings: list[Booking]) -> float:
        """Volumes and claims may take minutes between filter and bind."""
        slow = any({"volumes", "resource claims"} & set(booking.template.unmodelled) for booking in bookings)
        return self._timing.gang_seconds if slow else self._timing.plan_seconds

    def _stand(self, key: GangKey) -> Standing:
        gang = self._inventory.gangs.get(key)
        group = gang.group.uid if gang is not None and gang.group is not None else ""
        standing = self._standing.get(key)
        if standing is None or (group and standing.group not in ("", group)):
            # A PodGroup that was created again starts afresh.
            standing = self._standing[key] = Standing(progress_at=self._clock())
        standing.group = group or standing.group
        return standing


def _was_single(booking: Booking) -> bool:
    """A gang of one is only recognised by its gate; once that is lifted the pod names no gang any more."""
    return booking.gang is None or booking.gang.api is GangApi.SINGLE


def _all_gated(gang: Gang) -> bool:
    """Whether no gate of the gang was lifted yet."""
    return all(pod.gated for pod in gang.roll.ready)
