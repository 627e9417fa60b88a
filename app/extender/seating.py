# SPDX-License-Identifier: Apache-2.0
"""Re-seats a member inside what kube-scheduler offers, when its planned node was not among it.

kube-scheduler knows constraints that the planner does not model. Cheapest way first: swap with a member
of the same shape, move alone, or plan the gang's free seats anew around this member. All keep the plan
whole: nobody loses a seat for it.
"""

from __future__ import annotations

import numpy as np

from app.domain.ids import NodeName
from app.domain.plan import Demand, Member, Plan, Seat
from app.domain.pod import Pod
from app.inventory.columns import Rows
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking, Phase
from app.planner.capacity import spare_devices
from app.planner.plan import plan

MOST_TRIES = 8
"""Offered nodes around which the rest of the gang is planned anew before giving up."""


def reseat(inventory: Inventory, pod: Pod, booking: Booking, offered: Rows) -> Booking | None:
    """The member's seat on an offered node, or None if there is no way; then nothing has changed.

    `offered` are rows, -1 for a node that is not known; the planned node is not among them.
    """
    rows = offered[offered >= 0]
    rows = rows[inventory.admitting(pod.template)[rows]]
    return (
        _swap(inventory, booking, rows)
        or _move(inventory, pod, booking, rows)
        or _replan(inventory, pod, booking, rows)
    )


def _movable(booking: Booking) -> bool:
    return booking.phase is Phase.RESERVED and not booking.nominated


def _swap(inventory: Inventory, booking: Booking, rows: Rows) -> Booking | None:
    if booking.gang is None:
        return None
    offered = np.zeros(inventory.columns.rows, np.bool_)
    offered[rows] = True
    for other in inventory.book.of(booking.gang):
        if offered[other.row] and other.template == booking.template and _movable(other):
            here, there = booking.node, other.node
            inventory.move(other.uid, here)
            return inventory.move(booking.uid, there)
    return None


def _move(inventory: Inventory, pod: Pod, booking: Booking, rows: Rows) -> Booking | None:
    free = inventory.free_for(pod, rows)
    fitting = np.flatnonzero(inventory.fits(booking.template, free))
    if not len(fitting):
        return None
    spare = spare_devices(inventory.as_view(free), booking.template, free)
    best = fitting[np.lexsort((rows[fitting], spare[fitting]))[0]]
    return inventory.move(booking.uid, inventory.names[rows[best]])


def _replan(inventory: Inventory, pod: Pod, booking: Booking, rows: Rows) -> Booking | None:
    if booking.gang is None:
        return None
    others = [b for b in inventory.book.of(booking.gang) if _movable(b) and b.uid != booking.uid]
    if not others:
        return None
    free = inventory.view(priority=pod.priority, gang=booking.gang).free.copy()
    for seat in [booking, *others]:
        inventory.columns.shift(free, seat.row, seat.template.requests, sign=1)
    fine = rows[inventory.fits(booking.template, free, rows)]
    members = tuple(Member(uid=b.uid, template=b.template) for b in others)
    demand = Demand(gang=booking.gang, members=members, need=len(members), priority=pod.priority)
    for row in fine[:MOST_TRIES].tolist():
        around = free.copy()
        inventory.columns.shift(around, row, booking.template.requests, sign=-1)
        verdict = plan(inventory.as_view(around), demand)
        if isinstance(verdict, Plan):
            return _commit(inventory, booking, inventory.names[row], verdict.seats)
    return None


def _commit(inventory: Inventory, booking: Booking, node: NodeName, seats: tuple[Seat, ...]) -> Booking:
    for seat in seats:
        inventory.move(seat.uid, seat.node)
    return inventory.move(booking.uid, node)
