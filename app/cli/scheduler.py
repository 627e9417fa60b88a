# SPDX-License-Identifier: Apache-2.0
"""A stand-in for kube-scheduler that drives a `muster serve --snapshot` over HTTP, for `muster demo`.

Takes the first pod of its name that has no gate, attempts it as the real one does (`simulate.scheduling`),
binds in the background, and records a failed attempt on the pod. Decides nothing but whose turn it is.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from app.cli.client import Client, NoAnswerError
from app.codec.objects import ObjectDecoder
from app.codec.snapshot import JsonObject, items_of, value_of
from app.domain.changes import Change, Value
from app.domain.ids import NodeName, PodUid
from app.domain.node import Node
from app.domain.pod import SCHEDULER, Pod
from app.domain.resources import Amounts, add
from app.simulate.scheduling import Cache, Verdict, attempt, binding, order, with_failure

BIND_SECONDS: Final = 60.0
"""The bind call waits at the barrier: its limit is the long one, as in deploy/scheduler-config.yaml."""

BACKOFF_SECONDS: Final = 0.2
"""A refused pod is tried again after this; kube-scheduler's shortest is a second."""

IDLE_SECONDS: Final = 0.05


class View(msgspec.Struct):
    """The cluster as one GET /snapshot shows it. `events` is the latest event text by pod UID."""

    items: list[JsonObject]
    pods: dict[PodUid, Pod]
    raw: dict[PodUid, JsonObject]
    nodes: list[Node]
    events: dict[PodUid, str]

    def taken(self) -> dict[NodeName, Amounts]:
        """What bound pods take from each node."""
        taken: dict[NodeName, Amounts] = {}
        for pod in self.pods.values():
            if pod.node is not None and not pod.finished:
                add(taken.setdefault(pod.node, {}), dict(pod.template.requests))
        return taken


def view_of(data: bytes) -> View:
    """Decode a v1 List. Raises `InputError` for one that is not."""
    decoder = ObjectDecoder()
    view = View(items=items_of(data, source="GET /snapshot"), pods={}, raw={}, nodes=[], events={})
    for item in view.items:
        value = value_of(decoder, item)
        if isinstance(value, Pod):
            view.pods[value.uid], view.raw[value.uid] = value, item
        elif isinstance(value, Node):
            view.nodes.append(value)
        elif item.get("kind") == "Event":
            view.events[PodUid(item["involvedObject"]["uid"])] = item["message"]
    return view


class StandIn:
    """One scheduler with one queue. `refusals` is the text of each pod's last failed attempt."""

    def __init__(self, client: Client, *, name: str = SCHEDULER) -> None:
        self._client = client
        self._cache = Cache(scheduler=name)
        self._seen: dict[str, Value] = {}
        self._binding: set[PodUid] = set()
        self._answers: queue.SimpleQueue[tuple[PodUid, str]] = queue.SimpleQueue()
        self._not_before: dict[PodUid, float] = {}
        self._moved = 0.0
        self.refusals: dict[PodUid, str] = {}

    def run(self, done: Callable[[View], bool], *, settle: float, limit: float) -> View:
        """Schedule until `done` and nothing has moved for `settle` seconds, at most `limit` seconds."""
        began = self._moved = time.monotonic()
        seen = b""
        while True:
            data, now = self._client.get("/snapshot"), time.monotonic()
            if data != seen:
                seen, self._moved = data, now
            view = view_of(data)
            self._observe(view)
            settled = not self._binding and now - self._moved >= settle and done(view)
            if settled or now - began >= limit:
                return view
            pod = self._next(now)
            if pod is None:
                self._reap(wait=IDLE_SECONDS)
            else:
                self._cycle(view, pod)
                self._reap(wait=0.0)

    def _observe(self, view: View) -> None:
        """A new list: what it does not have any more is gone."""
        now: dict[str, Value] = {node.uid or node.name: node for node in view.nodes}
        now |= [(uid, pod) for uid, pod in view.pods.items()]
        gone = [Change(value, gone=True) for key, value in self._seen.items() if key not in now]
        self._cache.observe([*gone, *map(Change, now.values())])
        self._seen = now

    # -- one attempt

    def _next(self, now: float) -> Pod | None:
        due = (pod for pod in self._cache.pods.values() if self._not_before.get(pod.uid, 0.0) <= now)
        return min(filter(self._cache.pending, due), key=order, default=None)

    def _cycle(self, view: View, pod: Pod) -> None:
        verdict = self._attempt(pod, view.raw[pod.uid])
        if verdict.node is None:
            self._failed(pod.uid, verdict.why)
        else:
            self._assume(pod, verdict.node)

    def _attempt(self, pod: Pod, raw: JsonObject) -> Verdict:
        steps = attempt(self._cache, pod, raw)
        try:
            call = next(steps)
            while True:
                call = steps.send(self._client.post(f"/{call.verb}", call.body))
        except StopIteration as end:
            verdict: Verdict = end.value
            return verdict

    def _failed(self, uid: PodUid, why: str) -> None:
        """Record a failed attempt on the pod, as the real one does, and try again later."""
        self._not_before[uid] = time.monotonic() + BACKOFF_SECONDS
        if self.refusals.get(uid) == why:
            return
        self.refusals[uid] = why
        self._moved = time.monotonic()
        raw = view_of(self._client.get("/snapshot")).raw.get(uid)
        if raw is not None and not raw["spec"].get("nodeName"):
            event = {"type": "MODIFIED", "object": with_failure(raw, why)}
            self._client.post("/snapshot/events", [event])

    # -- binding

    def _assume(self, pod: Pod, node: NodeName) -> None:
        self._cache.assume(pod, node)
        self._binding.add(pod.uid)
        threading.Thread(target=self._bind, args=(pod, node), daemon=True).start()

    def _bind(self, pod: Pod, node: NodeName) -> None:
        call = binding(pod, node)
        try:
            error = str(self._client.post(f"/{call.verb}", call.body, seconds=BIND_SECONDS)["Error"])
        except NoAnswerError as problem:
            error = str(problem)
        self._answers.put((pod.uid, error))

    def _reap(self, *, wait: float) -> None:
        """Take in what bind calls answered; waits for the first one only."""
        try:
            while True:
                uid, error = self._answers.get(block=wait > 0, timeout=wait)
                wait = 0.0
                self._moved = time.monotonic()
                self._binding.discard(uid)
                if error:
                    self._cache.forget(uid)
                    self._failed(uid, error)
        except queue.Empty:
            return
