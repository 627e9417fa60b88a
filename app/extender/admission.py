# SPDX-License-Identifier: Apache-2.0
"""Admits seated members: nominates where it pays, lifts our gate, and clears nominations of dropped seats.

Decides when a patch is due and that it is still right at the moment it is sent; never decides who gets a
seat. A pod that kube-scheduler has just refused is nominated only after the outcome of that attempt is
seen, because kube-scheduler clears `nominatedNodeName` when it records a failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from math import inf
from typing import Any

from app.domain.ids import PodUid
from app.domain.plan import PodRef
from app.domain.pod import Pod
from app.extender.ports import Admitter, Leadership
from app.extender.timing import Timing
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase

Spawn = Callable[[Coroutine[Any, Any, None]], object]
RELEASE_AGAIN_SECONDS = 10.0
MOST_NOMINATIONS = 3
"""A seat whose nomination keeps being cleared is given up after this many."""


class Admission:
    """One writer of nominations and gates."""

    def __init__(
        self,
        inventory: Inventory,
        admitter: Admitter,
        *,
        leadership: Leadership,
        timing: Timing,
        clock: Callable[[], float],
        spawn: Spawn,
        parallel: int = 16,
    ) -> None:
        self._inventory = inventory
        self._admitter = admitter
        self._leadership = leadership
        self._timing = timing
        self._clock = clock
        self._spawn = spawn
        self._slots = asyncio.Semaphore(parallel)
        self._due: dict[PodUid, float] = {}
        self._refused: dict[PodUid, float] = {}
        self._nominations: dict[PodUid, int] = {}
        self._opening: set[PodUid] = set()
        self._lifting: set[PodUid] = set()
        self._clearing: set[PodUid] = set()
        self._releases: dict[PodUid, float] = {}
        self._asked_at = -inf
        self.stuck: set[PodUid] = set()
        """Seats that nominations do not help; the tenure gives their plans up."""

    # -- what happened

    def admit(self, bookings: Iterable[Booking]) -> None:
        """Seats were reserved: send their pods on their way."""
        now = self._clock()
        for booking in bookings:
            pod = self._inventory.pods.get(booking.uid)
            if pod is None:
                continue
            if pod.gated:
                self._line_up(pod)
            else:
                refused = self._refused.get(pod.uid, now)
                self._due[pod.uid] = refused + self._timing.wake_seconds

    def _line_up(self, pod: Pod) -> None:
        """Once: when its turn comes, the seat that counts is the one it has then."""
        if pod.uid not in self._opening:
            self._opening.add(pod.uid)
            self._spawn(self._open(pod))

    def release_gate(self, pod: Pod) -> None:
        """Lift the gate of a pod that needs no seat; tried again until it is off or the pod is gone."""
        self._releases[pod.uid] = self._clock() + RELEASE_AGAIN_SECONDS
        self._spawn(self._in_turn(partial(self._lift, pod, seated=False)))

    def opening(self, uid: PodUid) -> bool:
        """Whether the pod waits for us: its nomination or its gate has not had its turn yet."""
        return uid in self._opening

    def coming(self, uid: PodUid) -> bool:
        """Whether the pod waits for kube-scheduler alone: never tried, while that is at work, it is somewhere
        in its queue, and awake."""
        pod = self._inventory.pods.get(uid)
        if pod is None or pod.node is not None or pod.gates or pod.outcome or uid in self._refused:
            return False
        return self._clock() - self._asked_at <= self._timing.wake_seconds

    def answered(self, uid: PodUid) -> None:
        """The filter verb has answered with the seat: nothing to wake."""
        self._due.pop(uid, None)
        self._asked_at = self._clock()

    def refused(self, uid: PodUid) -> None:
        """The filter verb has refused an attempt of this pod."""
        self._asked_at = self._refused[uid] = self._clock()
        if self._due.get(uid) is not None:
            self._due[uid] = self._refused[uid] + self._timing.wake_seconds

    def withdraw(self, bookings: Iterable[Booking]) -> None:
        """Seats were dropped: clear the nominations that we made for them."""
        for booking in bookings:
            self._due.pop(booking.uid, None)
            self._nominations.pop(booking.uid, None)
            pod = self._inventory.pods.get(booking.uid)
            if pod is not None and pod.node is None and (booking.nominated or pod.nominated_by_us):
                self._spawn(self._clear(pod))

    def sweep(self) -> None:
        """Clear what we, or a former life of this process, nominated and nobody holds a seat for."""
        for pod in self._inventory.foreign_nominations():
            ours = pod.nominated_by_us and pod.scheduler == self._inventory.scheduler
            if ours and pod.uid not in self._clearing:
                self._spawn(self._clear(pod))

    def observed(self, before: Pod | None, after: Pod | None) -> None:
        """The watch has shown a pod."""
        if after is None or after.node is not None:
            gone = after or before
            if gone is not None:
                self._forget(gone.uid)
            return
        if before is None:
            return
        booking = self._inventory.book.get(after.uid)
        if before.outcome != after.outcome:
            self._attempted(after.uid, booking)
        cleared = before.nominated is not None and after.nominated is None
        if cleared and booking is not None and booking.nominated and booking.phase < Phase.HELD:
            booking.nominated = False
            self._due[after.uid] = self._clock()

    def _attempted(self, uid: PodUid, booking: Booking | None) -> None:
        """kube-scheduler has recorded a failed attempt: a nomination made now will stay."""
        self._refused.pop(uid, None)
        if booking is not None and booking.phase < Phase.HELD:
            answered, booking.phase = booking.phase is Phase.ANSWERED, Phase.RESERVED
            self._due[uid] = self._clock() + (self._timing.wake_seconds if answered else 0.0)

    def tick(self) -> None:
        """Send what is due."""
        now = self._clock()
        self._release_again(now)
        for uid in [uid for uid, due in self._due.items() if due <= now]:
            del self._due[uid]
            booking, pod = self._inventory.book.get(uid), self._inventory.pods.get(uid)
            if booking is None or pod is None or booking.phase is not Phase.RESERVED or pod.gated:
                continue
            if self._nominations.get(uid, 0) >= MOST_NOMINATIONS:
                self.stuck.add(uid)
            elif self.coming(uid):
                self._due[uid] = now + self._timing.wake_seconds
            else:
                self._spawn(self._in_turn(partial(self._nominate, pod)))

    def _release_again(self, now: float) -> None:
        for uid in [uid for uid, due in self._releases.items() if due <= now]:
            del self._releases[uid]
            pod = self._inventory.pods.get(uid)
            if pod is not None and pod.gated:
                self.release_gate(pod)

    # -- what is written

    async def _open(self, pod: Pod) -> None:
        """Both writes in one turn, in the order of the plans: the first gang is being bound while the last
        one still waits for its turn. Fewer turns than connections leave some for the bindings."""
        try:
            async with self._slots:
                if len(self._inventory.names) >= self._timing.nominate_from_nodes:
                    await self._nominate(pod)
                await self._lift(pod, seated=True)
        finally:
            self._opening.discard(pod.uid)

    async def _in_turn(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._slots:
            await write()

    async def _nominate(self, pod: Pod) -> None:
        booking = self._inventory.book.get(pod.uid)
        if booking is None or booking.phase >= Phase.HELD or not self._leadership.active:
            return
        booking.nominated = True
        self._nominations[pod.uid] = self._nominations.get(pod.uid, 0) + 1
        node = booking.node
        outcome = await self._admitter.nominate(ref(pod), node)
        now = self._inventory.book.get(pod.uid)
        if not outcome.ok and now is not None:
            now.nominated = False
            self._due[pod.uid] = self._clock() + self._timing.wake_seconds
        elif now is None or now.node != node:
            await self._settle(pod, now)

    async def _settle(self, pod: Pod, booking: Booking | None) -> None:
        """The seat moved or went while the nomination was under way."""
        current = self._inventory.pods.get(pod.uid)
        if current is None or current.node is not None:
            return
        await self._admitter.nominate(ref(pod), booking.node if booking is not None else None)

    async def _lift(self, pod: Pod, *, seated: bool) -> None:
        current = self._inventory.pods.get(pod.uid)
        if current is None or not current.gated or not self._leadership.active or pod.uid in self._lifting:
            return
        if seated and self._inventory.book.get(pod.uid) is None:
            return
        self._lifting.add(pod.uid)
        try:
            single = pod.single and pod.wants_devices
            outcome = await self._admitter.lift_gate(ref(pod), single=single)
        finally:
            self._lifting.discard(pod.uid)
        if seated and not outcome.ok and not outcome.gone:
            self.stuck.add(pod.uid)

    async def _clear(self, pod: Pod) -> None:
        self._clearing.add(pod.uid)
        try:
            async with self._slots:
                if self._inventory.book.get(pod.uid) is None and self._leadership.active:
                    await self._admitter.nominate(ref(pod), None)
        finally:
            self._clearing.discard(pod.uid)

    def _forget(self, uid: PodUid) -> None:
        for table in (self._due, self._refused, self._nominations, self._releases):
            table.pop(uid, None)


def ref(pod: Pod) -> PodRef:
    """The pod's address."""
    return PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
