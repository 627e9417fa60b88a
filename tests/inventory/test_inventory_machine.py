# SPDX-License-Identifier: Apache-2.0
"""Any walk of events and seats: running sums equal those counted anew, no refusal goes stale unseen, and a
copy stays what it was."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app.domain.changes import Change
from app.domain.gang import PodGroup
from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.node import Node
from app.domain.plan import Plan, Seat
from app.domain.pod import Pod
from app.inventory.inventory import Inventory
from app.matching.nodes import admits
from tests.builders import (
    GPU,
    GroupBuilder,
    NodeBuilder,
    PodBuilder,
    group_of,
    key,
    make_group,
    make_node,
    make_pod,
    node_of,
    pod_of,
)
from tests.inventory.everything import everything

NODES = st.sampled_from(["n1", "n2", "n3"])
PODS = st.sampled_from(["p1", "p2", "p3", "p4", "p5"])
GANGS = st.sampled_from(["train", "eval"])
PRIORITIES = (0, 1, 2)
PROBE = pod_of(make_pod("probe").gpus(1).in_zone("a")).template
Free = dict[tuple[str, str], int]


class InventoryMachine(RuleBasedStateMachine):
    """The model is plain: the last state of each object, and where seats are."""

    def __init__(self) -> None:
        super().__init__()
        self.inventory = Inventory()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, PodBuilder] = {}
        self.groups: dict[GangKey, PodGroup] = {}
        self.seats: dict[PodUid, tuple[Seat, GangKey | None]] = {}
        self.last_free: dict[int, Free] = {}
        self.last_admitting: set[str] = set()
        self.last_generations: dict[str, int] = {}
        self.copies: list[tuple[Inventory, object]] = []

    # -- events

    def _tell(self, *changes: Change) -> None:
        self.inventory.apply(changes)

    def _put_pod(self, builder: PodBuilder) -> None:
        pod = pod_of(builder)
        self.pods[pod.name] = builder
        self._tell(Change(pod))
        if pod.node is not None or not pod.alive:
            self.seats.pop(pod.uid, None)

    def _put_node(self, builder: NodeBuilder) -> None:
        node = node_of(builder)
        self.nodes[node.name] = node
        self._tell(Change(node))

    @rule(name=NODES, gpus=st.integers(0, 8), zone=st.sampled_from("ab"), tainted=st.booleans())
    def node_is(self, name: str, gpus: int, zone: str, tainted: bool) -> None:
        node = make_node(name).gpus(gpus).zone(zone)
        self._put_node(node.cordoned() if tainted else node)

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        node = self.nodes.pop(name, None)
        if node is not None:
            self._tell(Change(node, gone=True))

    @rule(
        name=PODS,
        gpus=st.integers(0, 4),
        gang=st.none() | GANGS,
        priority=st.sampled_from(PRIORITIES),
        life=st.integers(0, 2),
    )
    def pod_is_created(self, name: str, gpus: int, gang: str | None, priority: int, life: int) -> None:
        self.pod_goes(name)
        pod = make_pod(name).gpus(gpus).cpu("1").priority(priority).uid(f"{name}-{life}")
        self._put_pod(pod.gang(gang).gated() if gang else pod)

    @rule(name=PODS)
    def pod_goes(self, name: str) -> None:
        builder = self.pods.pop(name, None)
        if builder is not None:
            pod = pod_of(builder)
            self._tell(Change(pod, gone=True))
            self.seats.pop(pod.uid, None)

    @rule(name=PODS, node=NODES)
    def pod_binds(self, name: str, node: str) -> None:
        if (pod := self.pods.get(name)) is not None and not pod.get("spec.nodeName"):
            self._put_pod(pod.on(node))

    @rule(name=PODS, phase=st.sampled_from(["Succeeded", "Failed"]))
    def pod_ends(self, name: str, phase: str) -> None:
        if (pod := self.pods.get(name)) is not None:
            self._put_pod(pod.phase(phase))

    @rule(name=PODS)
    def pod_is_being_deleted(self, name: str) -> None:
        if (pod := self.pods.get(name)) is not None:
            self._put_pod(pod.deleting())

    @rule(name=PODS, gpus=st.integers(0, 4))
    def pod_is_resized(self, name: str, gpus: int) -> None:
        if (pod := self.pods.get(name)) is not None and pod_of(pod).uid not in self.seats:
            self._put_pod(pod.gpus(gpus))

    @rule(name=PODS, gang=GANGS)
    def pod_is_relabelled(self, name: str, gang: str) -> None:
        if (pod := self.pods.get(name)) is not None and pod_of(pod).uid not in self.seats:
            self._put_pod(pod.gang(gang))

    @rule(name=PODS, node=st.just("") | NODES)
    def pod_is_nominated(self, name: str, node: str) -> None:
        if (pod := self.pods.get(name)) is not None:
            self._put_pod(pod.set("status.nominatedNodeName", node))

    @rule(name=PODS, priority=st.sampled_from(PRIORITIES))
    def pod_changes_priority(self, name: str, priority: int) -> None:
        if (pod := self.pods.get(name)) is not None:
            self._put_pod(pod.priority(priority))

    @rule(name=GANGS, minimum=st.integers(0, 4))
    def group_is(self, name: str, minimum: int) -> None:
        self._put_group(make_group(name, minimum))

    def _put_group(self, builder: GroupBuilder) -> None:
        group = group_of(builder)
        self.groups[group.key] = group
        self._tell(Change(group))

    @rule(name=GANGS)
    def group_goes(self, name: str) -> None:
        group = self.groups.pop(key(name), None)
        if group is not None:
            self._tell(Change(group, gone=True))

    @rule()
    def everything_is_told_again(self) -> None:
        before = list(self.inventory.columns.generation)
        self._tell(*(Change(pod_of(pod)) for pod in self.pods.values()))
        self._tell(*(Change(node) for node in self.nodes.values()))
        self._tell(*(Change(group) for group in self.groups.values()))
        assert self.inventory.columns.generation == before

    # -- seats

    @rule(names=st.lists(PODS, unique=True, min_size=1, max_size=3), node=NODES, gang=GANGS)
    def seats_are_reserved(self, names: list[str], node: str, gang: str) -> None:
        pods = [pod_of(self.pods[name]) for name in names if name in self.pods]
        seats = [Seat(p.uid, NodeName(node), p.template) for p in pods if p.alive and p.node is None]
        if seats:
            self.inventory.reserve(Plan(gang=key(gang), seats=tuple(seats)))
            self.seats |= {seat.uid: (seat, key(gang)) for seat in seats}

    @rule(name=PODS, node=NODES)
    def seat_is_held_for_an_ordinary_pod(self, name: str, node: str) -> None:
        pod = pod_of(self.pods[name]) if name in self.pods else None
        if pod is not None and pod.alive and pod.node is None:
            seat = Seat(pod.uid, NodeName(node), pod.template)
            self.inventory.hold(seat)
            self.seats[pod.uid] = (seat, None)

    @rule(name=PODS)
    def seat_is_released(self, name: str) -> None:
        if name in self.pods:
            uid = pod_of(self.pods[name]).uid
            assert (self.inventory.release(uid) is not None) == (self.seats.pop(uid, None) is not None)

    @rule(name=PODS, node=NODES)
    def seat_moves(self, name: str, node: str) -> None:
        uid = pod_of(self.pods[name]).uid if name in self.pods else None
        if uid in self.seats:
            seat, gang = self.seats[uid]
            self.inventory.move(uid, NodeName(node))
            self.seats[uid] = (Seat(uid, NodeName(node), seat.template), gang)

    # -- copies

    @rule()
    def somebody_takes_a_copy(self) -> None:
        copy = self.inventory.copy()
        assert everything(copy) == everything(self.inventory)
        self.copies = [*self.copies[-1:], (copy, everything(copy))]

    @invariant()
    def copies_stay_as_they_were(self) -> None:
        for copy, before in self.copies:
            assert everything(copy) == before

    # -- what must hold

    @invariant()
    def sums_are_right(self) -> None:
        columns = self.inventory.columns
        used: Counter[tuple[str, str]] = Counter()
        reserved: Counter[tuple[str, str]] = Counter()
        for pod in self._values():
            if pod.node is not None and not pod.finished:
                used.update({(name, pod.node): amount for name, amount in pod.template.requests})
        for seat, _ in self.seats.values():
            reserved.update({(name, seat.node): amount for name, amount in seat.template.requests})
        for node, row in columns.row_of.items():
            known = self.nodes.get(node)
            for name in columns.column_of:
                allocatable = known.allocatable.get(name, 0) if known is not None else 0
                assert columns.cell(name, row) == (allocatable, used[name, node], reserved[name, node])
        assert {node for _, node in used | reserved} <= set(columns.row_of)

    @invariant()
    def the_book_agrees_with_itself(self) -> None:
        book = self.inventory.book
        assert {b.uid: (b.seat, b.gang) for b in book} == self.seats
        by_gang: dict[GangKey, set[PodUid]] = defaultdict(set)
        by_row: dict[int, set[PodUid]] = defaultdict(set)
        for uid, (seat, gang) in self.seats.items():
            by_row[self.inventory.columns.row_of[seat.node]].add(uid)
            if gang is not None:
                by_gang[gang].add(uid)
        assert {gang: {b.uid for b in book.of(gang)} for gang in book.gangs()} == by_gang
        assert {row: {b.uid for b in book.on(row)} for row in book.rows()} == by_row

    @invariant()
    def gangs_have_their_members(self) -> None:
        want: dict[GangKey, dict[PodUid, Pod]] = {gang: {} for gang in self.groups}
        for pod in self._values():
            if pod.gang is not None:
                want.setdefault(pod.gang, {})[pod.uid] = pod
        assert {g.key: g.group for g in self.inventory.gangs} == {k: self.groups.get(k) for k in want}
        for gang in self.inventory.gangs:
            members = want[gang.key]
            assert {pod.uid for pod in gang.roll.members} == set(members)
            assert all(pod == members[pod.uid] for pod in gang.roll.members if pod.node is None)
            bound = sum(pod.alive and pod.node is not None for pod in members.values())
            done = sum(pod.phase == "Succeeded" for pod in members.values()) if bound else 0
            ready = sum(pod.alive and pod.node is None for pod in members.values())
            assert gang.roll.counted == bound + done + ready

    @invariant()
    def views_count_nominations_by_priority(self) -> None:
        for priority in PRIORITIES:
            free: Counter[tuple[str, str]] = Counter()
            for node in self.nodes.values():
                free.update({(name, node.name): amount for name, amount in node.allocatable.items()})
            for pod in self._values():
                holds = pod.node if not pod.finished else None
                if pod.node is None and pod.alive and pod.uid not in self.seats and pod.priority >= priority:
                    holds = pod.nominated
                if holds is not None:
                    free.subtract({(name, holds): amount for name, amount in pod.template.requests})
            for seat, _ in self.seats.values():
                free.subtract({(name, seat.node): amount for name, amount in seat.template.requests})
            assert self._free(priority) == {place: free[place] for place in self._free(priority)}

    @invariant()
    def nothing_becomes_free_behind_the_back_of_the_generations(self) -> None:
        columns = self.inventory.columns
        generations = dict(zip(columns.column_of, columns.generation, strict=True))
        for priority in PRIORITIES:
            now, before = self._free(priority), self.last_free.get(priority, {})
            for (name, node), amount in now.items():
                if amount > before.get((name, node), 0):
                    assert generations[name] > self.last_generations.get(name, 0), (name, node)
            self.last_free[priority] = now
        mask = self.inventory.admitting(PROBE)
        admitting = {self.inventory.names[row] for row in np.flatnonzero(mask)}
        assert admitting == {name for name, node in self.nodes.items() if admits(PROBE, node)}
        if admitting - self.last_admitting:
            assert generations[GPU] > self.last_generations.get(GPU, 0)
        self.last_admitting, self.last_generations = set(admitting), generations

    def _free(self, priority: int) -> Free:
        view = self.inventory.view(priority=priority)
        return {
            (name, node): int(view.free[column, row])
            for name, column in view.column_of.items()
            if column < len(view.free)
            for node, row in self.inventory.columns.row_of.items()
        }

    def _values(self) -> list[Pod]:
        return [pod_of(pod) for pod in self.pods.values()]


TestInventory = InventoryMachine.TestCase
TestInventory.settings = settings(
    deadline=None, max_examples=40, stateful_step_count=40, derandomize=True, database=None
)
