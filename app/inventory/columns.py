# SPDX-License-Identifier: Apache-2.0
"""The numbers: one row per node name, one column per resource name, three amounts in each cell.

`free = allocatable - used - reserved` and may be negative. A row belongs to the *name*: it outlives the
Node object, so that usage is right when a node goes and comes back, or when pods are seen before their
node. Each column has a generation that grows whenever something in it may have become free; a refusal
stays true until a generation it depends on has grown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.domain.ids import NodeName

Matrix: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]

_FIRST_ROWS: Final = 64
_FIRST_COLUMNS: Final = 8


class Columns:
    """Growable int64 matrices of shape (columns, rows). Only `Inventory` calls the mutating methods."""

    def __init__(self) -> None:
        self.row_of: dict[NodeName, int] = {}
        self.column_of: dict[str, int] = {}
        self.generation: list[int] = []
        self.grown = 0
        """Grows with any generation: as long as it is the same, no refusal has become wrong."""
        self.capacity = 0
        """Grows when an empty cluster might hold more than before."""
        shape = (_FIRST_COLUMNS, _FIRST_ROWS)
        self._allocatable: Matrix = np.zeros(shape, np.int64)
        self._used: Matrix = np.zeros(shape, np.int64)
        self._reserved: Matrix = np.zeros(shape, np.int64)

    def copy(self) -> Columns:
        """The same as of now."""
        copy = Columns()
        copy.row_of, copy.column_of = self.row_of.copy(), self.column_of.copy()
        copy.generation, copy.grown, copy.capacity = self.generation.copy(), self.grown, self.capacity
        copy._allocatable, copy._used = self._allocatable.copy(), self._used.copy()
        copy._reserved = self._reserved.copy()
        return copy

    # -- reading

    @property
    def rows(self) -> int:
        """Rows in use; valid row numbers are below it."""
        return len(self.row_of)

    def rows_of(self, names: Sequence[str]) -> Rows:
        """Row of each name, -1 where unknown; shape (len(names),)."""
        return np.array(list(map(self.row_of.get, names, repeat(-1))), np.intp)  # type: ignore[arg-type]

    def free(self, rows: Rows | None = None) -> Matrix:
        """A fresh matrix (columns, rows) of what is free after reservations, or of some rows alone."""
        window = (slice(len(self.column_of)), slice(self.rows) if rows is None else rows)
        free: Matrix = self._allocatable[window] - self._used[window]
        free -= self._reserved[window]
        return free

    def shift(self, free: Matrix, row: int, requests: Iterable[tuple[str, int]], *, sign: int) -> None:
        """Add `sign` times the requests to one row of a matrix of free amounts: a what-if.

        A resource that the matrix has no column for is left out.
        """
        for name, amount in requests:
            column = self.column_of.get(name)
            if column is not None and column < len(free):
                free[column, row] += sign * amount

    def cell(self, name: str, row: int) -> tuple[int, int, int]:
        """(allocatable, used, reserved) of one resource on one row."""
        column = self.column_of.get(name)
        if column is None:
            return 0, 0, 0
        return (
            int(self._allocatable[column, row]),
            int(self._used[column, row]),
            int(self._reserved[column, row]),
        )

    def allocatable(self, name: str) -> Matrix:
        """One column of allocatable amounts, shape (rows,); zeros for an unknown name."""
        return self._one(self._allocatable, name)

    def used(self, name: str) -> Matrix:
        """One column of used amounts, shape (rows,)."""
        return self._one(self._used, name)

    def reserved(self, name: str) -> Matrix:
        """One column of reserved amounts, shape (rows,)."""
        return self._one(self._reserved, name)

    def overdrawn(self, row: int) -> bool:
        """Whether something is reserved on this row that is not free any more."""
        window = slice(len(self.column_of))
        reserved = self._reserved[window, row]
        free = self._allocatable[window, row] - self._used[window, row] - reserved
        return bool(((free < 0) & (reserved > 0)).any())

    def generations(self, names: Iterable[str]) -> tuple[int, ...]:
        """The generations of these columns; an unknown name reads 0 until it appears."""
        return tuple(
            self.generation[column] if (column := self.column_of.get(name)) is not None else 0
            for name in names
        )

    def _one(self, matrix: Matrix, name: str) -> Matrix:
        column = self.column_of.get(name)
        if column is None:
            return np.zeros(self.rows, np.int64)
        return matrix[column, : self.rows]

    # -- writing

    def row(self, node: NodeName) -> int:
        """The row of a node name, made on first use."""
        row = self.row_of.get(node)
        if row is None:
            row = self.row_of[node] = len(self.row_of)
            if row >= self._used.shape[1]:
                self._grow(columns=0, rows=self._used.shape[1])
        return row

    def column(self, name: str) -> int:
        """The column of a resource name, made on first use."""
        column = self.column_of.get(name)
        if column is None:
            column = self.column_of[name] = len(self.column_of)
            self.generation.append(1)
            if column >= self._used.shape[0]:
                self._grow(columns=self._used.shape[0], rows=0)
        return column

    def set_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace a row's allocatable; resources that are not named become 0."""
        for name in amounts:
            self.column(name)
        for name, column in self.column_of.items():
            amount = amounts.get(name, 0)
            if amount > self._allocatable[column, row]:
                self.grow(column)
                self.capacity += 1
            self._allocatable[column, row] = amount

    def use(self, row: int, requests: Iterable[tuple[str, int]]) -> None:
        """A pod holds `requests` on this row from now on."""
        for name, amount in requests:
            column = self.column(name)  # a new one may replace the matrix
            self._used[column, row] += amount

    def unuse(self, row: int, requests: Iterable[tuple[str, int]]) -> None:
        """A pod holds them no longer."""
        for name, amount in requests:
            column = self.column(name)
            self._used[column, row] -= amount
            self.grow(column)

    def reserve(self, row: int, requests: Iterable[tuple[str, int]]) -> None:
        """A seat is set aside."""
        for name, amount in requests:
            column = self.column(name)
            self._reserved[column, row] += amount

    def unreserve(self, row: int, requests: Iterable[tuple[str, int]], *, improves: bool) -> None:
        """A seat is given back; `improves` is false when the same amounts become `used` at once."""
        for name, amount in requests:
            column = self.column(name)
            self._reserved[column, row] -= amount
            if improves:
                self.grow(column)

    def touch(self) -> None:
        """Something that no column shows became better (a taint went, a node came): grow them all."""
        self.generation = [generation + 1 for generation in self.generation]
        self.grown += 1
        self.capacity += 1

    def grow(self, column: int) -> None:
        """Something in this column may have become free."""
        self.generation[column] += 1
        self.grown += 1

    def _grow(self, *, columns: int, rows: int) -> None:
        pad = ((0, columns), (0, rows))
        self._allocatable = np.pad(self._allocatable, pad)
        self._used = np.pad(self._used, pad)
        self._reserved = np.pad(self._reserved, pad)
