# SPDX-License-Identifier: Apache-2.0
"""Single pods preempt through kube-scheduler's own machinery; a gang evicts nobody."""

from __future__ import annotations

import pytest

from tests.cluster import ApiError
from tests.real.lab import Lab, refused
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real

PREEMPT_CALLS = 'muster_verb_duration_seconds_count{verb="preempt"}'


def test_a_high_priority_single_pod_preempts_a_low_priority_one(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("gpus", "modest", template(gpus=8, priority_class="low")))
    shared.wait(lambda: _node(shared, "modest"), 15, "the low-priority pod runs")

    shared.create(pod("gpus", "urgent", template(gpus=8, priority_class="high")))
    shared.wait(lambda: _node(shared, "urgent"), 20, "the high-priority pod has its place")
    assert not _exists(shared, "modest")


def test_a_single_pod_of_the_same_priority_waits_behind_its_gate(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("gpus", "modest", template(gpus=8, priority_class="high")))
    shared.wait(lambda: _node(shared, "modest"), 15, "the first pod runs")

    shared.create(pod("gpus", "equal", template(gpus=8, priority_class="high")))
    shared.wait(lambda: "holds 8" in shared.describe("pod", "equal", "gpus"), 5, "it says who holds the GPUs")
    assert shared.pod("equal", "gpus")["spec"]["schedulingGates"]
    assert _exists(shared, "modest")


def test_a_gated_gang_of_high_priority_evicts_nobody(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("gpus", "modest", template(gpus=8, priority_class="low")))
    shared.wait(lambda: _node(shared, "modest"), 15, "the low-priority pod runs")

    shared.gang("important", 2, gpus=4, priority_class="high")
    shared.wait(lambda: "pod gpus/modest holds 8" in shared.describe("pod", "important-0"), 5, "it says why")
    assert shared.gated("important") == 2
    _undisturbed(shared)


def test_ungated_members_of_high_priority_evict_nobody(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("gpus", "modest", template(gpus=8, priority_class="low")))
    shared.wait(lambda: _node(shared, "modest"), 15, "the low-priority pod runs")
    asked = shared.rig.metric(PREEMPT_CALLS)

    shared.gang("important", 3, namespace="plain", gpus=4, priority_class="high")
    shared.wait(lambda: all(map(refused, shared.of("important", "plain"))), 10, "all three were tried")
    shared.nodes(1, gpus=4, first=1)  # room for one of them: kube-scheduler tries them again
    shared.wait(lambda: shared.rig.metric(PREEMPT_CALLS) >= asked + 6, 15, "twice it was asked whom to evict")
    _undisturbed(shared)
    assert shared.bound("important", "plain") == 0


def _undisturbed(lab: Lab) -> None:
    """Neither evicted nor about to be, and nobody was nominated to take the place."""
    assert "deletionTimestamp" not in lab.pod("modest", "gpus")["metadata"]
    assert not [event for event in lab.events("modest", "gpus") if event["reason"] == "Preempted"]
    assert not any(p["status"].get("nominatedNodeName") for p in [*lab.pods("gangs"), *lab.pods("plain")])


def _node(lab: Lab, name: str) -> str:
    return str(lab.pod(name, "gpus")["spec"].get("nodeName", ""))


def _exists(lab: Lab, name: str) -> bool:
    try:
        return "deletionTimestamp" not in lab.pod(name, "gpus")["metadata"]
    except ApiError:
        return False
