# SPDX-License-Identifier: Apache-2.0
"""Any order of filter, bind, watch events, losses and timeouts: the invariants of the design hold.

no node is over-committed by a binding of ours, as far as it was observed by then
reserved amounts are the sum of the bookings, and nothing stays reserved that nobody can use
at rest a gang has 0 or at least `min` bound members, unless one was taken away after it was bound, a
    binding of it failed, or it changed unseen before one
when the scheduler plays fair again, every gang that fits runs whole, halves as well
"""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import Phase as How
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from app.domain.changes import Change
from app.domain.gang import PodGroup
from app.domain.ids import NodeName, PodUid
from app.domain.plan import Outcome, Plan, PodRef
from app.domain.pod import Pod
from app.domain.reasons import Reason
from app.extender.timing import Timing
from app.inventory.gangs import Gang
from app.inventory.reservations import Phase
from app.planner.plan import plan
from tests.builders import PodBuilder, make_group, make_node, make_pod
from tests.extender.world import World

GANGS = ("g0", "g1", "g2")
NODES = ("n0", "n1", "n2")
SIZES = st.sampled_from([1, 1, 2, 3])
FAILURES = st.integers(0, 19).map(lambda roll: {18: "before", 19: "after"}.get(roll, ""))
OFFERS = st.one_of(st.just(list(NODES)), st.just(list(NODES)), st.lists(st.sampled_from(NODES), unique=True))


class Witness(World):
    """Remembers in `halves` the gangs that may be bound in part without a fault of ours."""

    def __init__(self) -> None:
        self.halves: set[str] = set()
        super().__init__(lag=True, timing=Timing(seen_seconds=0.0, starvation_seconds=10.0))

    async def post(self, pod: PodRef, node: NodeName) -> Outcome:
        """A binding that fails leaves its gang in halves. So may one that is sent before the watch has shown
        that the minimum was raised, or that a member went: nobody can know of it yet."""
        gang = gang_of(pod.name)
        unseen = [change for changes in self.unseen for change in changes]
        outcome = await super().post(pod, node)
        if not outcome.ok or any(shrinks(change, gang) for change in unseen):
            self.halves.add(gang)
        return outcome


def gang_of(name: str) -> str:
    """The gang of a pod, by its name."""
    return name.partition("-")[0]


def shrinks(change: Change, gang: str) -> bool:
    """Whether a gang needs more than before, or has less."""
    if isinstance(change.value, PodGroup):
        return change.value.key.name == gang
    return isinstance(change.value, Pod) and gang_of(change.value.name) == gang and (
        change.gone or not change.value.alive
    )  # fmt: skip


class AnyOrder(RuleBasedStateMachine):
    """kube-scheduler, the API server and the users, all at their worst."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Witness()
        self.made = 0
        self.assumed: dict[str, str] = {}
        self.calls: dict[str, asyncio.Task[bytes]] = {}
        self.builders: dict[str, PodBuilder] = {}

    @initialize(
        sizes=st.lists(st.integers(1, 6), min_size=3, max_size=3),
        members=st.lists(
            st.tuples(st.integers(1, 4), st.integers(0, 1), st.booleans()), min_size=3, max_size=3
        ),
    )
    def begin(self, sizes: list[int], members: list[tuple[int, int, bool]]) -> None:
        """Three nodes and three gangs that are complete or nearly so."""
        for name, size in zip(NODES, sizes, strict=True):
            self.world.put(make_node(name).gpus(size))
        for gang, (count, short, gated) in zip(GANGS, members, strict=True):
            self.group(gang, count + short)
            for _ in range(count):
                self.member(gang, 1, gated, 0)
        self.world.see()

    # -- users

    @rule(gang=st.sampled_from(GANGS), minimum=st.integers(1, 4))
    def group(self, gang: str, minimum: int) -> None:
        if 0 < self.bound(gang) < minimum:
            self.world.halves.add(gang)  # it runs, and needs more from now on
        self.world.put(make_group(gang, min_member=minimum))

    @rule(gang=st.sampled_from(GANGS))
    def no_group(self, gang: str) -> None:
        if any(g["metadata"]["name"] == gang for g in self.world.objects("PodGroup")):
            self.world.remove(make_group(gang))

    @rule(gang=st.sampled_from(GANGS), gpus=SIZES, gated=st.booleans(), priority=st.sampled_from([0, 0, 5]))
    def member(self, gang: str, gpus: int, gated: bool, priority: int) -> None:
        self.made += 1
        pod = make_pod(f"{gang}-{self.made}").gpus(gpus).gang(gang).priority(priority)
        self.create(pod.gated() if gated else pod)

    @rule(gpus=SIZES)
    def ordinary(self, gpus: int) -> None:
        self.made += 1
        self.create(make_pod(f"single-{self.made}").gpus(gpus))

    @rule(gpus=SIZES, node=st.sampled_from(NODES))
    def foreign(self, gpus: int, node: str) -> None:
        self.made += 1
        self.create(make_pod(f"foreign-{self.made}").gpus(gpus).scheduler("other").on(node))

    @precondition(lambda self: self.builders)
    @rule(data=st.data(), how=st.sampled_from(["DELETED", "Succeeded", "Failed"]))
    def end(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.builders)))
        pod = self.world.get("Pod", name)
        if pod["spec"].get("nodeName"):
            self.world.halves.add(gang_of(name))
        if how != "DELETED":
            pod = {**pod, "status": {**pod["status"], "phase": how}}
        self.world.apply(how if how == "DELETED" else "MODIFIED", pod)
        del self.builders[name]
        self.assumed.pop(name, None)

    @rule(node=st.sampled_from(NODES), gpus=st.integers(0, 8), cordoned=st.booleans())
    def node(self, node: str, gpus: int, cordoned: bool) -> None:
        made = make_node(node).gpus(gpus)
        self.world.put(made.cordoned() if cordoned else made)

    # -- kube-scheduler

    @precondition(lambda self: self.pending())
    @rule(data=st.data(), offered=OFFERS)
    def filter(self, data: st.DataObject, offered: list[str]) -> None:
        self.ask(data.draw(st.sampled_from(self.pending())), offered)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data(), fail=FAILURES)
    def bind(self, data: st.DataObject, fail: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.assumed)))
        self.post(name, fail)

    @precondition(lambda self: self.assumed)
    @rule(data=st.data())
    def drop_after_filter(self, data: st.DataObject) -> None:
        del self.assumed[data.draw(st.sampled_from(sorted(self.assumed)))]

    @precondition(lambda self: self.pending())
    @rule(fail=FAILURES)
    def schedule_all(self, fail: str) -> None:
        """Every pod that waits is tried once and bound at once, as in a quiet moment."""
        for name in self.pending():
            if self.ask(name, list(NODES)):
                self.post(name, fail)

    # -- the watch and time

    @rule(batches=st.sampled_from([1, 2, 100]))
    def see(self, batches: int) -> None:
        self.world.see(batches)

    @rule(seconds=st.sampled_from([1, 6, 20, 61]))
    def wait(self, seconds: int) -> None:
        self.world.tick(seconds)

    @rule()
    def lose_the_lease_for_a_moment(self) -> None:
        self.world.active = False
        self.world.tick()
        self.world.active = True
        self.world.tick()

    # -- what must hold

    @invariant()
    def nothing_over_committed(self) -> None:
        assert not self.world.wrong, self.world.wrong

    @invariant()
    def no_leaked_reservation(self) -> None:
        inventory = self.world.service.inventory
        columns = inventory.columns
        expected = {name: np.zeros(columns.rows, np.int64) for name in columns.column_of}
        for booking in inventory.book:
            assert booking.vacant or PodUid(booking.uid) in inventory.pods, "a seat without a pod"
            for name, amount in booking.template.requests:
                expected[name][booking.row] += amount
        for name, amounts in expected.items():
            assert (columns.reserved(name) == amounts).all(), name

    @invariant()
    def held_calls_have_seats(self) -> None:
        barrier = self.world.service.bind.barrier
        for key in barrier.gangs():
            for held in barrier.of(key):
                booking = self.world.service.inventory.book.get(held.uid)
                assert booking is not None and booking.phase is Phase.HELD

    def teardown(self) -> None:
        try:
            self.come_to_rest()
        finally:
            self.world.close()

    def come_to_rest(self) -> None:
        """The watch catches up, nobody calls any more, all deadlines pass; then the scheduler plays fair."""
        self.world.see()
        self.world.lag = False
        self.assumed.clear()
        self.world.tick(400)
        assert all(call.done() for call in self.calls.values()), "a bind call is held for ever"
        book = self.world.service.inventory.book
        for key in book.gangs():  # half a gang keeps what it lacks as long as one of its own has a seat, too
            assert not all(seat.vacant for seat in book.of(key)), "kept for nobody"
        self.judge_all()
        self.play_fair()

    def judge_all(self) -> None:
        self.nothing_over_committed()
        for gang in GANGS:
            if gang not in self.world.halves:
                self.judge(gang)

    def judge(self, gang: str) -> None:
        group = [g for g in self.world.objects("PodGroup") if g["metadata"]["name"] == gang]
        minimum = group[0]["spec"]["minMember"] if group else 0
        bound = self.bound(gang)
        assert bound == 0 or bound >= minimum, f"{gang}: {bound} of {minimum} bound at rest"

    def play_fair(self) -> None:
        for _ in range(12):
            for name in self.pending():
                if self.ask(name, list(NODES)):
                    self.post(name)
            self.world.tick(10)
        self.judge_all()
        for known in self.world.service.inventory.gangs:
            if known.defined and known.roll.quorum and known.roll.missing:
                self.judge_waiting(known)

    def judge_waiting(self, gang: Gang) -> None:
        roster, inventory = self.world.service.roster, self.world.service.inventory
        refusal = roster.refusal(gang.key)
        assert refusal.reason.code != "Pending", f"{gang.key} waits without a reason"
        demand = roster.claim(gang).demand
        assert demand is not None, f"{gang.key} waits although it has all its seats"
        fits = isinstance(plan(inventory.view(priority=demand.priority, gang=gang.key), demand), Plan)
        assert not fits or refusal.reason in (Reason.BEHIND, Reason.BACKOFF), f"{gang.key} fits: {refusal}"

    # -- helpers

    def create(self, pod: PodBuilder) -> None:
        self.builders[pod.build()["metadata"]["name"]] = pod
        self.world.put(pod)

    def post(self, name: str, fail: str = "") -> None:
        self.world.fail_next = fail
        self.calls[name] = self.world.bind(name, self.assumed.pop(name))
        self.world.fail_next = ""

    def pending(self) -> list[str]:
        names = []
        for pod in self.world.objects("Pod"):
            name, spec = pod["metadata"]["name"], pod["spec"]
            call = self.calls.get(name)
            waits = (
                not spec.get("nodeName")
                and not spec.get("schedulingGates")
                and spec["schedulerName"] == "muster"
            )
            alive = pod["status"].get("phase") in (None, "Pending")
            if waits and alive and name not in self.assumed and (call is None or call.done()):
                names.append(name)
        return sorted(names)

    def ask(self, name: str, offered: list[str]) -> bool:
        answer: dict[str, Any] = self.world.filter(name, offered)
        assert not answer["Error"], answer
        assert set(answer["NodeNames"]) <= set(offered)
        refused = {**answer["FailedNodes"], **answer["FailedAndUnresolvableNodes"]}
        assert not set(answer["NodeNames"]) & set(refused)
        if answer["NodeNames"]:
            self.assumed[name] = answer["NodeNames"][0]
        return bool(answer["NodeNames"])

    def bound(self, gang: str) -> int:
        pods = [p for p in self.world.objects("Pod") if p["metadata"]["name"].startswith(f"{gang}-")]
        return sum(bool(p["spec"].get("nodeName")) and p["status"].get("phase") != "Failed" for p in pods)


RUNS = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    phases=[How.generate],  # add How.shrink to look into a failure: it takes minutes
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("number", range(3))
def test_any_order(number: int) -> None:
    """Seeds of our own: what is tried depends on no other line of this file. More of them find more."""
    run_state_machine_as_test(seed(number)(type("AnyOrder", (AnyOrder,), {})), settings=RUNS)
