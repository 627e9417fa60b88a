# SPDX-License-Identifier: Apache-2.0
"""Who waits, and why: what is remembered of each gang, and which gangs lack seats.

Shared by the rounds, which give seats, and the tenure, which takes them back. Decides nothing but when a
sentence about a blocker is old enough to be made anew.
"""

from __future__ import annotations

from collections.abc import Callable

from app.domain.ids import GangApi, GangKey
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import blocker, surplus
from app.extender.backlog import Backlog
from app.extender.claims import Claim, claim_of
from app.extender.standing import Standing
from app.extender.timing import Timing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking


class Roster:
    """`dirty` asks for a round. `lacking` holds the gangs that may lack seats; a round sorts out which do.
    `backlog` holds those of them that it can plan, in order."""

    def __init__(self, inventory: Inventory, *, clock: Callable[[], float]) -> None:
        self._inventory = inventory
        self._clock = clock
        self._standing: dict[GangKey, Standing] = {}
        self._unsorted: dict[GangKey, None] = {}
        self._paused: set[GangKey] = set()
        self._moves: dict[int, float] = {}
        self.backlog = Backlog()
        self.lacking: set[GangKey] = set()
        self.dirty = True
        self._grown = -1

    def round_due(self) -> bool:
        """Whether a round could come to another result than the last one; asking begins it."""
        due = self.dirty or self._inventory.columns.grown != self._grown
        self.dirty, self._grown = False, self._inventory.columns.grown
        return due

    def standing(self, key: GangKey) -> Standing:
        """What is remembered of a gang; a PodGroup that was created again starts afresh."""
        gang = self._inventory.gangs.get(key)
        group = gang.group.uid if gang is not None and gang.group is not None else ""
        standing = self._standing.get(key)
        if standing is None or (group and standing.group not in ("", group)):
            standing = self._standing[key] = Standing(progress_at=self._clock())
        standing.group = group or standing.group
        return standing

    def claim(self, gang: Gang) -> Claim:
        """What the gang asks for now."""
        standing = self.standing(gang.key)
        standing.claim = claim_of(gang, self._inventory, standing.claim)
        return standing.claim

    def lacks(self, key: GangKey) -> None:
        """The gang may lack a seat now: the next round looks at it."""
        self.dirty = True
        self.look_again(key)

    def look_again(self, key: GangKey) -> None:
        """The next round, whenever there is one, sorts out what the gang lacks. One that is gone and has left
        nothing is forgotten now: a replica that stands by has no rounds for months."""
        there = self._inventory.gangs.get(key) or self._inventory.book.count(key) or self.backlog.get(key)
        if not there:
            self.forget(key)
        else:
            self.lacking.add(key)
            self._unsorted[key] = None

    def unsorted(self) -> list[GangKey]:
        """Gangs to be sorted out, each once, in the order in which they changed; asking takes them."""
        keys, self._unsorted = list(self._unsorted), {}
        return keys

    def forget(self, key: GangKey) -> None:
        """The gang is gone."""
        self.lacking.discard(key)
        self._unsorted.pop(key, None)
        self._standing.pop(key, None)

    def failed(self, key: GangKey, timing: Timing) -> None:
        """A plan of the gang came to nothing: it pauses."""
        self.standing(key).failed(self._clock(), timing)
        self._paused.add(key)

    def retry(self) -> None:
        """Let gangs try again whose pause is over."""
        for key in list(self._paused):
            standing = self._standing.get(key)
            if standing is None or standing.retry_at <= self._clock():
                self._paused.discard(key)
                self.lacks(key)

    # -- asked by the verbs and the narrator

    def refusal(self, key: GangKey) -> Refusal:
        """Why a gang has no seats, as exactly as can be told now."""
        standing = self._standing.get(key)
        if standing is not None:
            self._consult_line(key, standing)
            if not standing.pauses(self._clock()) and standing.diagnosis_due(self._clock()):
                self._diagnose(key, standing)
        return self._told(key, standing)

    def remembered(self, key: GangKey) -> Refusal:
        """The same as it was last worked out: costs nothing, and may be a few turns of the narrator old."""
        standing = self._standing.get(key)
        if standing is not None and standing.source is None:  # it waits for another reason than before
            self._consult_line(key, standing)
        return self._told(key, standing)

    def _told(self, key: GangKey, standing: Standing | None) -> Refusal:
        if standing is None or standing.refusal is None:
            return Refusal(reason=Reason.PENDING, gang=key)
        if standing.pauses(self._clock()):
            return Refusal(reason=Reason.BACKOFF, gang=key, subject=standing.refusal.text)
        return standing.refusal

    def quiet_seconds(self, key: GangKey) -> float:
        """How long ago this process last saw the gang get on; it came to be known, at the least."""
        standing = self._standing.get(key)
        return self._clock() - standing.progress_at if standing is not None else 0.0

    def _consult_line(self, key: GangKey, standing: Standing) -> None:
        """A gang that waits was refused when the first of its line was."""
        place = self.backlog.get(key)
        if place is None or place.line.verdict is None or place.line.verdict is standing.source:
            return
        assert place.claim.demand is not None, "only a demand waits"
        standing.refused(place.line.verdict, place.claim.demand)

    def _diagnose(self, key: GangKey, standing: Standing) -> None:
        if standing.demand is None or standing.found is None:
            return
        gang = self._inventory.gangs.get(key)
        exact = blocker(self._inventory, standing.demand, standing.found)
        runs = gang is not None and gang.key.api is not GangApi.SINGLE and not gang.roll.missing
        standing.diagnosed(surplus(exact) if runs else exact, self._clock())

    def waiting(self) -> list[GangKey]:
        """Gangs that lack seats, in no particular order."""
        return [key for key in self.lacking if self.waits(key)]

    def waits(self, key: GangKey) -> bool:
        """Whether a gang lacks seats and has been given none."""
        return key in self.lacking and not self._inventory.book.count(key)

    def progressed(self, booking: Booking) -> None:
        """A member moved on: the plan of its gang does not lapse yet."""
        self._moves[booking.plan] = self._clock()
        if booking.gang is not None:
            standing = self.standing(booking.gang)
            standing.progress_at, standing.misses = self._clock(), 0

    def moves(self) -> list[tuple[int, float]]:
        """(plan, when it last moved on) of the plans that did since the last time, oldest plan first."""
        moves, self._moves = self._moves, {}
        return sorted(moves.items())

    def succeeded(self, key: GangKey) -> None:
        """The gang reached its minimum: earlier failures are forgotten."""
        standing = self.standing(key)
        standing.failures, standing.retry_at = 0, 0.0
