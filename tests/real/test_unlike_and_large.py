# SPDX-License-Identifier: Apache-2.0
"""Gangs of unlike members, and one of sixty-four that is bound in one go."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import pytest

from tests.cluster import Cluster
from tests.real.lab import GATE, Lab, gates
from tests.real.workloads import GROUP_LABEL, Object, job, template

pytestmark = pytest.mark.real

TOGETHER_SECONDS = 5.0
"""First to last binding of sixty-four. Most of it is the API server's time for so many writes."""


def test_a_launcher_without_devices_and_four_workers_start_together(shared: Lab) -> None:
    shared.nodes(4, gpus=8)
    shared.gang("holder", 1, gpus=1)
    shared.wait(lambda: shared.bound("holder") == 1, 15, "one node is not free any more")
    shared.group("mpi", 5)
    shared.create(
        job("gangs", "launcher", 1, template(gang="mpi", gpus=0, cpu="1")),
        job("gangs", "worker", 4, template(gang="mpi", gpus=8, cpu="2")),
    )
    why = "has seats for 4 of 5 members"
    shared.wait(lambda: len(shared.of("mpi")) == 5, 15, "launcher and workers exist")
    shared.wait(
        lambda: why in shared.describe("podgroups.scheduling.x-k8s.io", "mpi"),
        5,
        "three workers are not enough",
    )
    assert shared.bound("mpi") == 0

    shared.delete("pods", "holder-0")
    shared.wait(lambda: shared.bound("mpi") == 5, 20, "all five are bound")


def test_sixty_four_members_are_bound_together(shared: Lab) -> None:
    shared.nodes(8, gpus=8)
    with Bindings(shared.cluster, "gangs", "many") as seen:
        shared.gang("many", 64, gpus=1)
        shared.wait(lambda: shared.bound("many") == 64, 60, "all sixty-four are bound")
        shared.wait(lambda: seen.all(64), 15, "the watch has shown all bindings")
    times = sorted(seen.bound.values())
    assert times[-1] - times[0] <= TOGETHER_SECONDS
    assert seen.lifted_before_first == 64, "the first was bound before the last was admitted"


class Bindings:
    """Watches the pods of a gang: when was each first seen on a node, and how many were admitted by then."""

    def __init__(self, cluster: Cluster, namespace: str, gang: str) -> None:
        self.bound: dict[str, float] = {}
        self.lifted_before_first = 0
        self._gang = gang
        self._lifted: set[str] = set()
        self._cluster = cluster
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._watch = cluster.watch(self._pods)
        self._over = False
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._over = True
        for _ in range(100):
            self._watch.close()  # or the one that has just taken its place
            self._thread.join(timeout=0.1)
            if not self._thread.is_alive():
                return
        raise AssertionError("the watch does not end")

    def all(self, count: int) -> bool:
        assert self._thread.is_alive(), "the watch has ended"
        assert len(self.bound) == count, f"{len(self.bound)} of {count} seen"
        return True

    def _follow(self) -> None:
        version = ""
        while not self._over:
            for event in self._watch:
                version = event["object"]["metadata"]["resourceVersion"]
                self._see(event["object"])
            if not self._over:  # the server ends a watch that is read too slowly: go on from there
                self._watch = self._cluster.watch(f"{self._pods}?resourceVersion={version}")

    def _see(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        if pod["metadata"].get("labels", {}).get(GROUP_LABEL) != self._gang:
            return
        if GATE not in gates(pod):
            self._lifted.add(name)
        if pod["spec"].get("nodeName") and name not in self.bound:
            self.lifted_before_first = self.lifted_before_first or len(self._lifted)
            self.bound[name] = time.monotonic()
