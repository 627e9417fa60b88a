# SPDX-License-Identifier: Apache-2.0
"""The single writer: applies what the watch tells and books seats; keeps every derived number right.

Decides nothing. No I/O, no clock, no logging. Contract:
  - `apply` is idempotent and takes events in any order between kinds (pods before nodes, pods before
    their PodGroup); usage belongs to the node's name.
  - a pod that the watch shows on a node turns its seat into usage in the same step, so nothing is ever
    counted twice or not at all.
  - a nomination that is not backed by a seat of ours counts as used against pods of equal or lower priority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec
import numpy as np

from app.domain.changes import Change
from app.domain.gang import PodGroup
from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.node import Node
from app.domain.placement import Template
from app.domain.plan import Plan, Seat
from app.domain.pod import SCHEDULER, Pod
from app.domain.resources import is_device
from app.inventory.columns import Columns, Mask, Matrix, Rows
from app.inventory.gangs import GangTable
from app.inventory.nodes import NodeTable
from app.inventory.reservations import Book, Booking, Phase
from app.inventory.view import View

ADMISSION_FAILURE = "UnexpectedAdmissionError"
"""`status.reason` that kubelet sets when a device could not be allocated after the pod was bound."""


class Touched(msgspec.Struct):
    """What a batch of changes concerned. `pods` holds (before, after) of each pod, None where absent;
    `released` are the seats of pods that went before they were bound."""

    gangs: set[GangKey] = msgspec.field(default_factory=set)
    rows: set[int] = msgspec.field(default_factory=set)
    pods: list[tuple[Pod | None, Pod | None]] = msgspec.field(default_factory=list)
    released: list[Booking] = msgspec.field(default_factory=list)


class Inventory:
    """Nodes, pods, gangs and seats."""

    def __init__(self, *, scheduler: str = SCHEDULER) -> None:
        self.columns = Columns()
        self.nodes = NodeTable()
        self.gangs = GangTable(scheduler=scheduler)
        self.book = Book()
        self.pods: dict[PodUid, Pod] = {}
        self.names: list[NodeName] = []
        self.bad_starts: Counter[NodeName] = Counter()
        self.scheduler = scheduler
        self._nominated: dict[PodUid, Pod] = {}
        self._plans = 0
        self._views: dict[object, View] = {}
        self._nominators: set[GangKey | None] | None = None
        self._evictable: dict[int, Matrix] = {}
        self.holders: dict[str, Counter[str]] = {}
        """Per device: how much each gang or pod holds."""

    def copy(self) -> Inventory:
        """All of it as of now, for somebody who reads it elsewhere while this one goes on.

        Nodes and pods are values that both share. Takes some milliseconds at 150,000 pods.
        """
        copy = Inventory(scheduler=self.scheduler)
        copy.columns, copy.nodes = self.columns.copy(), self.nodes.copy()
        copy.gangs, copy.book = self.gangs.copy(), self.book.copy()
        copy.pods, copy.names = self.pods.copy(), self.names.copy()
        copy.bad_starts, copy._nominated = self.bad_starts.copy(), self._nominated.copy()
        copy._plans = self._plans
        copy.holders = {name: held.copy() for name, held in self.holders.items()}
        return copy

    # -- the watch

    def apply(self, changes: Iterable[Change]) -> Touched:
        """Take in events, in order."""
        touched = Touched()
        for change in changes:
            match change.value:
                case Pod():
                    self._pod(change.value, gone=change.gone, touched=touched)
                case Node():
                    self._node(change.value, gone=change.gone, touched=touched)
                case PodGroup():
                    self.gangs.define(change.value.key, None if change.gone else change.value)
                    touched.gangs.add(change.value.key)
        self._evictable.clear()
        self._moved()
        return touched

    def _pod(self, pod: Pod, *, gone: bool, touched: Touched) -> None:
        before = self.pods.get(pod.uid)
        after = None if gone else pod
        if _holding(before) != _holding(after):
            self._use_instead(before, after, touched)
        if before is not None:
            self._leave(before, after, touched)
        if after is not None:
            self._enter(before, after, touched)
        touched.pods.append((before, after))

    def _use_instead(self, before: Pod | None, after: Pod | None, touched: Touched) -> None:
        """Usage of one pod: what it held is free, what it holds now is not."""
        for pod, change in ((before, self.columns.unuse), (after, self.columns.use)):
            if pod is not None and (held := _holding(pod)) is not None:
                row = self._row(held[0])
                change(row, held[1].requests)
                touched.rows.add(row)
                self._hold_device(pod, sign=1 if pod is after else -1)

    def _hold_device(self, pod: Pod, *, sign: int) -> None:
        holder = holder_of(pod)
        for name, amount in pod.template.requests:
            if is_device(name):
                held = self.holders.setdefault(name, Counter())
                held[holder] += sign * amount
                if held[holder] <= 0:
                    del held[holder]

    def _leave(self, before: Pod, after: Pod | None, touched: Touched) -> None:
        del self.pods[before.uid]
        nominated = self._nominated.pop(before.uid, None)
        if before.failure == ADMISSION_FAILURE and before.node is not None:
            self.bad_starts[before.node] -= 1
        if before.gang is not None:
            touched.gangs.add(before.gang)
            if after is None or after.gang != before.gang:
                self.gangs.drop(before)
        if nominated is not None and _blocks_less(nominated, after):
            self._freed(nominated.template)
        if after is None and (booking := self.release(before.uid)) is not None:
            touched.released.append(booking)

    def _enter(self, before: Pod | None, after: Pod, touched: Touched) -> None:
        self.pods[after.uid] = after
        if after.failure == ADMISSION_FAILURE and after.node is not None:
            self.bad_starts[after.node] += 1
        if after.node is not None or not after.alive:
            self._confirm(after, touched)
        elif after.nominated is not None:
            self._nominated[after.uid] = after
            self._row(after.nominated)
        if after.gang is not None:
            touched.gangs.add(after.gang)
            if before is None or _membership(before) != _membership(after):
                self.gangs.put(after)
            elif after.node is None:
                self.gangs.refresh(after)

    def _confirm(self, pod: Pod, touched: Touched) -> None:
        """The pod is on a node, or will never be: its seat has become usage, or nothing."""
        booking = self.book.remove(pod.uid)
        if booking is not None:
            as_planned = pod.node == booking.node and not pod.finished
            self.columns.unreserve(booking.row, booking.template.requests, improves=not as_planned)
            if pod.node is None:
                touched.released.append(booking)

    def _node(self, node: Node, *, gone: bool, touched: Touched) -> None:
        row = self._row(node.name)
        before = self.nodes.get(row)
        if gone and before is not None and before.uid != node.uid:
            return  # the old object of a name that exists again
        after = None if gone else node
        self.nodes.put(row, after)
        self.columns.set_allocatable(row, {} if after is None else after.allocatable)
        if after is not None and (before is None or before.shape != after.shape):
            self.columns.touch()
        touched.rows.add(row)

    def _row(self, name: NodeName) -> int:
        row = self.columns.row(name)
        if row == len(self.names):
            self.names.append(name)
        return row

    def _freed(self, template: Template) -> None:
        for name, _ in template.requests:
            self.columns.grow(self.columns.column(name))

    # -- seats

    def reserve(self, plan: Plan, *, extend: int | None = None) -> list[Booking]:
        """Set all seats of a plan aside, under a new plan number or as part of plan `extend`."""
        if extend is None:
            self._plans += 1
        number = self._plans if extend is None else extend
        made = [self._book(seat, gang=plan.gang, plan=number) for seat in plan.seats]
        self._moved()
        return made

    def hold(self, seat: Seat) -> Booking:
        """Set aside what an ordinary pod is about to be bound to."""
        self._plans += 1
        booking = self._book(seat, gang=None, plan=self._plans)
        self._moved()
        return booking

    def _book(self, seat: Seat, *, gang: GangKey | None, plan: int) -> Booking:
        row = self._row(seat.node)
        booking = Booking(
            uid=seat.uid,
            node=seat.node,
            row=row,
            template=seat.template,
            plan=plan,
            gang=gang,
            phase=Phase.RESERVED,
        )
        self.release(seat.uid)
        nominated = self._nominated.get(seat.uid)
        if nominated is not None and nominated.nominated != seat.node:
            self._freed(nominated.template)  # the seat counts from now on, not the nomination
        self.book.add(booking)
        self.columns.reserve(row, seat.template.requests)
        return booking

    def release(self, uid: PodUid) -> Booking | None:
        """Give a seat back; what it was, or None."""
        booking = self.book.remove(uid)
        if booking is not None:
            self.columns.unreserve(booking.row, booking.template.requests, improves=True)
            self._moved()
        return booking

    def move(self, uid: PodUid, node: NodeName) -> Booking:
        """The same seat on another node; the caller has made sure that it fits there."""
        old = self.book.remove(uid)
        assert old is not None, "only an existing seat can move"
        self.columns.unreserve(old.row, old.template.requests, improves=True)
        new = Booking(
            uid=uid, node=node, row=self._row(node), template=old.template, plan=old.plan, gang=old.gang,
            phase=old.phase, nominated=old.nominated,
        )  # fmt: skip
        self.book.add(new)
        self.columns.reserve(new.row, new.template.requests)
        self._moved()
        return new

    # -- reading

    def view(self, *, priority: int = 0, gang: GangKey | None = None) -> View:
        """What is free now for a gang of `priority`: others' nominations at or above it count as used."""
        level = (priority, self.viewpoint(gang)) if self._nominated else None
        view = self._views.get(level)
        if view is None:
            free = self.columns.free()
            if level is not None:
                own = frozenset() if level[1] is None else frozenset((level[1],))
                self._subtract_nominations(free, priority, but=own)
            view = self._views[level] = self.as_view(free)
        return view

    def view_without_reservations(self) -> View:
        """What would be free if no seat were set aside: tells "behind another gang" from "busy"."""
        view = self._views.get("unreserved")
        if view is None:
            free = self.columns.free()
            for booking in self.book:
                self.columns.shift(free, booking.row, booking.template.requests, sign=1)
            view = self._views["unreserved"] = self.as_view(free)
        return view

    def view_when_empty(self) -> View:
        """What an empty cluster would have: tells "can never fit" from "busy"."""
        view = self._views.get("empty")
        if view is None:
            free = np.zeros((len(self.columns.column_of), self.columns.rows), np.int64)
            for name, column in self.columns.column_of.items():
                free[column] = self.columns.allocatable(name)
            view = self._views["empty"] = self.as_view(free)
        return view

    def free_after_preempting(self, priority: int) -> Matrix | None:
        """What would be free if everything of lower priority went that the preempt verb lets go; None if
        nothing would."""
        evictable = self._evictable.get(priority)
        if evictable is None:
            evictable = self._evictable[priority] = self._sum_evictable(priority)
        if not evictable.any():
            return None
        free = self.columns.free()
        free[: evictable.shape[0], : evictable.shape[1]] += evictable
        return free

    def _sum_evictable(self, priority: int) -> Matrix:
        evictable = np.zeros((len(self.columns.column_of), self.columns.rows), np.int64)
        for pod in self.pods.values():
            if pod.priority < priority and _holding(pod) is not None and self._expendable(pod):
                row = self.columns.row_of[NodeName(pod.node or "")]
                self.columns.shift(evictable, row, pod.template.requests, sign=1)
        return evictable

    def _expendable(self, pod: Pod) -> bool:
        """Whether evicting it and its gang's members on its node leaves no half a gang behind."""
        gang = self.gangs.get(pod.gang) if pod.gang is not None and pod.grouped else None
        if gang is None:
            return True
        bound = gang.roll.bound
        elsewhere = sum(member.node != pod.node for member in bound)
        return elsewhere == 0 or elsewhere >= gang.roll.minimum

    def as_view(self, free: Matrix) -> View:
        """A view on other free amounts than the present ones: a what-if."""
        return View(free, names=self.names, column_of=self.columns.column_of, admitting=self.admitting)

    def viewpoint(self, gang: GangKey | None) -> GangKey | None:
        """`gang` if one of its own members is nominated: it is not in its own way, and so sees more."""
        if self._nominators is None:
            self._nominators = {pod.gang for pod in self._nominated.values()}
        return gang if gang in self._nominators else None

    def admitting(self, template: Template) -> Mask:
        """Rows whose node exists and admits the template."""
        return self.nodes.admitting(template, rows=self.columns.rows)

    def free_for(self, pod: Pod, rows: Rows | None = None) -> Matrix:
        """Free amounts for this very pod: its own seat or nomination is not in its way.

        Shape (columns, rows), or (columns, len(rows)) of these rows alone.
        """
        free, own = self.columns.free(rows), self.book.get(pod.uid)
        changes = [
            (row, other.template, -1) for row, other in self.nominations_before(pod.priority, but={pod.uid})
        ]
        if own is not None:
            changes.append((own.row, own.template, 1))
        for row, template, sign in changes:
            for spot in (row,) if rows is None else np.flatnonzero(rows == row).tolist():
                self.columns.shift(free, spot, template.requests, sign=sign)
        return free

    def foreign_nominations(self) -> list[Pod]:
        """Unbound pods that are nominated and have no seat of ours."""
        return [pod for uid, pod in self._nominated.items() if self.book.get(uid) is None]

    def nominations_before(
        self, priority: int, *, but: AbstractSet[PodUid | GangKey] = frozenset()
    ) -> Iterator[tuple[int, Pod]]:
        """(row, pod) of foreign nominations that count as used for pods of `priority`, but not those of these
        pods and gangs: they are not in their own way."""
        for pod in self.foreign_nominations():
            if pod.priority < priority or pod.nominated is None or pod.uid in but or pod.gang in but:
                continue
            yield self.columns.row_of[pod.nominated], pod

    def fits(self, template: Template, free: Matrix, rows: Sequence[int] | np.ndarray | None = None) -> Mask:
        """Which of `rows`, or of all that `free` has, hold the template's requests. Shape (len(rows),)."""
        index = np.arange(free.shape[1]) if rows is None else np.asarray(rows, dtype=np.intp)
        fine = np.ones(len(index), np.bool_)
        for name, amount in template.requests:
            column = self.columns.column_of.get(name)
            if column is None or column >= len(free):
                return np.zeros(len(index), np.bool_)
            fine &= free[column, index] >= amount
        return fine

    def _subtract_nominations(
        self, free: Matrix, priority: int, *, but: AbstractSet[PodUid | GangKey]
    ) -> None:
        for row, pod in self.nominations_before(priority, but=but):
            self.columns.shift(free, row, pod.template.requests, sign=-1)

    def _moved(self) -> None:
        self._nominators = None
        self._views.clear()


def holder_of(pod: Pod) -> str:
    """Under which name people know who holds something."""
    return f"gang {pod.gang}" if pod.grouped else f"pod {pod.key}"


def _holding(pod: Pod | None) -> tuple[NodeName, Template, GangKey | None] | None:
    """Where a pod holds what, and for whom; None when it holds nothing."""
    if pod is None or pod.node is None or pod.finished:
        return None
    return pod.node, pod.template, pod.gang


def _blocks_less(before: Pod, after: Pod | None) -> bool:
    """Whether what a nominated pod kept from others may be free now: not if it stays or has bound there."""
    if after is None or not after.alive or after.template != before.template:
        return True
    return (after.node or after.nominated) != before.nominated or after.priority < before.priority


def _membership(pod: Pod) -> tuple[object, ...]:
    """What the gang needs to know of a member; heartbeats of anything else do not count as a change."""
    return (pod.gang, pod.phase, pod.deleting, pod.node, pod.gates, pod.priority, pod.scheduler, pod.template)
