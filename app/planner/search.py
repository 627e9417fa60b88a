# SPDX-License-Identifier: Apache-2.0
"""Depth-first search for unlike members of a small gang, when packing template by template found no way.

Bounded: it gives up after looking at `STEPS` places, so a "no" from here means "not found"; a "yes" is right.
Nodes that look the same to every member are tried once per level; equal members are placed in row order.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from app.domain.plan import Member
from app.inventory.columns import Matrix
from app.inventory.view import View
from app.planner.capacity import seats_per_row

STEPS: Final = 20_000
MOST_MEMBERS: Final = 16
MOST_ROWS: Final = 64

Placement = list[tuple[Member, int]]


def search(view: View, members: list[Member], *, need: int) -> Placement:
    """(member, row) for as many members as possible, at least `need`; empty when none was found.

    `members` come hardest first.
    """
    if len(members) > MOST_MEMBERS:
        return []
    problem = _Problem(view, members)
    for skips in range(len(members) - need + 1):
        found = problem.solve(skips)
        if found is not None:
            return found
        if problem.steps <= 0:
            break
    return []


def exhausted(view: View, members: list[Member], *, need: int) -> bool:
    """Proof by trying: every way to seat `need` of the members was looked at, and there is none."""
    if len(members) > MOST_MEMBERS:
        return False
    problem = _Problem(view, members)
    found = problem.solve(len(members) - need)
    return found is None and problem.steps > 0 and not problem.cut


class _Problem:
    def __init__(self, view: View, members: list[Member]) -> None:
        self.members = members
        self.steps = STEPS
        names = sorted({name for m in members for name, _ in m.template.requests if name in view.column_of})
        columns = [view.column_of[name] for name in names]
        self._asks = [self._ask(member, names) for member in members]
        allowed = {m.template: seats_per_row(view, m.template, view.free, most=1) for m in members}
        self._allowed = [allowed[member.template] for member in members]
        rows = self._candidates(view, columns, list(allowed.values()))
        self.cut = len(rows) > MOST_ROWS
        """Whether rows were left out that could have made a difference."""
        self.rows = sorted(rows[:MOST_ROWS])
        self._free = {row: [int(view.free[column, row]) for column in columns] for row in self.rows}

    @staticmethod
    def _ask(member: Member, names: list[str]) -> list[int]:
        requests = dict(member.template.requests)
        return [requests.get(name, 0) for name in names]

    def _candidates(self, view: View, columns: list[int], allowed: list[Matrix]) -> list[int]:
        """Rows that take at least one member; of rows that look alike no more than there are members."""
        looks = np.vstack([*allowed, view.free[columns]])
        able = np.flatnonzero(np.vstack(allowed).any(axis=0))
        _, alike = np.unique(looks[:, able], axis=1, return_inverse=True)
        kinds = range(int(alike.max(initial=-1)) + 1)
        return [int(row) for kind in kinds for row in able[alike == kind][: len(self.members)]]

    def solve(self, skips: int) -> Placement | None:
        """A placement that leaves out exactly at most `skips` members, or None."""
        placed: Placement = []
        return placed if self._place(0, skips, placed) else None

    def _place(self, index: int, skips: int, placed: Placement) -> bool:
        if index == len(self.members):
            return True
        member, ask, allowed = self.members[index], self._asks[index], self._allowed[index]
        start = self._start(index, placed)
        tried: set[tuple[int, ...]] = set()
        for row in self.rows[start:]:
            free = self._free[row]
            self.steps -= 1
            if self.steps <= 0:
                return False
            if not allowed[row] or any(a > f for a, f in zip(ask, free, strict=True)):
                continue
            look = (*free, *(int(mask[row]) for mask in self._allowed[index:]))
            if look in tried:
                continue
            tried.add(look)
            self._free[row] = [f - a for a, f in zip(ask, free, strict=True)]
            placed.append((member, row))
            if self._place(index + 1, skips, placed):
                return True
            placed.pop()
            self._free[row] = free
        return skips > 0 and self._place(index + 1, skips - 1, placed)

    def _start(self, index: int, placed: Placement) -> int:
        """Equal members go in row order: the one before has had its turn on earlier rows."""
        if placed and index and placed[-1][0] is self.members[index - 1]:
            before, row = placed[-1]
            if before.template == self.members[index].template:
                return self.rows.index(row)
        return 0
