# SPDX-License-Identifier: Apache-2.0
"""Plays kube-scheduler against an extender in the same process, in virtual time: no HTTP, sleep or thread.

Decides whose turn it is, when a refused pod is tried again, and when nothing is left to happen. What an
attempt is, `scheduling` says; who gets a seat, the extender. Nothing finishes here and nobody is evicted.
Equal input gives equal output: queues are ordered, and time passes only when nothing is left to do now.

    instant:  extender ticks ─▶ each queued pod has its turn ─▶ again, until nothing changes
    later:    a second passes (some, when all is still) ─▶ refused pods queue again if anything has changed
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Protocol

import orjson

from app.domain.changes import Change
from app.domain.ids import NodeName, PodUid
from app.domain.plan import PodRef
from app.domain.pod import SCHEDULER, Pod
from app.simulate.cluster import SnapshotCluster
from app.simulate.scheduling import Cache, Call, Order, Verdict, attempt, binding, order, with_failure

TURNS: Final = 12
"""Turns of the event loop without a change after which nothing more happens at this instant."""

BACKOFF_SECONDS: Final = 1.0
"""A refused pod is tried again no sooner, as in deploy/scheduler-config.yaml."""

STEP_SECONDS: Final = 1.0
STILL_SECONDS: Final = 10.0
LONG_STEP_SECONDS: Final = 5.0
"""The step once nothing has changed for STILL_SECONDS."""

QUIET_SECONDS: Final = 150.0
"""Nothing has changed for longer than Muster's longest pause between two tries, and than a seat may idle."""

LIMIT_SECONDS: Final = 3600.0
"""Virtual time that is played at most."""


class Extender(Protocol):
    """What the driver needs of Muster's service."""

    def observe(self, changes: Iterable[Change]) -> None:
        """The watch shows this."""
        ...

    def tick(self) -> None:
        """Time has passed."""
        ...

    async def filter(self, body: bytes) -> bytes:
        """ExtenderArgs → ExtenderFilterResult."""
        ...

    async def prioritize(self, body: bytes) -> bytes:
        """ExtenderArgs → HostPriorityList."""
        ...

    async def bind_call(self, body: bytes) -> bytes:
        """ExtenderBindingArgs → ExtenderBindingResult; held at the barrier."""
        ...


class Clock:
    """Virtual time, in seconds since the snapshot."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time now."""
        return self.now


class Bound(NamedTuple):
    """A pod came to a node, so many seconds after the snapshot."""

    pod: Pod
    node: NodeName
    seconds: float


class Driver:
    """One kube-scheduler. `bound` is in order; `refusals` has the text of each pod's last failed attempt."""

    def __init__(
        self, cluster: SnapshotCluster, extender: Extender, clock: Clock, *, scheduler: str = SCHEDULER
    ) -> None:
        self._cluster = cluster
        self._extender = extender
        self.clock = clock
        self._queue: list[tuple[Order, PodUid]] = []
        self._queued: set[PodUid] = set()
        self._refused: dict[PodUid, tuple[float, int]] = {}
        self._held: set[asyncio.Task[None]] = set()
        self._events = 0
        self._recording = False
        self._moved_at = 0.0
        self.cache = Cache(scheduler=scheduler)
        self.bound: list[Bound] = []
        self.refusals: dict[PodUid, str] = {}
        cluster.deliver = self._deliver

    @property
    def seconds(self) -> float:
        """When the last change was, in virtual time."""
        return self._moved_at

    @property
    def gave_up(self) -> bool:
        """Whether things still changed at the end of the time that is played."""
        return self.clock.now >= LIMIT_SECONDS

    def begin(self) -> None:
        """Show the snapshot to both sides; needs a running loop."""
        self._deliver(self._cluster.initial())
        self.bound.clear()  # what the snapshot has bound is not our doing

    async def run(self, *, until_quiet: bool) -> None:
        """Let everything happen that happens at once; `until_quiet`, also what happens later."""
        await self._instant()
        while until_quiet and not self._quiet():
            still = self.clock.now - self._moved_at >= STILL_SECONDS
            self.clock.now += LONG_STEP_SECONDS if still else STEP_SECONDS
            self._requeue()
            await self._instant()

    def _quiet(self) -> bool:
        if self.gave_up:
            return True
        return not self._held and self.clock.now - self._moved_at >= QUIET_SECONDS

    # -- one instant

    async def _instant(self) -> None:
        seen = -1
        while seen != self._events:
            seen = self._events
            self._extender.tick()
            await self._settle()
            while self._queue:
                _, uid = heappop(self._queue)
                self._queued.discard(uid)
                pod = self.cache.pods.get(uid)
                if pod is not None and self.cache.pending(pod):
                    await self._turn(pod)
                    await self._settle()

    async def _settle(self) -> None:
        """Let the loop turn until nothing moves."""
        still, seen = 0, self._events
        while still < TURNS:
            await asyncio.sleep(0)
            still, seen = (still + 1, seen) if seen == self._events else (0, self._events)

    async def _turn(self, pod: Pod) -> None:
        raw = self._cluster.find(_ref(pod))
        assert raw is not None, "who is in the cache is in the cluster"
        verdict = await self._answered(attempt(self.cache, pod, raw))
        if verdict.node is None:
            self._failed(pod, verdict.why)
            return
        self.cache.assume(pod, verdict.node)
        task = asyncio.ensure_future(self._bind(pod, verdict.node))
        self._held.add(task)
        task.add_done_callback(self._held.discard)

    async def _answered(self, steps: Generator[Call, Any, Verdict]) -> Verdict:
        verbs = {"filter": self._extender.filter, "prioritize": self._extender.prioritize}
        try:
            call = next(steps)
            while True:
                call = steps.send(orjson.loads(await verbs[call.verb](orjson.dumps(call.body))))
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict

    async def _bind(self, pod: Pod, node: NodeName) -> None:
        answer = orjson.loads(await self._extender.bind_call(orjson.dumps(binding(pod, node).body)))
        if answer["Error"]:
            self.cache.forget(pod.uid)
            self._failed(pod, answer["Error"])

    # -- the queue

    def _failed(self, pod: Pod, why: str) -> None:
        """Record a failed attempt on the pod, and try again after the next change."""
        self._refused[pod.uid] = (self.clock.now + BACKOFF_SECONDS, self._events)
        raw = self._cluster.find(_ref(pod))
        if raw is None or self.refusals.get(pod.uid) == why:
            return
        self.refusals[pod.uid] = why
        self._recording = True
        self._cluster.apply_events([{"type": "MODIFIED", "object": with_failure(raw, why)}])
        self._recording = False

    def _requeue(self) -> None:
        """Refused pods whose backoff is over, if there has been an event since: without one the answer would
        be the same."""
        for uid, (due, seen) in list(self._refused.items()):
            if due <= self.clock.now and seen != self._events:
                del self._refused[uid]
                self._enqueue(uid)

    def _enqueue(self, uid: PodUid) -> None:
        if uid in self._queued or uid in self._refused:
            return
        pod = self.cache.pods.get(uid)
        if pod is not None and self.cache.pending(pod):
            self._queued.add(uid)
            heappush(self._queue, (order(pod), uid))

    def _deliver(self, changes: list[Change]) -> None:
        """The cluster has changed: both sides see it."""
        pods = [change.value for change in changes if isinstance(change.value, Pod)]
        for pod in pods:
            before = self.cache.pods.get(pod.uid)
            if pod.node is not None and (before is None or before.node is None):
                self.bound.append(Bound(pod, pod.node, self.clock.now))
        self.cache.observe(changes)
        for pod in pods:
            self._enqueue(pod.uid)
        if not self._recording:
            self._events += 1
            self._moved_at = self.clock.now
        self._extender.observe(changes)


def _ref(pod: Pod) -> PodRef:
    return PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid)
