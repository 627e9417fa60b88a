# SPDX-License-Identifier: Apache-2.0
"""The bind verb: nothing of a gang is bound before its minimum stands at the barrier, or is bound already.

Right before the POSTs every member is looked at again (alive, unbound, its node not overdrawn, this
process still active). Once posted, a seat stays reserved until the watch shows the pod on its node; where
a POST failed it stays reserved for the same pod, so that half a gang can be completed, and is in doubt
(POSTED still) until the pod is tried again or some seconds are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import numpy as np

from app.codec.extender import BindArgs
from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.plan import Outcome, PodRef, Seat
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import mixed_apis
from app.extender.admission import Admission, ref
from app.extender.barrier import Barrier, Held
from app.extender.ports import Binder, Leadership
from app.extender.roster import Roster
from app.extender.tenure import Tenure
from app.extender.timing import Timing
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase

HungUp = Callable[[], Coroutine[Any, Any, object]]
"""Starts a wait that ends when the caller drops the connection."""

MOST_HOLD_SECONDS = 570.0
"""Below the httpTimeout of the bind stanza (10 min): we must be the first to end a hold."""

DOUBT_SECONDS = 5.0
"""How long a place is kept, whatever happens, after a binding that failed: if only its answer was lost, the
watch shows the pod on its node by then."""

AT_ONCE = 16
"""POSTs begun in one turn of the event loop: beginning hundreds would hold up everybody else for a tenth of a
second, and most of them would only wait for a connection."""

NOT_ACTIVE = "this Muster is not active: another replica holds the scheduler's Lease"
STOPPING = "Muster is shutting down; kube-scheduler will try again"


class Bind:
    """Answers bind calls."""

    def __init__(
        self,
        inventory: Inventory,
        roster: Roster,
        admission: Admission,
        tenure: Tenure,
        binder: Binder,
        *,
        leadership: Leadership,
        timing: Timing,
        clock: Callable[[], float],
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._admission = admission
        self._tenure = tenure
        self._binder = binder
        self._leadership = leadership
        self._timing = timing
        self._clock = clock
        self._posting: set[asyncio.Task[None]] = set()
        self._last_move: dict[GangKey, float] = {}
        self._doubtful: dict[PodUid, float] = {}
        self.barrier = Barrier()
        self.stopping = False
        tenure.dropped = self._dropped

    # -- one call

    async def __call__(self, args: BindArgs, *, hung_up: HungUp | None = None) -> str:
        """The error text for ExtenderBindingResult; empty on success."""
        pod = self._inventory.pods.get(PodUid(args.uid))
        node = NodeName(args.node)
        error = self._unusable(pod, args)
        if error is not None:
            return error
        assert pod is not None
        booking = self._seat_of(pod.uid)
        if booking is None:
            return self._no_seat(pod) if pod.grouped else await self._ordinary(pod, node)
        if booking.node != node:
            return f"pod {pod.key} has its seat on {booking.node}, not on {node}"
        if booking.phase is Phase.POSTED:
            return f"pod {pod.key} is being bound by an earlier call"
        if booking.gang is None:
            return await self._ordinary(pod, node)
        return await self._wait(pod, booking, booking.gang, hung_up)

    def _seat_of(self, uid: PodUid) -> Booking | None:
        """A member that kube-scheduler tries again was not bound: its seat is in doubt no more."""
        booking = self._inventory.book.get(uid)
        if booking is not None and booking.gang is not None and uid in self._doubtful:
            self._end_doubt(uid)
        return self._inventory.book.get(uid)

    def _unusable(self, pod: Pod | None, args: BindArgs) -> str | None:
        """An answer that needs no seat: an error, or empty when the pod is on that node already."""
        key = f"{args.namespace}/{args.name}"
        if self.stopping:
            return STOPPING
        if pod is None or (pod.namespace, pod.name) != (args.namespace, args.name):
            return (
                f"pod {key} with UID {args.uid} is not known: deleted, or created again under the same name"
            )
        if pod.node is not None:
            return "" if pod.node == args.node else f"pod {key} is bound to {pod.node} already"
        if not pod.alive:
            return f"pod {key} is finished or being deleted"
        if (mixed := mixed_apis(pod)) is not None:
            return mixed.text
        if not self._leadership.active:
            return NOT_ACTIVE
        row = self._inventory.columns.row_of.get(NodeName(args.node))
        if row is None or self._inventory.nodes.get(row) is None:
            return f"node {args.node} is not known"
        return None

    def _no_seat(self, pod: Pod) -> str:
        assert pod.gang is not None
        refusal = self._roster.refusal(pod.gang)
        return f"pod {pod.key} has no seat: {refusal.text}"

    async def _ordinary(self, pod: Pod, node: NodeName) -> str:
        """A pod of no gang: bound if the node still has room beside what is reserved."""
        here = np.array([self._inventory.columns.row_of[node]])
        if not self._inventory.fits(pod.template, self._inventory.free_for(pod, here)).all():
            return f"node {node} has no room left for pod {pod.key} beside what is reserved"
        booking = self._inventory.hold(Seat(uid=pod.uid, node=node, template=pod.template))
        booking.phase = Phase.POSTED
        outcome = await self._send(ref(pod), node)
        if not outcome.ok and self._inventory.book.get(pod.uid) is booking:
            # A binding whose answer was lost may still land: the place is kept a moment longer.
            self._doubtful[pod.uid] = self._clock() + (0.0 if outcome.gone else DOUBT_SECONDS)
            booking.phase = Phase.RESERVED
        return outcome.error

    async def _send(self, pod: PodRef, node: NodeName) -> Outcome:
        """The binder is not supposed to raise; if it does, the call must still be answered."""
        try:
            return await self._binder.bind(pod, node)
        except Exception as fault:
            return Outcome(error=f"binding failed, which is a fault of Muster: {fault!r}")

    # -- the barrier

    async def _wait(self, pod: Pod, booking: Booking, gang: GangKey, hung_up: HungUp | None) -> str:
        booking.phase = Phase.HELD
        held = self.barrier.enter(pod.uid, gang, now=self._clock())
        self._last_move[gang] = held.arrived
        self._roster.progressed(booking)
        self._open(gang)
        if hung_up is None:
            return await held.answer
        leaving = asyncio.ensure_future(hung_up())
        try:
            either: set[asyncio.Future[Any]] = {held.answer, leaving}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if held.answer.done():
                return held.answer.result()
            self._left(held)
            return "the caller hung up"
        finally:
            leaving.cancel()

    def _left(self, held: Held) -> None:
        self.barrier.leave(held)
        self._back_to_reserved(held.uid)

    def _back_to_reserved(self, uid: PodUid) -> None:
        """Nobody waits for this seat at the barrier any more."""
        booking = self._inventory.book.get(uid)
        if booking is not None and booking.phase is Phase.HELD:
            booking.phase = Phase.RESERVED

    def review(self, gang: GangKey) -> None:
        """Turn away who cannot be bound any more; open the barrier of a gang if its minimum is there."""
        self._turn_away(gang, self._lost)
        self._open(gang)

    def _open(self, gang: GangKey) -> None:
        """Called for every member that arrives: looks at the others only once the minimum is there."""
        if not self._complete(gang):
            return
        self._turn_away(gang, lambda held: self._lost(held) or self._crowded_out(held))
        if not self._complete(gang):
            return
        posts: list[tuple[Held, Booking]] = []
        for held in self.barrier.of(gang):
            booking = self._inventory.book.get(held.uid)
            assert booking is not None, "a held call has a seat, or is turned away"
            booking.phase = Phase.POSTED
            self.barrier.leave(held)
            posts.append((held, booking))
        self._run(self._begin(posts))
        self._last_move.pop(gang, None)
        self._roster.succeeded(gang)

    def _complete(self, key: GangKey) -> bool:
        held = self.barrier.count(key)
        gang = self._inventory.gangs.get(key)
        if not held or gang is None:
            return bool(held)  # a gang of one whose gate is gone is no gang any more
        if not gang.defined:
            return False
        posted = [booking.uid for booking in self._inventory.book.of(key) if booking.phase is Phase.POSTED]
        certain = sum(uid not in self._doubtful for uid in posted)
        return gang.roll.settled + certain + held >= gang.roll.minimum

    def _turn_away(self, gang: GangKey, why: Callable[[Held], str]) -> None:
        for held in self.barrier.of(gang):
            error = why(held)
            if error:
                self.barrier.turn_away(held.uid, gang, error)
                self._back_to_reserved(held.uid)

    def _lost(self, held: Held) -> str:
        """Why a held call must not be posted; empty when it may."""
        pod, booking = self._inventory.pods.get(held.uid), self._inventory.book.get(held.uid)
        if pod is None or not pod.alive:
            return "the pod was deleted while it was held"
        if booking is None:
            return "" if pod.node is not None else "the seat was given back"
        return "" if self._leadership.active else NOT_ACTIVE

    def _crowded_out(self, held: Held) -> str:
        """A last look at the node; the tenure has given the seat back before, if all is well."""
        booking = self._inventory.book.get(held.uid)
        if booking is not None and self._inventory.columns.overdrawn(booking.row):
            return f"node {booking.node} was filled by others"
        return ""

    async def _begin(self, posts: list[tuple[Held, Booking]]) -> None:
        """All of them, a few in each turn of the loop."""
        for number, (held, booking) in enumerate(posts):
            if number and number % AT_ONCE == 0:
                await asyncio.sleep(0)
            self._run(self._post(held, booking))

    async def _post(self, held: Held, booking: Booking) -> None:
        lost = self._lost(held)  # between two turns
        outcome = Outcome(error=lost)
        if not lost:
            outcome = await self._send(ref(self._inventory.pods[held.uid]), booking.node)
        current = self._inventory.book.get(held.uid)
        if not outcome.ok and current is booking:
            if outcome.gone:
                self._inventory.release(held.uid)
            else:
                self._doubtful[held.uid] = self._clock() + DOUBT_SECONDS
                self._roster.progressed(booking)
        if not held.answer.done():
            held.answer.set_result(outcome.error)

    def _run(self, posting: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(posting)
        self._posting.add(task)
        task.add_done_callback(self._posting.discard)

    # -- what ends a hold

    def _dropped(self, uids: list[PodUid], refusal: Refusal) -> None:
        """Seats were given back: their calls are answered at once."""
        if refusal.gang is None:
            return
        for uid in uids:
            self.barrier.turn_away(uid, refusal.gang, refusal.text)

    def tick(self) -> None:
        """End holds that nobody joins any more, or that reached the gang's own deadline."""
        now = self._clock()
        for uid in [uid for uid, until in self._doubtful.items() if until <= now]:
            self._end_doubt(uid)
        for key in self._last_move.keys() - set(self.barrier.gangs()):
            del self._last_move[key]
        for key in self.barrier.gangs():
            self.review(key)
            waiting = self.barrier.of(key)
            if waiting and self._over(key, waiting, now):
                gang = self._inventory.gangs.get(key)
                have = len(waiting) + (gang.roll.settled if gang else 0)
                need = gang.roll.minimum if gang else 1
                lapsed = Refusal(reason=Reason.LAPSED, gang=key, have=have, need=need)
                self._tenure.give_up(key, lapsed, penalty=True)

    def _over(self, key: GangKey, waiting: list[Held], now: float) -> bool:
        gang = self._inventory.gangs.get(key)
        own = gang.group.timeout_seconds if gang is not None and gang.group is not None else None
        limit = min(float(own), MOST_HOLD_SECONDS) if own else self._timing.gang_seconds
        if now - min(held.arrived for held in waiting) > limit:
            return True
        if any(self._on_its_way(booking) for booking in self._inventory.book.of(key)):
            self._last_move[key] = now
        return now - self._last_move.get(key, now) > self._timing.hold_seconds

    def _on_its_way(self, booking: Booking) -> bool:
        """Answered with its seat, or further back in a queue that kube-scheduler is working through."""
        in_queue = booking.phase is Phase.RESERVED and self._admission.coming(booking.uid)
        return in_queue or booking.phase is Phase.ANSWERED

    def _end_doubt(self, uid: PodUid) -> None:
        """It is not on its node: the place of an ordinary pod goes back, a seat is like any other."""
        del self._doubtful[uid]
        booking = self._inventory.book.get(uid)
        if booking is None:
            return
        if booking.gang is None and booking.phase is not Phase.POSTED:
            self._inventory.release(uid)
        elif booking.gang is not None and booking.phase is Phase.POSTED:
            self._tenure.unbound(booking)

    async def stop(self, *, seconds: float) -> None:
        """Answer every held call with an error, and give bindings under way this long to finish."""
        self.stopping = True
        for key in self.barrier.gangs():
            for held in self.barrier.of(key):
                self.barrier.turn_away(held.uid, key, STOPPING)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._posting:  # some begin when their turn comes
                    await asyncio.wait(set(self._posting))
