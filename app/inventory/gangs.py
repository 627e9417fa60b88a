# SPDX-License-Identifier: Apache-2.0
"""Who belongs to which gang, and whether a gang has its quorum.

A gang exists as soon as its PodGroup or its first member does, in either order. Members are keyed by UID,
so a replacement of the same name is another member. Assumptions: a pod's gang does not change while it
has a seat (the caller gives the seat back first); the PodGroup object that is there now rules; nobody keeps
a `Gang` for longer than it takes to look at, since a table that was copied changes no gang in place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.pod import Pod, seniority


class RollCall:
    """The members of one gang, counted as they come, change and go: nothing is counted anew for one of many.

    Only `Gang` calls the mutating methods.
    """

    def __init__(self, key: GangKey, scheduler: str) -> None:
        self.key = key
        self.group: PodGroup | None = None
        self._scheduler = scheduler
        self._members: dict[PodUid, Pod] = {}
        self._bound: dict[PodUid, Pod] = {}
        self._ready: dict[PodUid, Pod] = {}
        self._gated_by_others: dict[PodUid, Pod] = {}
        self._priorities: Counter[int] = Counter()
        self._finished_well = 0

    @property
    def members(self) -> list[Pod]:
        """All pods of the gang, dead or alive."""
        return list(self._members.values())

    @property
    def empty(self) -> bool:
        """Neither PodGroup nor members: nothing to remember."""
        return self.group is None and not self._members

    @property
    def minimum(self) -> int:
        """Members that must be there at once; 1 without a PodGroup."""
        return self.group.minimum if self.group else 1

    @property
    def bound(self) -> list[Pod]:
        """Alive on a node, whoever placed them."""
        return list(self._bound.values())

    @property
    def ready(self) -> list[Pod]:
        """Could be given a seat now; oldest first."""
        return sorted(self._ready.values(), key=seniority)

    def ready_but(self, uids: AbstractSet[PodUid]) -> list[Pod]:
        """Those of the ready that are not among `uids`; oldest first."""
        return sorted((self._ready[uid] for uid in self._ready.keys() - uids), key=seniority)

    @property
    def gated_by_others(self) -> list[Pod]:
        """Alive and unbound, but held back by a gate that is not ours."""
        return sorted(self._gated_by_others.values(), key=seniority)

    @property
    def succeeded(self) -> int:
        """Members that finished well; they count only while another is bound and alive."""
        return self._finished_well if self._bound else 0

    @property
    def settled(self) -> int:
        """Members that need no seat any more: bound and alive, or counted as succeeded."""
        return len(self._bound) + self.succeeded

    @property
    def counted(self) -> int:
        """Members towards the quorum."""
        return self.settled + len(self._ready)

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
        return bool(self._bound) and self.missing > 0

    @property
    def priority(self) -> int:
        """The lowest of its living members'."""
        return min(self._priorities, default=0)

    @property
    def priorities(self) -> set[int]:
        """All priorities among living members; more than one deserves a warning."""
        return set(self._priorities)

    @property
    def created(self) -> int:
        """Unix seconds of the PodGroup, or of the pod of a gang of one."""
        if self.group is not None:
            return self.group.created
        return min((pod.created for pod in self._members.values()), default=0)

    def copy(self) -> RollCall:
        """The same as of now."""
        copy = RollCall(self.key, self._scheduler)
        copy.group = self.group
        copy._members, copy._bound = self._members.copy(), self._bound.copy()
        copy._ready, copy._gated_by_others = self._ready.copy(), self._gated_by_others.copy()
        copy._priorities, copy._finished_well = self._priorities.copy(), self._finished_well
        return copy

    def put(self, pod: Pod) -> None:
        """Count a member as it is now."""
        self._discount(self._members.get(pod.uid))
        self._members[pod.uid] = pod
        if pod.phase == "Succeeded":
            self._finished_well += 1
        if not pod.alive:
            return
        self._priorities[pod.priority] += 1
        if pod.node is not None:
            self._bound[pod.uid] = pod
        elif pod.foreign_gates:
            self._gated_by_others[pod.uid] = pod
        elif pod.scheduler == self._scheduler:
            self._ready[pod.uid] = pod

    def drop(self, uid: PodUid) -> bool:
        """A member is gone; whether it was one."""
        before = self._members.pop(uid, None)
        self._discount(before)
        return before is not None

    def _discount(self, pod: Pod | None) -> None:
        if pod is None:
            return
        for kind in (self._bound, self._ready, self._gated_by_others):
            kind.pop(pod.uid, None)
        if pod.phase == "Succeeded":
            self._finished_well -= 1
        if pod.alive:
            self._priorities[pod.priority] -= 1
            if not self._priorities[pod.priority]:
                del self._priorities[pod.priority]


class Gang:
    """One gang. `version` grows with every change of its members or its PodGroup.

    `copies` is how many copies of its table there were when it was made: it is in all that were made since.
    """

    def __init__(self, roll: RollCall, *, version: int = 0, copies: int = 0) -> None:
        self.key = roll.key
        self.version = version
        self.copies = copies
        self.roll = roll
        """The members as of now."""

    @property
    def group(self) -> PodGroup | None:
        """Its PodGroup, if there is one."""
        return self.roll.group

    @property
    def defined(self) -> bool:
        """Whether the minimum is known: the PodGroup exists, or none is needed."""
        return self.group is not None or self.key.api is GangApi.SINGLE

    def put(self, pod: Pod) -> None:
        """Add or replace a member."""
        self.roll.put(pod)
        self.version += 1

    def refresh(self, pod: Pod) -> None:
        """The same member with another outcome or nomination: no change of the gang."""
        self.roll.put(pod)

    def drop(self, uid: PodUid) -> None:
        """Remove a member."""
        if self.roll.drop(uid):
            self.version += 1

    def define(self, group: PodGroup | None) -> None:
        """Set or remove the PodGroup. A change of status alone is no change of the gang."""
        before, self.roll.group = self.roll.group, group
        if _rule(before) != _rule(group):
            self.version += 1


class GangTable:
    """All gangs by key."""

    def __init__(self, *, scheduler: str) -> None:
        self._gangs: dict[GangKey, Gang] = {}
        self._scheduler = scheduler
        self._copies = 0

    def copy(self) -> GangTable:
        """The same as of now; costs little, whoever changes a gang afterwards pays for that one."""
        copy = GangTable(scheduler=self._scheduler)
        copy._gangs = self._gangs.copy()
        copy._copies = self._copies = self._copies + 1
        return copy

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
        if pod.gang is not None and pod.gang in self._gangs:
            gang = self._make(pod.gang)
            gang.drop(pod.uid)
            self._prune(gang)

    def define(self, key: GangKey, group: PodGroup | None) -> None:
        """A PodGroup appeared, changed or went."""
        gang = self._make(key)
        gang.define(group)
        self._prune(gang)

    def _make(self, key: GangKey) -> Gang:
        """The gang, to be changed: a new one if there is none, or if a copy of the table has it too."""
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = Gang(RollCall(key, self._scheduler), copies=self._copies)
        elif gang.copies != self._copies:
            gang = self._gangs[key] = Gang(gang.roll.copy(), version=gang.version, copies=self._copies)
        return gang

    def _prune(self, gang: Gang) -> None:
        if gang.roll.empty:
            self._gangs.pop(gang.key, None)


def _rule(group: PodGroup | None) -> tuple[str, int, int | None] | None:
    return (group.uid, group.minimum, group.timeout_seconds) if group else None
