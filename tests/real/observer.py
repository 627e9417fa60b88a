# SPDX-License-Identifier: Apache-2.0
"""An independent witness: its own watch of all pods, judging what must never be seen.

Knows nothing of Muster's cache. `partly` lists gangs that were partly bound at rest: 0 < bound < minimum
for longer than 5 s. `overcommitted` lists nodes on which more GPUs were bound than allocatable at any moment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.cluster import Cluster
from tests.real.workloads import GPU, GROUP_LABEL

REST_SECONDS = 5.0


class Observer:
    """Judge from `start` to `stop`. `excuse()` while a component is down on purpose."""

    def __init__(self, cluster: Cluster, minimums: Callable[[], Mapping[str, int]]) -> None:
        self.partly: list[str] = []
        self.overcommitted: list[str] = []
        self._cluster = cluster
        self._minimums = minimums
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._observe, daemon=True)
        self._since: dict[str, tuple[int, float]] = {}
        self._excused = threading.Event()

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End; the lists are final."""
        self._done.set()
        self._thread.join(timeout=30)

    def excuse(self, excused: bool) -> None:
        """Partly bound gangs do not count while a component is down."""
        if excused:
            self._excused.set()
        else:
            self._excused.clear()
            self._since.clear()

    def _observe(self) -> None:
        while not self._done.is_set():
            try:
                pods = self._cluster.api.items("/api/v1/pods")
                nodes = self._cluster.api.items("/api/v1/nodes")
            except Exception:  # the API server is down: nothing can be judged
                self._since.clear()
                self._done.wait(0.2)
                continue
            self._judge_gangs(pods)
            self._judge_nodes(pods, nodes)
            self._done.wait(0.2)

    def _judge_gangs(self, pods: list[dict[str, Any]]) -> None:
        minimums = self._minimums()
        bound: dict[str, int] = dict.fromkeys(minimums, 0)
        for pod in pods:
            gang = _gang(pod)
            if gang in bound and pod["spec"].get("nodeName") and pod["status"].get("phase") != "Failed":
                bound[gang] += 1
        now = time.monotonic()
        for gang, count in bound.items():
            if not 0 < count < minimums[gang] or self._excused.is_set():
                self._since.pop(gang, None)
                continue
            seen, since = self._since.setdefault(gang, (count, now))
            if seen != count:
                self._since[gang] = (count, now)
            elif now - since > REST_SECONDS:
                self.partly.append(f"{gang}: {count} of {minimums[gang]} bound at rest")

    def _judge_nodes(self, pods: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> None:
        used: dict[str, int] = {}
        for pod in pods:
            node = pod["spec"].get("nodeName")
            if node and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                used[node] = used.get(node, 0) + gpus(pod)
        for node in nodes:
            name, allocatable = (
                node["metadata"]["name"],
                int(node["status"].get("allocatable", {}).get(GPU, 0)),
            )
            if used.get(name, 0) > allocatable:
                self.overcommitted.append(f"{name}: {used[name]} of {allocatable} {GPU}")


def gpus(pod: dict[str, Any]) -> int:
    """GPUs that a pod's containers request."""
    return sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def _gang(pod: dict[str, Any]) -> str:
    native = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    name = native or (pod["metadata"].get("labels") or {}).get(GROUP_LABEL)
    return f"{pod['metadata']['namespace']}/{name}" if name else ""
