# SPDX-License-Identifier: Apache-2.0
"""Who belongs to which gang, and whether a gang has its quorum.

A gang exists as soon as its PodGroup or its first member does, in either order. Members are keyed by UID,
so a replacement of the same name is another member. Assumptions: a pod's gang does not change while it
has a seat (the caller gives the seat back first); the PodGroup object that is there now rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.pod import Pod


class RollCall:
    """The members of one gang, counted once. Immutable; `Gang.roll` makes a new one after each change."""

    def __init__(self, key: GangKey, group: PodGroup | None, members: list[Pod], scheduler: str) -> None:
        self.key = key
        self.group = group
        self.members = members
        self._scheduler = scheduler

    @cached_property
    def minimum(self) -> int:
        """Members that must be there at once; 1 without a PodGroup."""
        return self.group.minimum if self.group else 1

    @cached_property
    def bound(self) -> list[Pod]:
        """Alive on a node, whoever placed them."""
        return [pod for pod in self.members if pod.node is not None and pod.alive]

    @cached_property
    def ready(self) -> list[Pod]:
        """Could be given a seat now; oldest first."""
        return sorted((p for p in self.members if p.ready and p.scheduler == self._scheduler), key=_age)

    @cached_property
    def gated_by_others(self) -> list[Pod]:
        """Alive and unbound, but held back by a gate that is not ours."""
        return sorted((p for p in self.members if p.alive and p.node is None and p.foreign_gates), key=_age)

    @cached_property
    def succeeded(self) -> int:
        """Members that finished well; they count only while another is bound and alive."""
        return sum(pod.phase == "Succeeded" for pod in self.members) if self.bound else 0

    @property
    def settled(self) -> int:
        """Members that need no seat any more: bound and alive, or counted as succeeded."""
        return len(self.bound) + self.succeeded

    @property
    def counted(self) -> int:
        """Members towards the quorum."""
        return self.settled + len(self.ready)

    @property
    def quorum(self) -> bool:
        """Whether the gang could run if all that are ready had seats."""
        return self.counted >= self.minimum

    @property
    def missing(self) -> int:
        """How many more must be bound before the gang has its minimum."""
        return max(0, self.minimum - self.settled)

    @property
    def wounded(self) -> bool:
        """Some members run, but fewer than the minimum: what they hold computes nothing."""
        return bool(self.bound) and self.missing > 0

    @cached_property
    def priority(self) -> int:
        """The lowest of its living members'."""
        return min((pod.priority for pod in self.members if pod.alive), default=0)

    @cached_property
    def priorities(self) -> set[int]:
        """All priorities among living members; more than one deserves a warning."""
        return {pod.priority for pod in self.members if pod.alive}

    @cached_property
    def created(self) -> int:
        """Unix seconds of the PodGroup, or of the pod of a gang of one."""
        if self.group is not None:
            return self.group.created
        return min((pod.created for pod in self.members), default=0)


class Gang:
    """One gang. `version` grows with every change of its members or its PodGroup."""

    def __init__(self, key: GangKey, scheduler: str) -> None:
        self.key = key
        self.group: PodGroup | None = None
        self.version = 0
        self._members: dict[PodUid, Pod] = {}
        self._scheduler = scheduler
        self._roll: RollCall | None = None

    @property
    def roll(self) -> RollCall:
        """The members as of now."""
        if self._roll is None:
            self._roll = RollCall(self.key, self.group, list(self._members.values()), self._scheduler)
        return self._roll

    @property
    def defined(self) -> bool:
        """Whether the minimum is known: the PodGroup exists, or none is needed."""
        return self.group is not None or self.key.api is GangApi.SINGLE

    def put(self, pod: Pod) -> None:
        """Add or replace a member."""
        self._members[pod.uid] = pod
        self._changed()

    def refresh(self, pod: Pod) -> None:
        """The same member with another outcome or nomination: no change of the gang."""
        self._members[pod.uid] = pod
        self._roll = None

    def drop(self, uid: PodUid) -> None:
        """Remove a member."""
        if self._members.pop(uid, None) is not None:
            self._changed()

    def define(self, group: PodGroup | None) -> None:
        """Set or remove the PodGroup. A change of status alone is no change of the gang."""
        before, self.group = self.group, group
        if _rule(before) != _rule(group):
            self._changed()
        elif self._roll is not None:
            self._roll.group = group

    def _changed(self) -> None:
        self.version += 1
        self._roll = None

    @property
    def empty(self) -> bool:
        """Neither PodGroup nor members: nothing to remember."""
        return self.group is None and not self._members


class GangTable:
    """All gangs by key."""

    def __init__(self, *, scheduler: str) -> None:
        self._gangs: dict[GangKey, Gang] = {}
        self._scheduler = scheduler

    def get(self, key: GangKey) -> Gang | None:
        """The gang, if any member or its PodGroup exists."""
        return self._gangs.get(key)

    def __iter__(self) -> Iterator[Gang]:
        return iter(self._gangs.values())

    def __len__(self) -> int:
        return len(self._gangs)

    def put(self, pod: Pod) -> None:
        """A pod is a member of the gang it names."""
        if pod.gang is not None:
            self._make(pod.gang).put(pod)

    def refresh(self, pod: Pod) -> None:
        """A member is newer in what does not concern its gang's quorum."""
        if pod.gang is not None:
            self._make(pod.gang).refresh(pod)

    def drop(self, pod: Pod) -> None:
        """A pod is no member any more."""
        if pod.gang is not None and (gang := self._gangs.get(pod.gang)) is not None:
            gang.drop(pod.uid)
            self._prune(gang)

    def define(self, key: GangKey, group: PodGroup | None) -> None:
        """A PodGroup appeared, changed or went."""
        gang = self._make(key)
        gang.define(group)
        self._prune(gang)

    def _make(self, key: GangKey) -> Gang:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(key, self._scheduler)
        return gang

    def _prune(self, gang: Gang) -> None:
        if gang.empty:
            self._gangs.pop(gang.key, None)


def _age(pod: Pod) -> tuple[int, str]:
    return pod.created, pod.name


def _rule(group: PodGroup | None) -> tuple[str, int, int | None] | None:
    return (group.uid, group.minimum, group.timeout_seconds) if group else None
