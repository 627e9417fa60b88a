# SPDX-License-Identifier: Apache-2.0
"""Node objects by row, and for each template the rows that admit it (labels and taints; not resources).

Templates that differ in their requests alone share one answer: a backlog in which everybody asks for
another amount of memory is still of one kind here.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np
from cachetools import LRUCache

from app.domain.node import Node
from app.domain.placement import Taint, Template, Term, Toleration
from app.domain.resources import is_device
from app.inventory.columns import Mask
from app.matching.nodes import admits, selected, tolerated

_Choice: TypeAlias = tuple[tuple[tuple[str, str], ...], tuple[Term, ...] | None, tuple[Toleration, ...]]
"""What of a template says which nodes admit it."""

_Answer: TypeAlias = tuple[Template, Mask]
"""A template that makes this choice, and the rows that admit it."""


class NodeTable:
    """`by_row[r]` is the Node on row r, None while no such object exists; `count` is how many do.

    `capacity` sums the devices of all nodes, and `closed` holds the rows of those that take no pods.
    """

    def __init__(self, *, masks: int = 512) -> None:
        self.by_row: list[Node | None] = []
        self.count = 0
        self.capacity: Counter[str] = Counter()
        self.closed: set[int] = set()
        self._masks: LRUCache[_Choice, _Answer] = LRUCache(masks)

    def copy(self) -> NodeTable:
        """The same as of now."""
        copy = NodeTable(masks=int(self._masks.maxsize))
        copy.by_row, copy.count = self.by_row.copy(), self.count
        copy.capacity, copy.closed = self.capacity.copy(), self.closed.copy()
        for choice, (template, mask) in self._masks.items():
            copy._masks[choice] = template, mask.copy()
        return copy

    def get(self, row: int) -> Node | None:
        """The Node on a row."""
        return self.by_row[row] if row < len(self.by_row) else None

    def put(self, row: int, node: Node | None) -> None:
        """Set or remove the Node on a row; every cached mask follows in that one place."""
        while len(self.by_row) <= row:
            self.by_row.append(None)
        before, self.by_row[row] = self.by_row[row], node
        self._sum(row, before, node)
        if before is not None and node is not None and before.shape == node.shape:
            return
        for template, mask in list(self._masks.values()):
            if row < len(mask):
                mask[row] = node is not None and admits(template, node)

    def _sum(self, row: int, before: Node | None, after: Node | None) -> None:
        """What people are told of all nodes together follows one that came, changed or went."""
        self.count += (after is not None) - (before is not None)
        (self.closed.add if after is not None and after.closed else self.closed.discard)(row)
        if before is not None and after is not None and before.capacity == after.capacity:
            return
        for node, sign in ((before, -1), (after, 1)):
            for name, amount in (node.capacity if node is not None else {}).items():
                if is_device(name):
                    self.capacity[name] += sign * amount

    def admitting(self, template: Template, *, rows: int) -> Mask:
        """Rows whose node exists and admits the template, shape (rows,). Read-only for the caller."""
        choice = (template.selector, template.affinity, template.tolerations)
        known = self._masks.get(choice)
        if known is None or len(known[1]) < rows:
            known = self._masks[choice] = (template, self._build(template, rows))
        return known[1][:rows]

    def _build(self, template: Template, rows: int) -> Mask:
        mask = np.zeros(max(64, 2 * rows), np.bool_)
        verdict: dict[tuple[Taint, ...], bool] = {}
        free_choice = not template.selector and template.affinity is None
        for row, node in enumerate(self.by_row[:rows]):
            if node is None:
                continue
            fine = verdict.get(node.taints)
            if fine is None:
                fine = verdict[node.taints] = tolerated(template.tolerations, node.taints)
            mask[row] = fine and (free_choice or selected(template, node.name, node.labels))
        return mask
