# SPDX-License-Identifier: Apache-2.0
"""Which state of its life cycle a gang is in (drawn in `domain/gang.py`). Derived, never stored."""

from __future__ import annotations

from app.domain.gang import GangState
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase


def state_of(gang: Gang, inventory: Inventory) -> GangState:
    """The state as of now."""
    roll = gang.roll
    bookings = inventory.book.of(gang.key)
    if gang.defined and not roll.missing:
        return GangState.RUNNING
    if any(booking.phase is Phase.POSTED for booking in bookings):
        return GangState.BINDING
    if any(booking.phase is Phase.HELD for booking in bookings):
        return GangState.GATHERING
    if roll.wounded:
        return GangState.WOUNDED
    if bookings:
        return GangState.PLANNED
    return GangState.WAITING if gang.defined and roll.quorum else GangState.FORMING
