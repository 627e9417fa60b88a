# SPDX-License-Identifier: Apache-2.0
"""Rounds that remember come to what a round without memory comes to: every gang planned in order, each time.

Two inventories see the same random events. One is served by the rounds, the other by the few lines of
`Plain` below; seats and sentences must be the same after each step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import msgspec
import pytest

from app.domain.changes import Change
from app.domain.plan import Demand, Member, Plan
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import blocker, surplus
from app.extender.roster import Roster
from app.extender.rounds import Rounds
from app.extender.timing import Timing
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory
from app.inventory.reservations import Booking
from app.planner.plan import plan
from tests.builders import PodBuilder, gone, make_group, make_node, make_pod, seen

NODES = [f"n{n}" for n in range(6)]
STEPS = 60


class Plain:
    """Plans all, in order, until nothing comes of it any more."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory

    def run(self) -> None:
        while any(self._improve(gang) for gang in self.waiting()):
            pass

    def waiting(self) -> list[Gang]:
        found = [
            gang for gang in self.inventory.gangs
            if gang.defined and gang.roll.quorum and self.demand(gang) is not None
        ]  # fmt: skip
        return sorted(found, key=self._rank)

    def _rank(self, gang: Gang) -> tuple[object, ...]:
        first = gang.roll.wounded or 0 < self.inventory.book.count(gang.key) < gang.roll.missing
        return not first, -gang.roll.priority, gang.roll.created, gang.key

    def demand(self, gang: Gang) -> Demand | None:
        book, roll = self.inventory.book, gang.roll
        members = tuple(Member(p.uid, p.template) for p in roll.ready if book.get(p.uid) is None)
        if not members:
            return None
        need = min(max(1, roll.missing - book.count(gang.key)), len(members))
        return Demand(gang=gang.key, members=members, need=need, priority=roll.priority)

    def ask(self, gang: Gang) -> Plan | Refusal:
        demand = self.demand(gang)
        assert demand is not None
        return plan(self.inventory.view(priority=demand.priority, gang=gang.key), demand)

    def _improve(self, gang: Gang) -> bool:
        """Whether the gang has more seats now."""
        old = self.inventory.book.of(gang.key)
        verdict = self.ask(gang)
        if isinstance(verdict, Plan):
            self.inventory.reserve(verdict, extend=old[0].plan if old else None)
        elif 0 < len(old) < gang.roll.missing:
            return self._again(gang, old)
        return isinstance(verdict, Plan)

    def _again(self, gang: Gang, old: list[Booking]) -> bool:
        for booking in old:
            self.inventory.release(booking.uid)
        verdict = self.ask(gang)
        keep = Plan(gang=gang.key, seats=tuple(booking.seat for booking in old))
        self.inventory.reserve(verdict if isinstance(verdict, Plan) else keep)
        return isinstance(verdict, Plan)


class Fast:
    """The rounds, without anything that takes seats back. Is the admission and the leadership itself."""

    active = True

    def __init__(self, inventory: Inventory) -> None:
        self.now = 0.0
        self.inventory = inventory
        self.roster = Roster(inventory, clock=self.clock)
        timing = Timing(starvation_seconds=0)
        self.rounds = Rounds(
            inventory, self.roster, self, leadership=self, timing=timing, clock=self.clock  # type: ignore[arg-type]
        )  # fmt: skip

    def clock(self) -> float:
        return self.now

    async def confirm(self) -> bool:
        return True

    def admit(self, bookings: Iterable[Booking]) -> None: ...

    def withdraw(self, bookings: Iterable[Booking]) -> None: ...

    def release_gate(self, pod: Pod) -> None: ...

    def see(self, changes: list[Change]) -> None:
        for key in self.inventory.apply(changes).gangs:
            self.roster.lacks(key)
        for _ in range(6):
            self.rounds.run()


class Chaos:
    """A seeded source of events."""

    def __init__(self, seed: int, inventory: Inventory) -> None:
        self.random = random.Random(seed)
        self.inventory = inventory
        self.pods: dict[str, PodBuilder] = {}
        self.made = 0

    def begin(self) -> list[Change]:
        nodes = [make_node(name).gpus(self.random.choice([4, 8])).cpu("16") for name in NODES]
        return [seen(node.zone("ab"[n % 2])) for n, node in enumerate(nodes)]

    def step(self) -> list[Change]:
        kinds: list[Callable[[], list[Change]]] = [
            self.gang, self.gang, self.gang, self.bind, self.bind, self.finish, self.finish,
            self.lose_member, self.add_member, self.node, self.foreign, self.nominate,
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def _put(self, pod: PodBuilder) -> Change:
        self.pods[pod.get("metadata.name")] = pod
        return seen(pod)

    def _some(self, *, bound: bool) -> list[PodBuilder]:
        return [p for p in self.pods.values() if bool(p.get("spec.nodeName")) is bound]

    def _member(self, gang: str, priority: int) -> PodBuilder:
        self.made += 1
        pod = make_pod(f"{gang}-m{self.made}").gang(gang).gated().priority(priority)
        pod = pod.gpus(self.random.choice([1, 2, 4, 8])).cpu(self.random.choice(["1", "8"]))
        return pod.in_zone("a") if self.random.random() < 0.2 else pod

    def gang(self) -> list[Change]:
        self.made += 1
        name, size = f"g{self.made}", self.random.randint(1, 4)
        priority = self.random.choice([0, 0, 0, 5])
        group = make_group(name, size).created(f"2026-01-01T00:00:{self.random.randrange(60):02d}Z")
        members = [self._member(name, priority) for _ in range(size + self.random.choice([0, 0, 1, -1]))]
        if self.random.random() < 0.7:  # most gangs have members of one kind
            members = [members[0].named(m.get("metadata.name")).uid(m.get("metadata.name")) for m in members]
        return [seen(group), *(self._put(member) for member in members)]

    def bind(self) -> list[Change]:
        """All seats of a gang become pods on nodes."""
        keys = self.inventory.book.gangs()
        if not keys:
            return []
        names = [
            (self.inventory.pods[b.uid].name, b.node)
            for b in self.inventory.book.of(self.random.choice(keys))
        ]
        return [self._put(self.pods[name].ungated().on(node)) for name, node in names]

    def _gone(self, pods: list[PodBuilder]) -> list[Change]:
        return [gone(self.pods.pop(pod.get("metadata.name"))) for pod in pods]

    def finish(self) -> list[Change]:
        bound = self._some(bound=True)
        if not bound:
            return []
        gang = self.random.choice(bound).get("metadata.name").partition("-")[0]
        return self._gone([p for p in bound if p.get("metadata.name").partition("-")[0] == gang])

    def lose_member(self) -> list[Change]:
        pods = list(self.pods.values())
        return self._gone([self.random.choice(pods)]) if pods else []

    def add_member(self) -> list[Change]:
        gangs = sorted({name.partition("-")[0] for name in self.pods if name.startswith("g")})
        return [self._put(self._member(self.random.choice(gangs), 0))] if gangs else []

    def node(self) -> list[Change]:
        node = make_node(self.random.choice(NODES)).gpus(self.random.choice([0, 4, 8])).cpu("16").zone("a")
        return [seen(node.cordoned() if self.random.random() < 0.3 else node)]

    def foreign(self) -> list[Change]:
        self.made += 1
        pod = make_pod(f"x-{self.made}").gpus(self.random.choice([1, 4])).scheduler("other")
        return [self._put(pod.on(self.random.choice(NODES)))]

    def nominate(self) -> list[Change]:
        waiting = self._some(bound=False)
        if not waiting:
            return []
        return [self._put(self.random.choice(waiting).nominated(self.random.choice(NODES)))]


def booked(inventory: Inventory) -> dict[str, str]:
    return {booking.uid: booking.node for booking in inventory.book}


def told(plain: Plain, gang: Gang, known: Refusal) -> str:
    """Why the gang waits, made anew, except the count of seats: that is as of the last refusal."""
    verdict, demand = plain.ask(gang), plain.demand(gang)
    assert isinstance(verdict, Refusal)
    assert demand is not None
    exact = blocker(plain.inventory, demand, verdict)
    if exact.reason not in (Reason.NEVER_FITS, Reason.NO_PACKING):
        assert known.have >= exact.have, "free seats have only become fewer since"
        exact = msgspec.structs.replace(exact, have=known.have)
    return (exact if gang.roll.missing else surplus(exact)).text


@pytest.mark.parametrize("seed", range(30))
def test_seats_and_sentences_are_those_of_rounds_without_memory(seed: int) -> None:
    fast, plain = Fast(Inventory()), Plain(Inventory())
    chaos = Chaos(seed, fast.inventory)
    for step in range(STEPS):
        changes = chaos.begin() if step == 0 else chaos.step()
        fast.see(changes)
        plain.inventory.apply(changes)
        plain.run()
        assert booked(fast.inventory) == booked(plain.inventory), f"step {step}"
        fast.now += 100.0  # a sentence of the last step is too old to be repeated
        for gang in plain.waiting():
            why = fast.roster.refusal(gang.key)
            assert why.text == told(plain, gang, why), f"step {step}, {gang.key}"
