# SPDX-License-Identifier: Apache-2.0
"""From offered names to rows of the inventory. What filter leaves is what prioritize is asked about next: it
is known again by its bytes, and not looked up a second time. Rows never change, so neither does that."""

from __future__ import annotations

from itertools import compress

import numpy as np

from app.codec.names import NameIndex, thinned
from app.codec.offer import Offer
from app.inventory.columns import Mask, Rows
from app.inventory.inventory import Inventory


class Offers:
    """The last offer that somebody looked up, and what was left of it."""

    def __init__(self, inventory: Inventory) -> None:
        self._columns = inventory.columns
        self._names = inventory.names
        self._index = NameIndex(inventory.names)
        self._raw = b""
        self._rows: Rows = np.empty(0, np.intp)

    def rows(self, offer: Offer) -> Rows:
        """Row of each name, -1 where unknown; a name that is offered twice is left with one."""
        if offer.raw == self._raw:
            return self._rows
        rows = self._found(offer)
        if _repeats(rows):
            offer.once()
            rows = self._columns.rows_of(offer.names)
        self._keep(offer, rows)
        return rows

    def part(self, offer: Offer, rows: Rows, kept: Mask) -> tuple[Offer, list[str]]:
        """What is left of an offer of these rows, and the names of the others."""
        if offer.unread:  # then all of them are known
            left = Offer.of(thinned(offer.unread, kept))
            others: list[str] = list(map(self._names.__getitem__, rows[~kept].tolist()))
        else:
            left = Offer(list(compress(offer.names, kept.tolist())))
            others = list(compress(offer.names, (~kept).tolist()))
        self._keep(left, rows[kept])
        return left, others

    def _found(self, offer: Offer) -> Rows:
        if offer.unread:
            rows = self._index.rows(offer.unread)
            if rows is not None and (rows >= 0).all():
                return rows
        return self._columns.rows_of(offer.names)

    def _keep(self, offer: Offer, rows: Rows) -> None:
        if (rows >= 0).all():  # an unknown node may be known when it is offered again
            self._raw, self._rows = offer.raw, rows


def _repeats(rows: Rows) -> bool:
    """Whether a name may be there twice."""
    known = rows[rows >= 0]
    return len(rows) - len(known) > 1 or bool(len(known) and np.bincount(known).max() > 1)
