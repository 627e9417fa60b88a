# SPDX-License-Identifier: Apache-2.0
"""Gangs of Kubernetes' own PodGroup API (scheduling.k8s.io/v1beta1), and pods that name both APIs."""

from __future__ import annotations

import pytest

from tests.real.lab import Lab, refused
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real

NATIVE = "podgroups.scheduling.k8s.io"
BOTH = ("scheduling.x-k8s.io/pod-group=one", "spec.schedulingGroup.podGroupName=other")


@pytest.mark.parametrize("namespace", ["gangs", "plain"])
def test_a_native_gang_waits_whole_and_then_binds_whole(shared: Lab, namespace: str) -> None:
    shared.nodes(1, gpus=8)
    shared.gang("holder", 1, gpus=5)
    shared.wait(lambda: shared.bound("holder") == 1, 15, "most of the node is taken")

    shared.gang("native", 2, native=True, namespace=namespace, gpus=2)
    why = "gang gangs/holder holds 5" if namespace == "gangs" else "has seats for 1 of 2 members"
    shared.wait(lambda: why in shared.describe("pod", "native-0", namespace), 5, "the pod says why it waits")
    shared.wait(lambda: why in shared.describe(NATIVE, "native", namespace), 5, "so does its group")
    assert shared.bound("native", namespace) == 0

    shared.delete("pods", "holder-0")
    shared.wait(lambda: shared.bound("native", namespace) == 2, 15, "both are bound")


def test_equal_names_in_the_two_apis_are_two_gangs(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.group("twin", 2)
    shared.create(pod("gangs", "label-0", template(gang="twin")))
    shared.group("twin", 2, native=True)
    shared.create(*(pod("gangs", f"native-{index}", template(native="twin")) for index in range(2)))

    shared.wait(
        lambda: all(_node(shared, f"native-{index}") for index in range(2)), 15, "the native one runs"
    )
    shared.wait(
        lambda: "has 1 of 2 members" in shared.describe("pod", "label-0"), 5, "the other is incomplete"
    )
    assert not _node(shared, "label-0")


def test_a_gated_pod_that_names_both_is_told_so(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("gangs", "torn", template(gang="one", native="other")))

    shared.wait(lambda: _names_both(shared.describe("pod", "torn")), 5, "the event names both groups")
    assert shared.gated("one") == 1


def test_an_ungated_pod_that_names_both_is_refused(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.create(pod("plain", "torn", template(gang="one", native="other", scheduler="muster")))

    shared.wait(lambda: _names_both(refused(shared.pod("torn", "plain"))), 10, "kube-scheduler was told why")
    shared.wait(
        lambda: any(
            _names_both(event["message"])
            for event in shared.events("torn", "plain")
            if event["reason"] == "FailedScheduling"
        ),
        5,
        "the FailedScheduling event names both groups",
    )


def _names_both(text: str) -> bool:
    return all(name in text for name in BOTH)


def _node(lab: Lab, name: str) -> str:
    return str(lab.pod(name)["spec"].get("nodeName", ""))
