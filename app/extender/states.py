# SPDX-License-Identifier: Apache-2.0
"""Which state of its life cycle a gang is in (drawn in `domain/gang.py`), and how many are in each.

Derived from the inventory; remembered only as long as it cannot have changed. Changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from app.domain.gang import GangState
from app.domain.ids import GangKey
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase

Turn: TypeAlias = tuple[int, int, GangKey]


def state_of(gang: Gang, inventory: Inventory) -> GangState:
    """The state as of now."""
    roll = gang.roll
    bookings = inventory.book.of(gang.key)
    if gang.defined and not roll.missing:
        return GangState.RUNNING
    furthest = max((booking.phase for booking in bookings), default=Phase.RESERVED)
    if furthest is Phase.POSTED:
        return GangState.BINDING
    if furthest is Phase.HELD:
        return GangState.GATHERING
    if roll.wounded:
        return GangState.WOUNDED
    if bookings:
        return GangState.PLANNED
    return GangState.WAITING if gang.defined and roll.quorum else GangState.FORMING


class Stated(NamedTuple):
    """A gang, what its state was at which of its versions, and its `turn`: lower ones are planned first."""

    gang: Gang
    version: int
    state: GangState
    turn: Turn


class Tally:
    """Which gangs are in which state. Exact whenever asked, yet without looking at every gang anew: as long
    as one has no seats, its state follows from its members and its PodGroup, whose changes it numbers."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: dict[GangKey, Stated] = {}

    def count(self) -> Counter[GangState]:
        """As of now."""
        return Counter(one.state for one in self.states())

    def states(self) -> list[Stated]:
        """Every gang as of now, in no particular order."""
        known, self._known = self._known, {}
        seated = set(self._inventory.book.gangs())
        for gang in self._inventory.gangs:
            one = known.get(gang.key)
            if one is None or one.gang is not gang or one.version != gang.version or gang.key in seated:
                one = self._look(gang)
            self._known[gang.key] = one
        states = list(self._known.values())
        for key in seated:
            self._known.pop(key, None)  # its seats move on without its members
        return states

    def _look(self, gang: Gang) -> Stated:
        roll = gang.roll
        turn = (-roll.priority, roll.created, gang.key)
        return Stated(gang, gang.version, state_of(gang, self._inventory), turn)
