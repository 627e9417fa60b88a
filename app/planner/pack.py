# SPDX-License-Identifier: Apache-2.0
"""Where interchangeable members go: on the fewest nodes, and among those the ones with least to spare.

Exact for one template: if `wanted` seats exist they are found. The last node is the tightest that takes
the rest, so a small gang never opens an empty 8-GPU node while a broken one has room.
"""

from __future__ import annotations

import numpy as np

from app.inventory.columns import Matrix


def pack(seats: Matrix, spare: Matrix, *, wanted: int) -> list[tuple[int, int]]:
    """(row, count) pairs that sum to min(wanted, seats.sum()).

    `seats` and `spare` have shape (rows,). Ties go to the lower row, so equal input gives equal output.
    """
    candidates = np.flatnonzero(seats)
    here = seats[candidates]
    order = candidates[np.lexsort((candidates, spare[candidates], -here))]
    totals = np.cumsum(seats[order])
    if not len(totals):
        return []
    wanted = min(wanted, int(totals[-1]))
    full = int(np.searchsorted(totals, wanted, side="left"))
    taken = [(int(row), int(seats[row])) for row in order[:full]]
    rest = wanted - (int(totals[full - 1]) if full else 0)
    if rest:
        taken.append((_tightest(order[full:], seats, spare, rest), rest))
    return taken


def _tightest(rows: Matrix, seats: Matrix, spare: Matrix, rest: int) -> int:
    """The row among `rows` that takes `rest` seats and has least left over."""
    able = rows[seats[rows] >= rest]
    best = np.lexsort((able, spare[able], seats[able]))[0]
    return int(able[best])
