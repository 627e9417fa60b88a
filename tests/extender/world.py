# SPDX-License-Identifier: Apache-2.0
"""A small world around the service: a cluster whose watch lags, a binder that may fail, and virtual time.

The cluster is the embedded one (`app.simulate`), which the conformance cases drive as well; here its events
wait until the test lets the service see them. Everything runs on one loop that is stepped by hand.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

import orjson

from app.domain.changes import Change
from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from app.domain.pod import Pod
from app.extender.service import Service
from app.extender.timing import Timing
from app.inventory.inventory import Inventory
from app.simulate.cluster import SnapshotCluster
from tests.builders import GPU, Builder, Json

T = TypeVar("T")
STEPS = 12
"""Turns of the loop after which nothing is left to do without the world's help."""


class World:
    """`now` is the clock. `fail_next` makes the next POST fail: "before" or "after" it took effect.
    With `bursts` there is an admission policy that can be told of one."""

    def __init__(
        self, *objects: Builder, timing: Timing | None = None, lag: bool = False, bursts: bool = False
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.now = 1000.0
        self.fail_next = ""
        self.lag = lag
        self.active = True
        self.problems: list[str] = []
        self.unseen: deque[list[Change]] = deque()
        self.observed: dict[str, Pod] = {}
        self.posted: dict[str, NodeName] = {}
        self.wrong: list[str] = []
        self.gates_left_off: list[bool] = []
        self.burst_outcome = Outcome()
        self.burst_heard: asyncio.Event | None = None
        self.cluster = SnapshotCluster([builder.build() for builder in objects])
        self.cluster.deliver = self._arrive
        self.service = Service(
            inventory=Inventory(),
            binder=_Binder(self),
            admitter=self.cluster,
            reporter=self.cluster,
            leadership=self,
            problems=lambda: self.problems,
            clock=lambda: self.now,
            timing=timing or Timing(seen_seconds=0.0),
            gatekeeper=self if bursts else None,
        )
        self.run(self._observe(self.cluster.initial()))
        self.tick()

    # -- time and the watch

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop, then let everything settle."""
        result = self.loop.run_until_complete(work)
        self.idle()
        return result

    def idle(self) -> None:
        """Let the loop turn until nothing moves."""

        async def turn() -> None:
            for _ in range(STEPS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())

    def tick(self, seconds: float = 0.0) -> None:
        """Time passes, in the service's own steps of at most a second."""
        end = self.now + seconds
        while True:
            self.now = min(end, self.now + 1.0)
            self.run(self._tick())
            if self.now >= end:
                return

    async def _tick(self) -> None:
        self.service.tick()

    def _arrive(self, changes: list[Change]) -> None:
        self.unseen.append(changes)
        if not self.lag:
            self.loop.call_soon(self.see)

    def see(self, batches: int = 1_000_000) -> None:
        """The service's watch catches up by some batches."""
        while self.unseen and batches:
            self._mirror(changes := self.unseen.popleft())
            if self.loop.is_running():
                self.service.observe(changes)
            else:
                self.run(self._observe(changes))
            batches -= 1

    async def _observe(self, changes: list[Change]) -> None:
        self._mirror(changes)
        self.service.observe(changes)

    def _mirror(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change.value, Pod):
                self.observed.pop(change.value.uid, None)
                if not change.gone:
                    self.observed[change.value.uid] = change.value
                self.posted.pop(change.value.uid, None)

    # -- what happens in the cluster

    def put(self, builder: Builder) -> None:
        """Create or change an object."""
        self.apply("MODIFIED", builder.build())

    def remove(self, builder: Builder) -> None:
        """Delete an object."""
        self.apply("DELETED", builder.build())

    def apply(self, kind: str, obj: Json) -> None:
        """One watch event."""
        self.cluster.apply_events([{"type": kind, "object": obj}])
        self.idle()

    def get(self, kind: str, name: str) -> Json:
        """An object of the cluster as it is."""
        return next(o for o in self.objects(kind) if o["metadata"]["name"] == name)

    def objects(self, kind: str) -> list[Json]:
        """All objects of a kind."""
        return [item for item in self.cluster.as_list()["items"] if item["kind"] == kind]

    def node_of(self, name: str) -> str | None:
        """spec.nodeName of a pod."""
        node: str | None = self.get("Pod", name)["spec"].get("nodeName")
        return node

    # -- what kube-scheduler asks

    def filter(self, name: str, nodes: list[str]) -> Json:
        """The filter verb about a pod as the cluster holds it."""
        body = orjson.dumps({"Pod": self.get("Pod", name), "Nodes": None, "NodeNames": nodes})
        answer: Json = orjson.loads(self.run(self.service.filter(body)))
        return answer

    def bind(self, name: str, node: str, *, uid: str | None = None) -> asyncio.Task[bytes]:
        """The bind verb; the answer may take its time."""
        task = self.bind_soon(name, node, uid=uid)
        self.idle()
        return task

    def bind_soon(self, name: str, node: str, *, uid: str | None = None) -> asyncio.Task[bytes]:
        """The same, when the loop turns next."""
        meta = self.get("Pod", name)["metadata"]
        args = {
            "PodName": name,
            "PodNamespace": meta["namespace"],
            "PodUID": uid or meta["uid"],
            "Node": node,
        }
        return self.loop.create_task(self.service.bind_call(orjson.dumps(args)))

    @staticmethod
    def error(task: asyncio.Task[bytes]) -> str | None:
        """The error of a bind call, empty for success, None while it is held."""
        return orjson.loads(task.result())["Error"] if task.done() else None

    # -- ports: gatekeeper, binder and leadership

    async def leave_gates_off(self, off: bool) -> Outcome:
        """A label on the ConfigMap."""
        self.gates_left_off.append(off)
        if self.burst_heard is not None:
            await self.burst_heard.wait()
        return self.burst_outcome

    async def post(self, pod: PodRef, node: NodeName) -> Outcome:
        """POST pods/binding, with the judgement that it over-commits nothing observed by now."""
        self._judge(pod, node)
        fail, self.fail_next = self.fail_next, ""
        if fail == "before":
            return Outcome(error="the API server did not answer")
        outcome = await self.cluster.bind(pod, node)
        if outcome.ok:
            self.posted[pod.uid] = node
        if fail == "after":
            return Outcome(error="the answer was lost")
        return outcome

    async def confirm(self) -> bool:
        """Leadership."""
        return self.active

    def _judge(self, pod: PodRef, node: NodeName) -> None:
        here = [p for p in self.observed.values() if p.node == node and not p.finished and p.uid != pod.uid]
        ours = [uid for uid, where in self.posted.items() if where == node and uid != pod.uid]
        known: dict[str, Pod] = {p.uid: p for p in self.observed.values()}
        used = sum(gpus(p) for p in [*here, *(known[uid] for uid in ours if uid in known)])
        asked = known.get(pod.uid)
        row = self.service.inventory.columns.row_of[node]
        total = self.service.inventory.columns.cell(GPU, row)[0]
        if asked is not None and gpus(asked) and used + gpus(asked) > total:
            self.wrong.append(f"{pod.name} on {node}: {used} used, {gpus(asked)} asked, {total} there")

    def close(self) -> None:
        """Stop the service and the loop."""
        self.run(self.service.stop())
        self.loop.close()


class _Binder:
    def __init__(self, world: World) -> None:
        self._world = world

    async def bind(self, pod: PodRef, node: NodeName) -> Outcome:
        return await self._world.post(pod, node)


def gpus(pod: Pod) -> int:
    """GPUs a pod requests."""
    return dict(pod.template.requests).get(GPU, 0)
