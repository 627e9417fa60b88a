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
from app.extender.claims import Claim, claim_of
from app.extender.standing import Standing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory


class Roster:
    """`dirty` asks for a round. `lacking` holds the gangs that may lack seats; a round sorts out which do."""

    def __init__(self, inventory: Inventory, *, clock: Callable[[], float]) -> None:
        self._inventory = inventory
        self._clock = clock
        self._standing: dict[GangKey, Standing] = {}
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
        self.lacking.add(key)
        self.dirty = True

    def forget(self, key: GangKey) -> None:
        """The gang is gone."""
        self.lacking.discard(key)
        self._standing.pop(key, None)

    def retry(self) -> None:
        """Let gangs try again whose pause is over."""
        now = self._clock()
        for standing in self._standing.values():
            if standing.retry_at and standing.retry_at <= now:
                standing.retry_at, standing.basis = 0.0, ()
                self.dirty = True

    # -- asked by the verbs and the narrator

    def refusal(self, key: GangKey) -> Refusal:
        """Why a gang has no seats, as exactly as can be told now."""
        standing = self._standing.get(key)
        if standing is None or standing.refusal is None:
            return Refusal(reason=Reason.PENDING, gang=key)
        if standing.retry_at > self._clock() and standing.refusal.reason is not Reason.BACKOFF:
            return Refusal(reason=Reason.BACKOFF, gang=key, subject=standing.refusal.text)
        if standing.diagnosis_due(self._clock()):
            self._diagnose(key, standing)
        return standing.refusal

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

    def progressed(self, key: GangKey) -> None:
        """A member of the gang moved on: its plan does not lapse yet."""
        standing = self.standing(key)
        standing.progress_at, standing.misses = self._clock(), 0

    def succeeded(self, key: GangKey) -> None:
        """The gang reached its minimum: earlier failures are forgotten."""
        standing = self.standing(key)
        standing.failures, standing.retry_at = 0, 0.0
