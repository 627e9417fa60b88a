# SPDX-License-Identifier: Apache-2.0
"""What the planner reads: a frozen picture of what is free. Never written after it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.domain.ids import NodeName
from app.domain.placement import Template
from app.inventory.columns import Mask, Matrix


class Admission(Protocol):
    """Answers which rows admit a template, resources aside."""

    def __call__(self, template: Template) -> Mask:
        """Shape (rows,)."""
        ...


class View:
    """`free` has shape (columns, rows); `names[r]` is the node of row r. Both are read-only."""

    def __init__(
        self, free: Matrix, *, names: Sequence[NodeName], column_of: Mapping[str, int], admitting: Admission
    ) -> None:
        free.setflags(write=False)
        self.free = free
        self.names = names
        self.column_of = column_of
        self.admitting = admitting

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.free.shape[1])
