# SPDX-License-Identifier: Apache-2.0
"""Which state of its life cycle a gang is in (drawn in `domain/gang.py`), and how many are in each.

Derived from the inventory; remembered only as long as it cannot have changed. Changes nothing.
"""

from __future__ import annotations

from collections import Counter

from app.domain.gang import GangState
from app.domain.ids import GangKey
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase


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


class Tally:
    """How many gangs are in each state. Exact whenever asked, yet without looking at every gang anew: as long
    as one has no seats, its state follows from its members and its PodGroup, whose changes it numbers."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._known: dict[GangKey, tuple[Gang, int, GangState]] = {}

    def count(self) -> Counter[GangState]:
        """As of now."""
        known, tally = self._known, Counter[GangState]()
        self._known = {}
        for gang in self._inventory.gangs:
            entry = known.get(gang.key)
            if self._inventory.book.count(gang.key):
                tally[state_of(gang, self._inventory)] += 1
                continue
            if entry is None or entry[0] is not gang or entry[1] != gang.version:
                entry = (gang, gang.version, state_of(gang, self._inventory))
            self._known[gang.key] = entry
            tally[entry[2]] += 1
        return tally
