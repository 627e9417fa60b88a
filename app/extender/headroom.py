# SPDX-License-Identifier: Apache-2.0
"""How many devices there are, who may still have some, and how large a gang would fit.

Reads the columns; never looks at one node after the other, and decides nothing.
"""

from __future__ import annotations

import numpy as np

from app.domain.overview import SIZES, DeviceLine
from app.domain.resources import is_device
from app.inventory.columns import Mask
from app.inventory.inventory import Inventory


def devices(inventory: Inventory) -> list[DeviceLine]:
    """One line per device resource that some node has, by name."""
    names = {name for name in inventory.columns.column_of if is_device(name)}
    opened = np.ones(inventory.columns.rows, np.bool_)
    opened[list(inventory.nodes.closed)] = False
    lines = [_line(inventory, name, opened) for name in sorted(names | inventory.nodes.capacity.keys())]
    return [line for line in lines if line.nodes or line.capacity]


def _line(inventory: Inventory, name: str, opened: Mask) -> DeviceLine:
    """Free is what the planner would find for a gang of priority 0: nominations count as reserved."""
    rows = np.flatnonzero(inventory.columns.allocatable(name))
    column = inventory.columns.column_of.get(name)
    left = inventory.view().free[column, rows] if column is not None else rows
    allocatable, used = inventory.columns.allocatable(name)[rows], inventory.columns.used(name)[rows]
    spare = np.maximum(left, 0)
    free = np.where(opened[rows], spare, 0)
    return DeviceLine(
        name=name,
        nodes=len(rows),
        capacity=inventory.nodes.capacity[name],
        allocatable=int(allocatable.sum()),
        used=int(used.sum()),
        reserved=int((allocatable - used - left).sum()),
        free=int(free.sum()),
        closed=int(spare.sum() - free.sum()),
        largest_pod=int(free.max(initial=0)),
        whole_nodes=int((free == allocatable).sum()),
        fits={size: int((free // size).sum()) for size in SIZES},
    )
