# SPDX-License-Identifier: Apache-2.0
"""Who has been passed over for too long: the gang for which nodes are kept until it runs.

A waiting gang is passed over when a gang behind it in the order gets seats. From then on its time runs;
after `seconds` it starves, and gangs behind it get no seats on the nodes chosen for it (`fence`). One fence
at a time, that of the first starving gang in order: nodes that drain for somebody compute nothing.
Remembers only what this process has seen; never takes a seat and gives none.

    waits ──── a later gang is seated ───▶ passed over ──── `seconds` later ───▶ starves
      ▲                                                                            │
      └────────── its nodes are rid of all others' devices, and it does not fit ───┘
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable

from app.extender.backlog import Backlog, Line, Place
from app.extender.claims import Rank, Signature
from app.extender.fence import Fence, fence_for
from app.inventory.inventory import Inventory


class Starvation:
    """Gangs go by their rank here: the order is all that counts. `seconds` 0 means that nobody starves."""

    def __init__(
        self, inventory: Inventory, backlog: Backlog, *, seconds: float, clock: Callable[[], float]
    ) -> None:
        self._inventory = inventory
        self._backlog = backlog
        self._seconds = seconds
        self._clock = clock
        self._fresh: list[Rank] = []
        self._passed: dict[Rank, float] = {}
        self._starving: list[Rank] = []
        self._hopeless: set[Signature] = set()
        self._capacity = -1
        self.fence: Fence | None = None
        """What is kept now, and for whom."""

    def fence_before(self, place: Place) -> Fence | None:
        """The fence that this gang is behind, if it is behind one. A gang that has begun to bind is behind
        none: what it holds comes free only when it has run, and the fence may be waiting for just that."""
        rank = place.claim.rank
        return self.fence if self.fence is not None and rank[0] and rank > self.fence.rank else None

    # -- what the rounds tell

    def forget(self) -> None:
        """A new life begins: what was seen in the last one is too old to act on."""
        self._fresh = sorted([*self._fresh, *self._passed, *self._starving])
        self._passed.clear()
        self._starving.clear()
        self.fence = None

    def begin(self) -> None:
        """A round begins: time has passed, and nodes may have changed."""
        until = self._clock() - self._seconds
        overdue = []
        for rank, since in self._passed.items():
            if since > until:
                break  # the rest was passed over later
            overdue.append(rank)
        for rank in overdue:
            del self._passed[rank]
            insort(self._starving, rank)
        self._choose()

    def waits(self, rank: Rank) -> None:
        """A gang waits from now on."""
        if self._seconds:
            insort(self._fresh, rank)

    def left(self, rank: Rank) -> None:
        """It does not wait any more, or in another place."""
        if self._passed.pop(rank, None) is None and not _strike(self._fresh, rank):
            _strike(self._starving, rank)
        if self.fence is not None and self.fence.rank == rank:
            self._choose()

    def seated(self, rank: Rank) -> None:
        """A gang was given seats: who waits before it has been passed over."""
        before = bisect_left(self._fresh, rank)
        self._passed.update(dict.fromkeys(self._fresh[:before], self._clock()))
        del self._fresh[:before]

    def refused(self, line: Line) -> None:
        """Gangs of this line found no seats. Where the nodes kept for one of them are rid of everybody else's
        devices, something is in its way that does not queue (a DaemonSet's CPUs): keeping them idle does not
        help. Its time begins anew."""
        place = self._backlog.get(self.fence.key) if self.fence is not None else None
        if self.fence is None or place is None or place.line is not line:
            return
        if self.fence.drained(place.claim, self._inventory):
            _strike(self._starving, self.fence.rank)
            insort(self._fresh, self.fence.rank)
            self._choose()

    # -- the fence

    def _choose(self) -> None:
        """The choice stands until its gang leaves or changes, a node of it cannot be used any more, or a gang
        before it starves."""
        last, self.fence = self.fence, None
        for rank in self._starving:
            place = self._backlog.get(rank[-1])
            if place is not None and self._eligible(place):
                self.fence = self._kept(last, place) or self._new(place)
            if self.fence is not None:
                return

    def _eligible(self, place: Place) -> bool:
        """Nodes are kept for gangs that do not run yet, not for members beyond a minimum."""
        gang = self._inventory.gangs.get(place.key)
        return gang is not None and gang.roll.missing > 0

    def _kept(self, last: Fence | None, place: Place) -> Fence | None:
        if last is None or last.rank != place.claim.rank or not last.holds(place.claim, self._inventory):
            return None
        return last

    def _new(self, place: Place) -> Fence | None:
        """None for what an empty cluster cannot hold; that is not asked again before the cluster grows."""
        if self._capacity != self._inventory.columns.capacity:
            self._capacity = self._inventory.columns.capacity
            self._hopeless.clear()
        if place.claim.signature in self._hopeless:
            return None
        fence = fence_for(place.claim, place.key, self._inventory)
        if fence is None and place.claim.rank[0]:  # what others hold already says nothing about the rest
            self._hopeless.add(place.claim.signature)
        return fence


def _strike(ranks: list[Rank], rank: Rank) -> bool:
    """Remove a rank from a sorted list; whether it was there."""
    spot = bisect_left(ranks, rank)
    found = spot < len(ranks) and ranks[spot] == rank
    if found:
        del ranks[spot]
    return found
