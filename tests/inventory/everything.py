# SPDX-License-Identifier: Apache-2.0
"""An inventory as plain values: equal when nothing that is read of two can differ."""

from __future__ import annotations

import msgspec

from app.inventory.inventory import Inventory
from tests.builders import make_pod, pod_of

CHOOSY = pod_of(make_pod("choosy").in_zone("a")).template


def everything(inventory: Inventory) -> dict[str, object]:
    """All that can be read of an inventory."""
    columns, nodes, book = inventory.columns, inventory.nodes, inventory.book
    gangs = list(inventory.gangs)
    return {
        "cells": {(n, c): columns.cell(c, r) for n, r in columns.row_of.items() for c in columns.column_of},
        "growth": (list(columns.generation), columns.grown, columns.capacity),
        "nodes": (list(nodes.by_row), nodes.count, dict(nodes.capacity), set(nodes.closed)),
        "names": list(inventory.names),
        "pods": dict(inventory.pods),
        "gangs": {g.key: (g.version, *map(_value, vars(g.roll).values())) for g in gangs},
        "seats": [(*msgspec.structs.astuple(b), b in book.of(b.gang) if b.gang else None) for b in book],
        "seats by row": {row: [booking.uid for booking in book.on(row)] for row in book.rows()},
        "holders": {name: dict(held) for name, held in inventory.holders.items()},
        "bad starts": dict(inventory.bad_starts),
        "nominations": inventory.foreign_nominations(),
        "free": [inventory.view(priority=priority).free.tolist() for priority in (0, 1)],
        "admitting": inventory.admitting(CHOOSY).tolist(),
        "scheduler": inventory.scheduler,
    }


def _value(value: object) -> object:
    return dict(value) if isinstance(value, dict) else value
