# SPDX-License-Identifier: Apache-2.0
"""Nodes that are kept for one starving gang: which they are, and what gangs behind it see instead.

Chosen on a picture in which all that others run is gone: the nodes that carry the gang and of which least
must come free. Pure: the same cluster gives the same choice. Decides neither who starves nor when.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from app.domain.ids import GangKey, NodeName
from app.domain.placement import Template
from app.domain.plan import Demand, Plan
from app.domain.resources import is_device
from app.extender.claims import Claim, Rank, Signature
from app.inventory.columns import Rows
from app.inventory.inventory import Inventory
from app.inventory.view import View
from app.planner.plan import plan


class Fence(msgspec.Struct, eq=False):
    """`rows` are kept for gang `key`, while it asks for what `signature` says, from all behind `rank`."""

    key: GangKey
    rank: Rank
    signature: Signature
    rows: Rows
    _outside: tuple[View, View] | None = None

    def outside(self, view: View, inventory: Inventory) -> View:
        """What a gang behind the fence sees of a view."""
        if self._outside is None or self._outside[0] is not view:
            free = view.free.copy()
            free[:, self.rows] = np.minimum(free[:, self.rows], 0)
            self._outside = (view, inventory.as_view(free))
        return self._outside[1]

    def holds(self, claim: Claim, inventory: Inventory) -> bool:
        """Whether the gang still asks for the same, and could still run on these nodes alone."""
        if claim.signature != self.signature or claim.demand is None:
            return False
        return isinstance(_plan_on(self.rows, claim.demand, inventory), Plan)

    def drained(self, claim: Claim, inventory: Inventory) -> bool:
        """Whether nobody else holds a device on these nodes that the gang asks for."""
        columns = inventory.columns
        devices = set(filter(is_device, claim.names))
        held = sum(int((columns.used(name) + columns.reserved(name))[self.rows].sum()) for name in devices)
        kept = set(self.rows.tolist())
        for row, template in _own(self.key, inventory):
            held -= sum(amount for name, amount in template.requests if name in devices and row in kept)
        return bool(devices) and held <= 0


def fence_for(claim: Claim, key: GangKey, inventory: Inventory) -> Fence | None:
    """The fewest nodes that carry the gang once they are empty, of those with least on them; None if there
    are not enough. What is on a node is the share that is held of what the gang is shortest of there."""
    assert claim.demand is not None, "only a demand starves"
    order = _emptiest_first(claim, inventory)
    found = _plan_on(order, claim.demand, inventory)
    if not isinstance(found, Plan):
        return None
    least, most = 1, len(order)
    while least < most:
        middle = (least + most) // 2
        verdict = _plan_on(order[:middle], claim.demand, inventory)
        if isinstance(verdict, Plan):
            found, most = verdict, middle
        else:
            least = middle + 1
    rows = sorted({inventory.columns.row_of[seat.node] for seat in found.seats})
    return Fence(key=key, rank=claim.rank, signature=claim.signature, rows=np.array(rows, np.intp))


def _emptiest_first(claim: Claim, inventory: Inventory) -> Rows:
    """Rows by the share that is held of what the gang asks for, lowest first; ties by row."""
    columns = inventory.columns
    held = np.zeros(columns.rows)
    for name in claim.names:
        taken = columns.used(name) + columns.reserved(name)
        np.maximum(held, taken / np.maximum(columns.allocatable(name), 1), out=held)
    return np.argsort(held, kind="stable")


def _plan_on(rows: Rows, demand: Demand, inventory: Inventory) -> object:
    """Seats on these rows alone, if nothing ran there but what the gang itself has: that waits with it."""
    empty = inventory.view_when_empty()
    free = np.zeros_like(empty.free)
    free[:, rows] = empty.free[:, rows]
    for row, template in _own(demand.gang, inventory):
        inventory.columns.shift(free, row, template.requests, sign=-1)
    return plan(inventory.as_view(free), demand)


def _own(key: GangKey, inventory: Inventory) -> Iterator[tuple[int, Template]]:
    """Row and template of each member that is bound or has a seat."""
    gang = inventory.gangs.get(key)
    for pod in gang.roll.bound if gang is not None else ():
        yield inventory.columns.row_of[NodeName(pod.node or "")], pod.template
    for booking in inventory.book.of(key):
        yield booking.row, booking.template
