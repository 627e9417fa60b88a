# SPDX-License-Identifier: Apache-2.0
"""Three hundred gangs wait for a full cluster: it costs kube-scheduler nothing, and people can read why."""

from __future__ import annotations

import re
import threading
import time
from types import TracebackType
from typing import Self

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.workloads import group, pod, template

pytestmark = pytest.mark.real

GANGS = 300
EVENTS_PER_SECOND = 20
BOUND_SECONDS = 15.0
TOLD_SECONDS = 5.0
FILTER_CALLS = 'muster_verb_duration_seconds_count{verb="filter"}'


def test_a_backlog_costs_kube_scheduler_nothing_and_the_oldest_that_fits_goes_first(lab: Lab) -> None:
    lab.nodes(2, gpus=8)
    lab.gang("holder", 2, gpus=8)
    lab.wait(lambda: lab.bound("holder") == 2, 15, "the cluster is full")
    asked = lab.rig.metric(FILTER_CALLS)

    with EventWrites(lab.cluster) as writes:
        lab.gang("w000", 2, gpus=8)  # the oldest: needs both nodes
        _later_gangs(lab)
        lab.wait(lambda: lab.rig.metric('muster_gangs{state="waiting"}') == GANGS, 60, "all of them wait")
        everyone = {p["metadata"]["name"] for p in lab.pods() if "holder" not in p["metadata"]["name"]}
        lab.wait(lambda: everyone <= _told(lab), 60, "each waiting pod has an event")
        lab.wait(lambda: {f"w{n:03}" for n in range(GANGS)} <= _told(lab), 5, "and so has each PodGroup")
        lab.members("z-late", 1)
        lab.wait(
            lambda: "z-late-0" in _told(lab), TOLD_SECONDS, "a newcomer need not wait its turn to be told"
        )
        lab.delete("pods", "z-late-0")
    assert writes.most_in(5.0) <= EVENTS_PER_SECOND * 5 + 1
    assert lab.rig.metric(FILTER_CALLS) == asked
    assert not _failed_scheduling(lab)

    lab.delete("pods", "holder-0")
    lab.wait(lambda: lab.bound("w001") == 1, BOUND_SECONDS, "the oldest that fits on one node is bound")
    assert lab.bound("w000") == 0
    assert sum(bool(p["spec"].get("nodeName")) for p in lab.pods()) == 2
    assert lab.rig.metric(FILTER_CALLS) == asked + 1
    assert not _failed_scheduling(lab)


def _later_gangs(lab: Lab) -> None:
    """The second oldest first: creation times have whole seconds, then the name decides."""
    names = [f"w{number:03}" for number in range(1, GANGS)]
    lab.create(*(group("gangs", name, 1) for name in names))
    lab.create(*(pod("gangs", f"{name}-0", template(gang=name, gpus=8)) for name in names))
    lab.minimums.update({f"gangs/{name}": 1 for name in names})


def _told(lab: Lab) -> set[str]:
    """Names of what carries an event of Muster."""
    items = lab.cluster.api.items("/api/v1/namespaces/gangs/events")
    return {event["involvedObject"]["name"] for event in items if event["reason"].startswith("Gang")}


def _failed_scheduling(lab: Lab) -> list[str]:
    items = lab.cluster.api.items("/api/v1/namespaces/gangs/events")
    return [event["message"] for event in items if event["reason"] == "FailedScheduling"]


class EventWrites:
    """How many events were written, by the API server's own count.

    Counts server-side applies: nobody else in this cluster writes events so, and Muster writes them no
    other way. Failed requests count too.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._samples: list[tuple[float, int]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(timeout=30)

    def most_in(self, seconds: float) -> int:
        """The most writes between two samples that are at most so far apart."""
        assert self._samples[-1][1] > self._samples[0][1], "no event write was counted at all"
        return max(
            after[1] - before[1]
            for index, before in enumerate(self._samples)
            for after in self._samples[index:]
            if after[0] - before[0] <= seconds
        )

    def _sample(self) -> None:
        while not self._done.is_set():
            before = time.monotonic()
            text = self._cluster.api.text("/metrics")
            self._samples.append(((before + time.monotonic()) / 2, _applied(text)))
            self._done.wait(0.5)


def _applied(metrics: str) -> int:
    lines = re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", metrics, re.MULTILINE)
    return int(
        sum(float(n) for labels, n in lines if 'resource="events"' in labels and 'verb="APPLY"' in labels)
    )
