# SPDX-License-Identifier: Apache-2.0
"""Seats that are set aside: one per pod UID, grouped by gang.

                 reserve                    filter answered             bind call arrives
    (nothing) ───────────▶ RESERVED ──────────────────▶ ANSWERED ──────────────────▶ HELD
        ▲                     │  ▲ outcome of a failed attempt │                       │ barrier opens
        │      release        │  └─────────────────────────────┘                       ▼
        └─────────────────────┴────────────────────────────────────────────────────  POSTED
                                                                                       │ watch shows the pod
                                                                                       ▼ on its node
                                                                                    (usage)

Assumptions: the amounts of a seat are those of the pod's template when it was reserved; a POSTED seat is
released only by the watch, by the pod's end, or by a write that is known to have failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from copy import copy
from enum import IntEnum

import msgspec

from app.domain.ids import GangKey, NodeName
from app.domain.ids import PodUid as Uid
from app.domain.placement import Template
from app.domain.plan import Seat


class Phase(IntEnum):
    """How far a seat is. A greater phase is further."""

    RESERVED = 0
    ANSWERED = 1
    HELD = 2
    POSTED = 3


VACANT = "vacant:"
"""Prefix of the UID under which a seat is kept for the replacement of a member that went."""


class Booking(msgspec.Struct):
    """A reserved seat. `gang` is None for an ordinary pod whose binding is under way.

    `plan` numbers the plan it belongs to. `nominated` is true once we have nominated the pod for it.
    """

    uid: Uid
    node: NodeName
    row: int
    template: Template
    plan: int
    gang: GangKey | None = None
    phase: Phase = Phase.RESERVED
    nominated: bool = False

    @property
    def vacant(self) -> bool:
        """Whether it waits for a replacement rather than for a pod that exists."""
        return self.uid.startswith(VACANT)

    @property
    def seat(self) -> Seat:
        """The seat as a value."""
        return Seat(uid=self.uid, node=self.node, template=self.template)


class Book:
    """All bookings. Only `Inventory` mutates it, together with the reserved column."""

    def __init__(self) -> None:
        self._by_uid: dict[Uid, Booking] = {}
        self._by_gang: dict[GangKey, dict[Uid, Booking]] = {}
        self._by_row: dict[int, set[Uid]] = {}

    def copy(self) -> Book:
        """The same as of now; bookings change, so they are copied too."""
        book = Book()
        for booking in self:
            book.add(copy(booking))
        return book

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Booking]:
        return iter(self._by_uid.values())

    def get(self, uid: Uid) -> Booking | None:
        """The booking of a pod."""
        return self._by_uid.get(uid)

    def of(self, gang: GangKey) -> list[Booking]:
        """The bookings of a gang, in the order they were made."""
        return list(self._by_gang.get(gang, {}).values())

    def uids(self, gang: GangKey) -> AbstractSet[Uid]:
        """The pods that the bookings of a gang are for. Only until the next change."""
        return self._by_gang.get(gang, {}).keys()

    def count(self, gang: GangKey) -> int:
        """How many bookings a gang has."""
        return len(self._by_gang.get(gang, ()))

    def gangs(self) -> list[GangKey]:
        """Gangs that have at least one booking, in the order in which they were given the first."""
        return list(self._by_gang)

    def rows(self) -> list[int]:
        """Rows on which something is reserved."""
        return list(self._by_row)

    def on(self, row: int) -> list[Booking]:
        """The bookings on one row, latest plan first."""
        found = [self._by_uid[uid] for uid in self._by_row.get(row, ())]
        return sorted(found, key=lambda booking: (-booking.plan, booking.uid))

    def add(self, booking: Booking) -> None:
        """Enter a booking; the pod must not have one."""
        self._by_uid[booking.uid] = booking
        self._by_row.setdefault(booking.row, set()).add(booking.uid)
        if booking.gang is not None:
            self._by_gang.setdefault(booking.gang, {})[booking.uid] = booking

    def remove(self, uid: Uid) -> Booking | None:
        """Strike a booking out."""
        booking = self._by_uid.pop(uid, None)
        if booking is None:
            return None
        here = self._by_row[booking.row]
        here.discard(uid)
        if not here:
            del self._by_row[booking.row]
        if booking.gang is not None:
            gang = self._by_gang[booking.gang]
            del gang[uid]
            if not gang:
                del self._by_gang[booking.gang]
        return booking
