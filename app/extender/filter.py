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
from app.domain.ids import NodeName
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import mixed_apis
from app.extender.admission import Admission
from app.extender.roster import Roster
from app.extender.rounds import Rounds
from app.extender.seating import reseat
from app.extender.tenure import Tenure
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase

FEW = 100
"""Up to this many refused nodes are named one by one; the rest count as unresolvable anyway."""


class Filter:
    """Answers filter calls from memory."""

    def __init__(
        self, inventory: Inventory, roster: Roster, rounds: Rounds, tenure: Tenure, admission: Admission
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._rounds = rounds
        self._tenure = tenure
        self._admission = admission

    def __call__(self, asked: Pod, names: list[str]) -> FilterAnswer:
        """`asked` is the pod of the call; what the watch has shown of it takes precedence."""
        pod = self._inventory.pods.get(asked.uid, asked)
        if pod.gang is not None and pod.uid in self._inventory.pods:
            self._rounds.call(pod.gang)
        else:
            self._rounds.run()
        if (mixed := mixed_apis(pod)) is not None:
            return _refuse(mixed, names)
        booking = self._inventory.book.get(pod.uid)
        if booking is not None:
            return self._seated(pod, booking, names)
        if pod.gang is not None and pod.grouped:
            self._admission.refused(pod.uid)
            unseen = pod.uid not in self._inventory.pods
            return _refuse(Refusal(reason=Reason.UNSEEN) if unseen else self._roster.refusal(pod.gang), names)
        return self._ordinary(pod, names)

    # -- a member with a seat

    def _seated(self, pod: Pod, booking: Booking, names: list[str]) -> FilterAnswer:
        if booking.node in names:
            return self._send(booking)
        if len(names) == 1 and names[0] == pod.nominated:
            return self._miss(pod, booking, names)  # a probe: the full offer follows in the same cycle
        if booking.phase < Phase.HELD:
            seat = reseat(self._inventory, pod, booking, [NodeName(name) for name in names])
            if seat is not None:
                return self._send(seat)
        if booking.gang is not None:
            self._tenure.missed(booking.gang)
        return self._miss(pod, booking, names)

    def _send(self, booking: Booking) -> FilterAnswer:
        if booking.phase < Phase.HELD:
            booking.phase = Phase.ANSWERED
        self._admission.answered(booking.uid)
        if booking.gang is not None:
            self._roster.progressed(booking.gang)
        return FilterAnswer(names=[booking.node])

    def _miss(self, pod: Pod, booking: Booking, names: list[str]) -> FilterAnswer:
        self._admission.refused(pod.uid)
        return _refuse(Refusal(reason=Reason.NOT_OFFERED, gang=booking.gang), names)

    # -- any other pod

    def _ordinary(self, pod: Pod, names: list[str]) -> FilterAnswer:
        if pod.wants_devices:
            return self._judge(pod, names)
        blocked = self._blocked(pod)
        if blocked.isdisjoint(names):
            return FilterAnswer(names=None)
        return FilterAnswer(
            names=[name for name in names if name not in blocked],
            unresolvable={name: Reason.RESERVED.sentence for name in names if name in blocked},
        )

    def _blocked(self, pod: Pod) -> set[str]:
        """Nodes whose reservations leave no room for a pod without devices: only those can differ from
        what kube-scheduler has judged itself."""
        rows = self._inventory.book.rows()
        if not rows:
            return set()
        fine = self._inventory.fits(pod.template, self._inventory.free_for(pod), rows)
        return {self._inventory.names[row] for row, ok in zip(rows, fine, strict=True) if not ok}

    def _judge(self, pod: Pod, names: list[str]) -> FilterAnswer:
        index = self._inventory.columns.rows_of(names)
        known = index >= 0
        fine = self._inventory.fits(pod.template, self._inventory.free_for(pod), index) & known
        if fine.all():
            return FilterAnswer(names=None)
        answer = FilterAnswer(names=list(compress(names, fine.tolist())))
        out = np.flatnonzero(~fine)
        columns = self._inventory.columns
        could_when_empty = self._holds(pod, index, columns.allocatable)
        could_when_idle = self._holds(pod, index, lambda n: columns.allocatable(n) - columns.reserved(n))
        unreserved = self._holds(pod, index, lambda n: columns.allocatable(n) - columns.used(n))
        for spot in out:
            name = names[spot]
            if not known[spot]:
                answer.unresolvable[name] = Reason.UNKNOWN_NODE.sentence
            elif not could_when_empty[spot]:
                answer.unresolvable[name] = Reason.TOO_SMALL.sentence
            elif unreserved[spot] or not could_when_idle[spot]:
                answer.unresolvable[name] = Reason.RESERVED.sentence
            else:
                answer.failed[name] = Reason.FULL.sentence
        return answer

    def _holds(self, pod: Pod, index: np.ndarray, amounts: Callable[[str], np.ndarray]) -> np.ndarray:
        fine = np.ones(len(index), np.bool_)
        for name, amount in pod.template.requests:
            column = amounts(name)
            fine &= column[index] >= amount if len(column) else False
        return fine


def _refuse(refusal: Refusal, names: list[str]) -> FilterAnswer:
    """One sentence about the gang, on every node when they are few, on one when they are many."""
    named = names if len(names) <= FEW else names[:1]
    return FilterAnswer(names=[], unresolvable=dict.fromkeys(named, refusal.text))
