# SPDX-License-Identifier: Apache-2.0
"""A stand-in for kube-scheduler that drives a `muster serve --snapshot` over HTTP, for `muster demo`.

Does what the real one does around an extender: takes the oldest pod of its name that has no gate, offers the
nodes that pass its own checks, asks filter and prioritize, assumes the place and binds in the background, and
records a failed attempt on the pod. Its checks are resources, taints and selectors; it never preempts, and
never knows of gangs: that is Muster's part.
"""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from app.cli.client import Client, NoAnswerError
from app.codec.objects import ObjectDecoder
from app.codec.snapshot import JsonObject, items_of, value_of
from app.domain.ids import NodeName, PodUid
from app.domain.node import Node
from app.domain.pod import SCHEDULER, Pod
from app.domain.resources import Amounts, add
from app.matching.nodes import admits

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

    def taken(self, places: Callable[[Pod], NodeName | None]) -> dict[NodeName, Amounts]:
        """What pods take from each node, given where each of them counts."""
        taken: dict[NodeName, Amounts] = {}
        for pod in self.pods.values():
            node = places(pod)
            if node is not None and not pod.finished:
                add(taken.setdefault(node, {}), dict(pod.template.requests))
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
        self._name = name
        self._assumed: dict[PodUid, NodeName] = {}
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
            self._confirm(view)
            settled = not self._binding and now - self._moved >= settle and done(view)
            if settled or now - began >= limit:
                return view
            pod = self._next(view, now)
            if pod is None:
                self._reap(wait=IDLE_SECONDS)
            else:
                self._cycle(view, pod)
                self._reap(wait=0.0)

    # -- the queue

    def _next(self, view: View, now: float) -> Pod | None:
        """Priority, then age, then name."""
        due = [pod for pod in view.pods.values() if self._pending(pod) and self._due(pod, now)]
        return min(due, key=lambda pod: (-pod.priority, pod.created, pod.key), default=None)

    def _pending(self, pod: Pod) -> bool:
        mine = pod.scheduler == self._name and pod.node is None and pod.alive and not pod.gates
        return mine and pod.uid not in self._assumed

    def _due(self, pod: Pod, now: float) -> bool:
        return self._not_before.get(pod.uid, 0.0) <= now

    def _confirm(self, view: View) -> None:
        """What the cluster shows as bound, or no more, need not be assumed."""
        for uid in list(self._assumed):
            pod = view.pods.get(uid)
            if uid not in self._binding and (pod is None or pod.node is not None):
                del self._assumed[uid]

    # -- one attempt

    def _cycle(self, view: View, pod: Pod) -> None:
        why = f"0/{len(view.nodes)} nodes are available to kube-scheduler: no room, or taints and selectors"
        for offer in self._offers(view, pod):
            answer = self._client.post("/filter", _args(view.raw[pod.uid], offer))
            names = answer["NodeNames"] or []
            if names and not answer["Error"]:
                self._assume(pod, self._choose(view.raw[pod.uid], names))
                return
            why = answer["Error"] or _texts(answer) or why
        self._failed(pod.uid, why)

    def _offers(self, view: View, pod: Pod) -> Iterator[list[NodeName]]:
        """The nominated node alone, then all that fit; nothing is asked when none does."""
        fit = self._fit(view, pod)
        if pod.nominated in fit:
            yield [pod.nominated]
        if fit:
            yield fit

    def _fit(self, view: View, pod: Pod) -> list[NodeName]:
        def place(other: Pod) -> NodeName | None:
            if other.uid == pod.uid:
                return None
            nominated = other.nominated if other.priority >= pod.priority else None
            return other.node or self._assumed.get(other.uid) or nominated

        taken = view.taken(place)
        return [
            node.name
            for node in view.nodes
            if admits(pod.template, node) and _holds(node, pod, taken.get(node.name, {}))
        ]

    def _choose(self, raw: JsonObject, names: list[NodeName]) -> NodeName:
        if len(names) == 1:
            return names[0]
        scores = {
            entry["Host"]: entry["Score"] for entry in self._client.post("/prioritize", _args(raw, names))
        }
        return max(names, key=lambda name: int(scores.get(name, 0)))

    def _failed(self, uid: PodUid, why: str) -> None:
        """Record a failed attempt on the pod, as the real one does, and try again later."""
        self._not_before[uid] = time.monotonic() + BACKOFF_SECONDS
        if self.refusals.get(uid) == why:
            return
        self.refusals[uid] = why
        self._moved = time.monotonic()
        raw = view_of(self._client.get("/snapshot")).raw.get(uid)
        if raw is not None and not raw["spec"].get("nodeName"):
            event = {"type": "MODIFIED", "object": _with_failure(raw, why)}
            self._client.post("/snapshot/events", [event])

    # -- binding

    def _assume(self, pod: Pod, node: NodeName) -> None:
        self._assumed[pod.uid] = node
        self._binding.add(pod.uid)
        threading.Thread(target=self._bind, args=(pod, node), daemon=True).start()

    def _bind(self, pod: Pod, node: NodeName) -> None:
        body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
        try:
            error = str(self._client.post("/bind", body, seconds=BIND_SECONDS)["Error"])
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
                    self._assumed.pop(uid, None)
                    self._failed(uid, error)
        except queue.Empty:
            return


def _holds(node: Node, pod: Pod, taken: Amounts) -> bool:
    return all(
        amount <= node.allocatable.get(name, 0) - taken.get(name, 0) for name, amount in pod.template.requests
    )


def _args(raw: JsonObject, names: list[NodeName]) -> JsonObject:
    return {"Pod": raw, "Nodes": None, "NodeNames": names}


def _texts(answer: JsonObject) -> str:
    """The distinct texts of a refusal."""
    refused = [
        *(answer["FailedNodes"] or {}).values(),
        *(answer["FailedAndUnresolvableNodes"] or {}).values(),
    ]
    return "; ".join(dict.fromkeys(refused))


def _with_failure(raw: JsonObject, why: str) -> JsonObject:
    changed = copy.deepcopy(raw)
    status = changed.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    failure = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    status["conditions"] = [*others, failure]
    return changed
