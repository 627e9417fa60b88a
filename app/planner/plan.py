# SPDX-License-Identifier: Apache-2.0
"""The planner: seats for a whole gang on one view, or the count of what there is.

Exact for identical members. For unlike members it packs template by template in a few orders, then
searches; a yes is always right, a no may (rarely) be wrong. Constraints that a template lists as
unmodelled are ignored here: kube-scheduler judges them, and the filter verb re-seats inside its offer.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from app.domain.placement import Template
from app.domain.plan import Demand, Member, Plan, Seat
from app.domain.reasons import Reason, Refusal
from app.domain.resources import is_device
from app.inventory.columns import Matrix
from app.inventory.view import View
from app.planner.capacity import seats_per_row, spare_devices
from app.planner.pack import pack
from app.planner.search import exhausted, search

Placement = list[tuple[Member, int]]


def plan(view: View, demand: Demand) -> Plan | Refusal:
    """Seats for as many of the demand's members as fit, at least `need`; otherwise a BUSY refusal.

    `have` of the refusal is the largest number of members that found a seat together.
    """
    groups = _by_template(demand.members)
    placed = _place_alike(view, *groups[0], demand) if len(groups) == 1 else _place(view, groups, demand)
    if isinstance(placed, int):
        return Refusal(reason=Reason.BUSY, gang=demand.gang, have=placed, need=demand.need)
    seats = tuple(Seat(uid=m.uid, node=view.names[row], template=m.template) for m, row in placed)
    return Plan(gang=demand.gang, seats=seats)


Groups = list[tuple[Template, list[Member]]]


def impossible(view: View, demand: Demand) -> bool:
    """Proof that the demand has no seats on this view. A refusal by `plan` alone proves it only for members
    that are all alike: with unlike ones there may be a packing that was not found."""
    groups = _by_template(demand.members)
    if not _conceivable(view, groups, demand.need) or _too_much(view, groups, demand):
        return True
    return exhausted(
        view, [member for _, members in _hardest(groups) for member in members], need=demand.need
    )


def _too_much(view: View, groups: Groups, demand: Demand) -> bool:
    """Whether of some resource even the most modest members ask for more than there is in all."""
    able = np.logical_or.reduce([view.admitting(template)[: view.rows] for template, _ in groups])
    for name in {name for template, _ in groups for name, _ in template.requests}:
        asked = sorted(dict(member.template.requests).get(name, 0) for member in demand.members)
        column = view.column_of.get(name)
        there = 0 if column is None else int(np.maximum(view.free[column, able], 0).sum())
        if sum(asked[: demand.need]) > there:
            return True
    return False


def _place_alike(view: View, template: Template, members: list[Member], demand: Demand) -> Placement | int:
    """Rows for members of one template; how many there are if those are too few."""
    seats = seats_per_row(view, template, view.free, most=len(members))
    have = min(len(members), int(seats.sum()))
    if have < demand.need:
        return have
    rows = pack(seats, spare_devices(view, template, view.free), wanted=have)
    return list(zip(members, _spots(rows), strict=False))


def _place(view: View, groups: Groups, demand: Demand) -> Placement | int:
    """The same for unlike members."""
    best: Placement = []
    for order in _orders(view, groups):
        placed = _pack_in_order(view, order)
        if len(placed) > len(best):
            best = placed
        if len(best) == len(demand.members):
            break
    if len(best) < len(demand.members) and _conceivable(view, groups, demand.need):
        hardest = [member for _, members in _hardest(groups) for member in members]
        best = search(view, hardest, need=max(demand.need, len(best) + 1)) or best
    return best if len(best) >= demand.need else len(best)


def _by_template(members: Iterable[Member]) -> Groups:
    groups: dict[Template, list[Member]] = {}
    for member in members:
        groups.setdefault(member.template, []).append(member)
    return list(groups.items())


def _orders(view: View, groups: Groups) -> Iterable[Groups]:
    hardest = _hardest(groups)
    yield hardest
    yield sorted(hardest, key=lambda g: int(view.admitting(g[0]).sum()))
    yield hardest[::-1]  # the easiest first seats the most members when not all fit


def _hardest(groups: Groups) -> Groups:
    return sorted(groups, key=lambda g: _size(g[0]), reverse=True)


def _size(template: Template) -> tuple[int, tuple[tuple[str, int], ...]]:
    return max(
        (amount for name, amount in template.requests if is_device(name)), default=0
    ), template.requests


def _pack_in_order(view: View, groups: Groups) -> Placement:
    free = view.free.copy()
    placed: Placement = []
    for template, members in groups:
        seats = seats_per_row(view, template, free, most=len(members))
        rows = pack(seats, spare_devices(view, template, free), wanted=len(members))
        placed += list(zip(members, _spots(rows), strict=False))
        _take(view, template, free, rows)
    return placed


def _spots(rows: list[tuple[int, int]]) -> list[int]:
    """Each row as often as it takes a member."""
    return [row for row, count in rows for _ in range(count)]


def _take(view: View, template: Template, free: Matrix, rows: list[tuple[int, int]]) -> None:
    if not rows:
        return
    index = np.array([row for row, _ in rows], np.intp)
    count = np.array([n for _, n in rows], np.int64)
    for name, amount in template.requests:
        free[view.column_of[name], index] -= amount * count


def _conceivable(view: View, groups: Groups, need: int) -> bool:
    """Cheap upper bound: even if templates did not compete, would `need` members have seats?"""
    bound = (min(len(m), int(seats_per_row(view, t, view.free, most=len(m)).sum())) for t, m in groups)
    return sum(bound) >= need
