# SPDX-License-Identifier: Apache-2.0
"""How many seats of one template each node has. The only place where requests meet free amounts."""

from __future__ import annotations

import numpy as np

from app.domain.placement import Template
from app.domain.resources import is_device
from app.inventory.columns import Matrix
from app.inventory.view import View


def seats_per_row(view: View, template: Template, free: Matrix, *, most: int) -> Matrix:
    """Seats of `template` on each row within `free`, shape (rows,), each at most `most`, never negative."""
    seats = np.where(view.admitting(template), most, 0).astype(np.int64)
    for name, amount in template.requests:
        column = view.column_of.get(name)
        if column is None or column >= len(free):
            return np.zeros(view.rows, np.int64)
        np.minimum(seats, free[column] // amount, out=seats)
    return np.maximum(seats, 0, out=seats)


def spare_devices(view: View, template: Template, free: Matrix) -> Matrix:
    """Free devices of the kinds that `template` asks for (of every kind if it asks for none), shape (rows,).

    The lower, the better a node is for packing: what is broken into already goes first, and a pod without
    devices stays off the nodes that have some to offer.
    """
    names = [name for name, _ in template.requests if is_device(name)]
    names = names or [name for name in view.column_of if is_device(name)]
    columns = [c for name in names if (c := view.column_of.get(name)) is not None and c < len(free)]
    if not columns:
        return np.zeros(view.rows, np.int64)
    spare: Matrix = np.maximum(free[columns], 0).sum(axis=0)
    return spare
