# SPDX-License-Identifier: Apache-2.0
"""The case in question: which pods, which gang, what they ask for, and what the planner says of it.

Works everything out once and lazily, for the findings and the verdict to share. Judges nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from app.codec.snapshot import JsonObject
from app.domain.ids import GangKey, PodUid, single_key
from app.domain.placement import Taint, Template
from app.domain.plan import Demand, Member, Plan
from app.domain.pod import Pod, seniority
from app.domain.reasons import Refusal
from app.domain.resources import CPU, PODS, is_device
from app.explain.dra.claims import Asked, follow, references
from app.explain.dra.dra import Dra
from app.explain.dra.needs import Need, needs_of
from app.explain.events import ByObject, events_of
from app.explain.facts import Facts
from app.explain.makers import Maker, makers_of
from app.explain.pool import Ledger, Pool, barred, ledger, pool
from app.explain.report import Subject
from app.inventory.columns import Mask, Matrix
from app.inventory.gangs import Gang
from app.inventory.reservations import Booking
from app.inventory.view import View
from app.planner.plan import plan


class Case:
    """`pods` are all pods concerned: the members of the gang, those of the owner, or the one pod.

    `root` is the raw object that was asked about; None for a gang that has pods and no PodGroup. `focus` is
    the pod asked about, if it was one.
    """

    def __init__(
        self,
        facts: Facts,
        subject: Subject,
        *,
        pods: Sequence[Pod],
        gang: Gang | None,
        root: JsonObject | None,
    ) -> None:
        self.facts = facts
        self.inventory = facts.inventory
        self.objects = facts.objects
        self.subject = subject
        self.pods = list(pods)
        self.gang = gang
        self.root = root

    # -- who

    @cached_property
    def focus(self) -> Pod | None:
        """The pod that was asked about; None when it was a gang or an owner."""
        if self.subject.kind != "pod":
            return None
        return next(pod for pod in self.pods if pod.name == self.subject.name)

    @cached_property
    def waiting(self) -> list[Pod]:
        """Alive and on no node; oldest first."""
        return sorted((pod for pod in self.pods if pod.alive and pod.node is None), key=seniority)

    @cached_property
    def bound(self) -> list[Pod]:
        """Alive on a node."""
        return [pod for pod in self.pods if pod.alive and pod.node is not None]

    @cached_property
    def asking(self) -> list[Pod]:
        """The pods whose requests matter: those that wait; all that are alive when none does."""
        return self.waiting or self.bound or self.pods

    @cached_property
    def schedulers(self) -> list[str]:
        """`spec.schedulerName` of the pods that are alive, sorted."""
        return sorted({pod.scheduler for pod in self.pods if pod.alive})

    @property
    def ours(self) -> bool:
        """Whether Muster places all that waits."""
        return bool(self.waiting) and all(pod.scheduler == self.inventory.scheduler for pod in self.waiting)

    def raw(self, pod: Pod) -> JsonObject:
        """The object of a pod; empty if it was not read."""
        return self.objects.get("Pod", pod.namespace, pod.name) or {}

    @cached_property
    def makers(self) -> list[Maker]:
        """Who creates pods of the gang, or those that were asked about."""
        gang = self.gang.key if self.gang is not None else None
        return makers_of(
            self.objects, namespace=self.subject.namespace, root=self.root, pods=self.pods, gang=gang
        )

    @cached_property
    def events(self) -> ByObject:
        """Events of the namespace by kind and name of what they are about, oldest first."""
        return events_of(self.objects, self.subject.namespace)

    # -- what they ask for

    @cached_property
    def templates(self) -> list[Template]:
        """What is asked for, each once."""
        return list(dict.fromkeys(pod.template for pod in self.asking))

    @cached_property
    def devices(self) -> list[str]:
        """Extended resources that are asked for, sorted."""
        return sorted({n for t in self.templates for n, amount in t.requests if amount and is_device(n)})

    @cached_property
    def minimum(self) -> int:
        """How many must be there at once; 1 where there is no gang."""
        return self.gang.roll.minimum if self.gang is not None else 1

    @cached_property
    def settled(self) -> int:
        """Members that need no seat any more."""
        return self.gang.roll.settled if self.gang is not None else len(self.bound)

    def spares(self, pods: Iterable[Pod]) -> bool:
        """Whether it could start without these pods: others are enough, and none of these was asked about."""
        without = {pod.uid for pod in pods}
        if self.focus is not None and self.focus.uid in without:
            return False
        return self.settled + sum(pod.uid not in without for pod in self.waiting) >= max(1, self.minimum)

    @cached_property
    def demand(self) -> Demand | None:
        """Seats for all that waits, at least for what the gang lacks (one, where there is none)."""
        if not self.waiting:
            return None
        members = tuple(Member(uid=pod.uid, template=pod.template) for pod in self.waiting)
        need = min(max(1, self.minimum - self.settled), len(members))
        return Demand(
            gang=self.key, members=members, need=need, priority=min(p.priority for p in self.waiting)
        )

    @property
    def key(self) -> GangKey:
        """The gang's; one made up for pods that belong to none."""
        if self.gang is not None:
            return self.gang.key
        return single_key(self.subject.namespace, self.subject.name, PodUid("asked-about"))

    @cached_property
    def claims(self) -> list[Asked]:
        """Resource claims that the pods refer to, as long as these are alive; one for each reference."""
        found = (one for pod in self.asking if pod.alive for one in references(pod, self.raw(pod)))
        return [follow(self.objects, one) for one in found]

    @cached_property
    def dra(self) -> Dra:
        """Device classes, slices and claims of everybody."""
        return Dra(self.facts)

    @cached_property
    def needs(self) -> list[Need]:
        """What the claims that have no devices yet ask for."""
        seats = self.demand.need if self.demand is not None else 1
        return needs_of(self.dra, self.claims, pods=len(self.waiting), seats=seats)

    # -- what there is

    @cached_property
    def view(self) -> View:
        """What is free for these pods now. Seats that Muster reserved bind only pods that it places."""
        priority = self.demand.priority if self.demand is not None else 0
        if self.ours and self.gang is not None:
            return self.inventory.view(priority=priority, gang=self.key)
        if self.ours:
            return self._less_nominations(self.inventory.as_view(self.inventory.columns.free()), priority)
        return self._less_nominations(self.inventory.view_without_reservations(), priority)

    def _less_nominations(self, view: View, mine: int) -> View:
        """Without what other nominated pods of no lower priority count for; its own are not in its way."""
        before = list(self.inventory.nominations_before(mine, but={pod.uid for pod in self.pods}))
        if not before:
            return view
        free = view.free.copy()
        for row, pod in before:
            self.inventory.columns.shift(free, row, pod.template.requests, sign=-1)
        return self.inventory.as_view(free)

    @cached_property
    def now(self) -> Plan | Refusal | None:
        """The planner's word on what is free now; None when nothing waits."""
        return plan(self.view, self.demand) if self.demand is not None else None

    @cached_property
    def when_empty(self) -> Plan | Refusal | None:
        """The planner's word on the cluster without any pod; None when nothing waits."""
        return plan(self.inventory.view_when_empty(), self.demand) if self.demand is not None else None

    @cached_property
    def admitting(self) -> Mask:
        """Rows that labels and taints leave to at least one of the pods, shape (rows,)."""
        masks = [self.inventory.admitting(template) for template in self.templates]
        return np.logical_or.reduce(masks) if masks else np.zeros(self.inventory.columns.rows, np.bool_)

    @cached_property
    def booked(self) -> list[Booking]:
        """The seats that Muster has reserved for the gang, or for pods that are gangs of their own: what they
        take is not in its way."""
        book = self.inventory.book
        if self.gang is not None:
            return book.of(self.gang.key)
        return [seat for pod in self.waiting if (seat := book.get(pod.uid)) is not None]

    @cached_property
    def fits(self) -> bool:
        """Whether there are seats now for what waits."""
        return bool(self.booked) or isinstance(self.now, Plan)

    @cached_property
    def pools(self) -> list[Pool]:
        """What there is of each device that a waiting pod asks for; of cpu or pods where it asks for none."""
        if not self.waiting:
            return []
        asked = {name for template in self.templates for name, _ in template.requests}
        names = self.devices or [next(name for name in (CPU, PODS) if name in asked)]
        return [pool(self, name) for name in names]

    @cached_property
    def barred(self) -> dict[str, dict[int, Taint | None]]:
        """By pool the rows that have it and admit no pod: the taint, or None where they are not selected."""
        return {pool.name: barred(self, pool) for pool in self.pools}

    @cached_property
    def ledger(self) -> dict[str, Ledger]:
        """Who holds what of each pool, by its name: one pass over all pods."""
        return ledger(self)

    def free(self, name: str) -> Matrix:
        """What is free of one resource for the pods by row, admitted or not; never below 0, shape (rows,)."""
        column = self.view.column_of.get(name)
        if column is None or column >= len(self.view.free):
            return np.zeros(self.inventory.columns.rows, np.int64)
        free: Matrix = np.maximum(self.view.free[column], 0)
        return free

    def capacity(self, name: str) -> Matrix:
        """`status.capacity` of one resource by row, shape (rows,); 0 where there is no node."""
        rows = self.inventory.nodes.by_row[: self.inventory.columns.rows]
        found = np.zeros(self.inventory.columns.rows, np.int64)
        found[: len(rows)] = [0 if node is None else node.capacity.get(name, 0) for node in rows]
        return found
