# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler does around an extender, without any I/O: its own picture, its order, one attempt.

Shared by the stand-in of `muster demo`, which asks over HTTP, and by `muster simulate`, which asks the
service in its own process. Its checks are resources, taints, selectors and affinity; it never preempts, and
never knows of gangs: that is Muster's part.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from app.codec.snapshot import JsonObject
from app.domain.changes import Change
from app.domain.ids import NodeName, PodUid
from app.domain.placement import Template, Toleration
from app.domain.plan import Seat
from app.domain.pod import SCHEDULER, Pod
from app.inventory.columns import Mask, Matrix
from app.inventory.inventory import Inventory

UNFIT: Final = "node(s) did not match the pod's node selector, affinity or tolerations"

Order = tuple[int, int, str]


def order(pod: Pod) -> Order:
    """Whose turn comes first: priority, then age, then name."""
    return -pod.priority, pod.created, pod.key


class Cache:
    """kube-scheduler's own picture: the nodes, what is on them, and what is assumed to come there."""

    def __init__(self, *, scheduler: str = SCHEDULER) -> None:
        self.inventory = Inventory(scheduler=scheduler)

    @property
    def pods(self) -> Mapping[PodUid, Pod]:
        """Every pod that is there."""
        return self.inventory.pods

    def observe(self, changes: Iterable[Change]) -> None:
        """What the watch shows; a pod that it shows on a node, or no more, need not be assumed."""
        self.inventory.apply(changes)

    def assume(self, pod: Pod, node: NodeName) -> None:
        """The pod counts on this node from now on."""
        self.inventory.hold(Seat(uid=pod.uid, node=node, template=pod.template))

    def forget(self, uid: PodUid) -> None:
        """It was not bound after all."""
        self.inventory.release(uid)

    def pending(self, pod: Pod) -> bool:
        """Whether the pod is in this scheduler's queue."""
        ours = pod.scheduler == self.inventory.scheduler and pod.alive and pod.node is None
        return ours and not pod.gates and self.inventory.book.get(pod.uid) is None

    def fit(self, pod: Pod) -> list[NodeName]:
        """Nodes that pass kube-scheduler's own checks. Nominations of lower priority do not count."""
        rows = self.inventory.admitting(pod.template).nonzero()[0]
        fine = self.inventory.fits(pod.template, self.inventory.free_for(pod, rows))
        return [self.inventory.names[row] for row in rows[fine]]

    def unfit(self, pod: Pod) -> Counter[str]:
        """Why the other nodes do not pass: how many nodes by kube-scheduler's text."""
        admitted = self.inventory.admitting(pod.template)
        free = self.inventory.free_for(pod)
        texts = Counter({UNFIT: self.nodes - int(admitted.sum())})
        for name, amount in pod.template.requests:
            texts[f"Insufficient {name}"] = self._short(free, admitted, name, amount)
        return +texts

    def _short(self, free: Matrix, admitted: Mask, name: str, amount: int) -> int:
        column = self.inventory.columns.column_of.get(name)
        if column is None:
            return int(admitted.sum())
        return int(np.count_nonzero(free[column, : len(admitted)][admitted] < amount))

    @property
    def nodes(self) -> int:
        """How many there are."""
        return int(self.inventory.admitting(_ANYWHERE).sum())


_ANYWHERE: Final = Template(requests=(), tolerations=(Toleration(operator="Exists"),))


class Call(NamedTuple):
    """A verb, and its body in kube-scheduler's form."""

    verb: str
    body: JsonObject


class Verdict(NamedTuple):
    """The node of a successful attempt; else None, and the text for the pod's condition."""

    node: NodeName | None
    why: str = ""


def attempt(cache: Cache, pod: Pod, raw: JsonObject) -> Generator[Call, Any, Verdict]:
    """One scheduling cycle. Yields what the extender is asked, takes its answer (JSON, decoded), and returns
    the verdict. `raw` is the pod as the API shows it."""
    answer: JsonObject = {}
    for offer in _offers(pod, cache.fit(pod)):
        answer = yield Call("filter", _args(raw, offer))
        names = [] if answer["Error"] else answer["NodeNames"] or []
        if len(names) == 1:
            return Verdict(names[0])
        if names:
            scores = yield Call("prioritize", _args(raw, names))
            return Verdict(_best(names, scores))
    why = answer.get("Error") or _none_available(cache.nodes, cache.unfit(pod) + _refusals(answer))
    return Verdict(None, why)


def binding(pod: Pod, node: NodeName) -> Call:
    """The bind call that follows a successful attempt."""
    body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
    return Call("bind", body)


def with_failure(raw: JsonObject, why: str) -> JsonObject:
    """The pod with a failed attempt recorded, as the real one does it: a nomination goes with it."""
    changed = copy.deepcopy(raw)
    status = changed.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
    failure = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    status["conditions"] = [*others, failure]
    return changed


def _offers(pod: Pod, fit: list[NodeName]) -> Iterator[list[NodeName]]:
    """The nominated node alone, then all that fit; nothing is asked when none does."""
    if pod.nominated in fit:
        yield [pod.nominated]
    if fit:
        yield fit


def _args(raw: JsonObject, names: list[NodeName]) -> JsonObject:
    return {"Pod": raw, "Nodes": None, "NodeNames": names}


def _best(names: list[NodeName], scores: list[JsonObject]) -> NodeName:
    """The highest score; the first of the offer among equals."""
    by_name = {entry["Host"]: int(entry["Score"]) for entry in scores}
    return max(names, key=lambda name: by_name.get(name, 0))


def _refusals(answer: JsonObject) -> Counter[str]:
    """How many nodes the extender refused, by its text."""
    told = {**(answer.get("FailedNodes") or {}), **(answer.get("FailedAndUnresolvableNodes") or {})}
    return Counter(told.values())


def _none_available(nodes: int, texts: Counter[str]) -> str:
    """kube-scheduler's own sentence: a count of nodes for each reason."""
    reasons = ", ".join(f"{count} {text}" for text, count in sorted(texts.items()))
    return f"0/{nodes} nodes are available: {reasons}" if reasons else f"0/{nodes} nodes are available"
