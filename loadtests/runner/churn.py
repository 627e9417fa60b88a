# SPDX-License-Identifier: Apache-2.0
"""Writes at a steady rate beside the scheduling, as kubelets make them. Never touches the pods under test."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, Self

from loadtests.runner.scenario import Churn
from tests.cluster import Cluster
from tests.cluster.client import STRATEGIC_PATCH
from tests.real import workloads

NAMESPACE: Final = "churn"
PODS: Final = 200
THREADS: Final = 12


class Steady:
    """Calls `work(n)` for n = 0, 1, 2 … `rate` times per second, on several threads, from `start` to `stop`.

    What cannot be kept up with is made up for: the rate is that of the whole time.
    """

    def __init__(self, work: Callable[[int], object], rate: float) -> None:
        self._done: list[int] = []
        self._work, self._rate = work, rate
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self.failed: Exception | None = None
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(THREADS if rate else 0)
        ]
        self._began = self._ended = 0.0

    @property
    def achieved(self) -> float:
        """Calls per second, after `stop`. Raises what a call has raised."""
        if self.failed:
            raise self.failed
        return len(self._done) / (self._ended - self._began)

    def start(self) -> None:
        """Begin."""
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; no call runs any more."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._ended = time.monotonic()

    def _run(self) -> None:
        try:
            for number in self._numbers:
                if self._stop.wait(max(0.0, self._began + number / self._rate - time.monotonic())):
                    return
                self._work(number)
                self._done.append(number)  # one step, whatever the other threads do
        except Exception as error:  # told by `achieved`
            self.failed = error


@contextmanager
def churning(cluster: Cluster, churn: Churn | None) -> Iterator[dict[str, float]]:
    """The churn of a scenario, if it has some. The rates that were achieved are in the dict at the end."""
    achieved: dict[str, float] = {}
    if churn is None:
        yield achieved
        return
    running = _Churning(cluster, churn)
    with running:
        yield achieved
    achieved.update(running.rates())


class _Churning:
    """Between `with` and its end: node status updates, and status updates of pods that were bound before."""

    def __init__(self, cluster: Cluster, churn: Churn) -> None:
        self._api = cluster.api
        self._cluster = cluster
        self._nodes = [node["metadata"]["name"] for node in self._api.items("/api/v1/nodes")]
        self._node_updates = Steady(self._update_node, churn.node_updates_per_second)
        self._pod_updates = Steady(self._update_pod, churn.pod_updates_per_second)

    def __enter__(self) -> Self:
        self._cluster.create_namespace(NAMESPACE)
        shape = workloads.template(gpus=0)
        pods = workloads.pods(NAMESPACE, "busy", PODS, shape)
        for index, pod in enumerate(pods):
            pod["spec"]["nodeName"] = self._nodes[index % len(self._nodes)]
        self._cluster.create_many(pods)
        self._node_updates.start()
        self._pod_updates.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._node_updates.stop()
        self._pod_updates.stop()

    def rates(self) -> dict[str, float]:
        """What was achieved, as figures."""
        return {
            "node_updates_per_second": self._node_updates.achieved,
            "pod_updates_per_second": self._pod_updates.achieved,
        }

    def _update_node(self, number: int) -> None:
        """A heartbeat, as a kubelet's."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        path = f"/api/v1/nodes/{self._nodes[number % len(self._nodes)]}/status"
        self._api.patch(
            path, {"status": {"conditions": [{**ready, "message": f"beat {number}"}]}}, STRATEGIC_PATCH
        )

    def _update_pod(self, number: int) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/busy-{number % PODS}/status"
        self._api.patch(path, {"status": {"message": f"beat {number}"}})
