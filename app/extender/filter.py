# SPDX-License-Identifier: Apache-2.0
"""The filter verb: a member is sent to its seat or refused; other pods keep off what is reserved.

A member's refusal is *unresolvable*: a gang that cannot start must not evict anyone. Never answers with a
node that was not offered, never nominates, never raises for "no".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress

import numpy as np

from app.codec.extender import FilterAnswer
from app.codec.offer import Offer
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import mixed_apis
from app.extender.admission import Admission
from app.extender.offers import Offers
from app.extender.roster import Roster
from app.extender.rounds import Rounds
from app.extender.seating import reseat
from app.extender.tenure import Tenure
from app.inventory.columns import Mask, Matrix, Rows
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase

WHY = (Reason.UNKNOWN_NODE, Reason.TOO_SMALL, Reason.RESERVED, Reason.FULL)
"""Why a node cannot take a pod. Of these, kube-scheduler may evict somebody for the last alone."""


class Filter:
    """Answers filter calls from memory."""

    def __init__(
        self,
        inventory: Inventory,
        roster: Roster,
        rounds: Rounds,
        tenure: Tenure,
        admission: Admission,
        offers: Offers,
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._rounds = rounds
        self._tenure = tenure
        self._admission = admission
        self._offers = offers

    def __call__(self, asked: Pod, offer: Offer) -> FilterAnswer:
        """`asked` is the pod of the call; what the watch has shown of it takes precedence."""
        pod = self._inventory.pods.get(asked.uid, asked)
        if pod.gang is not None and pod.uid in self._inventory.pods:
            self._rounds.call(pod.gang)
        else:
            self._rounds.run()
        if (mixed := mixed_apis(pod)) is not None:
            return _refuse(mixed, offer)
        booking = self._inventory.book.get(pod.uid)
        if booking is not None:
            return self._seated(pod, booking, offer)
        if pod.gang is None or not pod.grouped:
            return self._ordinary(pod, offer)
        if pod.uid not in self._inventory.pods:
            return _refuse(Refusal(reason=Reason.UNSEEN), offer)
        self._admission.refused(pod.uid)
        return _refuse(self._roster.refusal(pod.gang), offer)

    # -- a member with a seat

    def _seated(self, pod: Pod, booking: Booking, offer: Offer) -> FilterAnswer:
        if booking.node in offer:
            return self._send(booking)
        if offer.names == [pod.nominated]:
            return self._miss(pod, booking, offer)  # a probe: the full offer follows in the same cycle
        if booking.phase < Phase.HELD:
            seat = reseat(self._inventory, pod, booking, self._offers.rows(offer))
            if seat is not None:
                return self._send(seat)
        if booking.gang is not None:
            self._tenure.missed(booking.gang)
        return self._miss(pod, booking, offer)

    def _send(self, booking: Booking) -> FilterAnswer:
        if booking.phase < Phase.HELD:
            booking.phase = Phase.ANSWERED
        self._admission.answered(booking.uid)
        self._roster.progressed(booking)
        return FilterAnswer(left=Offer([booking.node]))

    def _miss(self, pod: Pod, booking: Booking, offer: Offer) -> FilterAnswer:
        self._admission.refused(pod.uid)
        return _refuse(Refusal(reason=Reason.NOT_OFFERED, gang=booking.gang), offer)

    # -- any other pod

    def _ordinary(self, pod: Pod, offer: Offer) -> FilterAnswer:
        if pod.wants_devices:
            return self._judge(pod, offer)
        blocked = self._blocked(pod)
        if not blocked or blocked.isdisjoint(offer.names):
            return FilterAnswer(left=offer)
        offer.once()
        return FilterAnswer(
            left=Offer([name for name in offer.names if name not in blocked]),
            unresolvable={name: Reason.RESERVED.sentence for name in offer.names if name in blocked},
        )

    def _blocked(self, pod: Pod) -> set[str]:
        """Nodes whose reservations leave no room for a pod without devices: only those can differ from
        what kube-scheduler has judged itself."""
        rows = self._inventory.book.rows()
        if not rows:
            return set()
        free = self._inventory.free_for(pod, np.array(rows))
        fine = self._inventory.fits(pod.template, free)
        return {self._inventory.names[row] for row, ok in zip(rows, fine, strict=True) if not ok}

    def _judge(self, pod: Pod, offer: Offer) -> FilterAnswer:
        rows = self._offers.rows(offer)
        fine = self._inventory.fits(pod.template, self._free(pod), rows) & (rows >= 0)
        if fine.all():
            return FilterAnswer(left=offer)
        left, refused = self._offers.part(offer, rows, fine)
        answer = FilterAnswer(left=left)
        why = self._why(pod, rows[~fine])
        for number, reason in enumerate(WHY):
            told = answer.failed if reason is Reason.FULL else answer.unresolvable
            told.update(dict.fromkeys(compress(refused, (why == number).tolist()), reason.sentence))
        return answer

    def _free(self, pod: Pod) -> Matrix:
        """What is free for this pod: the picture everybody shares, unless it has a place in it itself."""
        if pod.nominated is None and self._inventory.book.get(pod.uid) is None:
            return self._inventory.view(priority=pod.priority).free
        return self._inventory.free_for(pod)

    def _why(self, pod: Pod, rows: Rows) -> Rows:
        """Index into `WHY`, for each row that cannot take the pod."""
        columns = self._inventory.columns
        could_when_empty = self._holds(pod, rows, columns.allocatable)
        could_when_idle = self._holds(pod, rows, lambda n: columns.allocatable(n) - columns.reserved(n))
        unreserved = self._holds(pod, rows, lambda n: columns.allocatable(n) - columns.used(n))
        return np.select([rows < 0, ~could_when_empty, unreserved | ~could_when_idle], [0, 1, 2], 3)

    def _holds(self, pod: Pod, rows: Rows, amounts: Callable[[str], Matrix]) -> Mask:
        fine = np.ones(len(rows), np.bool_)
        for name, amount in pod.template.requests:
            column = amounts(name)
            fine &= column[rows] >= amount if len(column) else False
        return fine


def _refuse(refusal: Refusal, offer: Offer) -> FilterAnswer:
    """One sentence about the gang, on every node when they are few, on one when they are many."""
    return FilterAnswer(unresolvable=dict.fromkeys(offer.few(), refusal.text))
