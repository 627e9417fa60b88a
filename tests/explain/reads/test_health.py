# SPDX-License-Identifier: Apache-2.0
"""Read 2: the health of devices, as kubelet writes it into the pods that hold them."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence, Weight
from app.explain.reads.health import (
    FIELD,
    device_not_healthy,
    devices_reported_healthy,
    health_not_reported,
    holder_not_healthy,
)
from tests.builders import Json, PodBuilder, make_node, make_pod
from tests.explain.looking import found, texts

NODE = make_node("n1").gpus(8)
POD = make_pod("w0").gpus(2)
BAD: Json = {"resourceID": "GPU-5d6f1a2b", "health": "Unhealthy"}
GOOD: Json = {"resourceID": "GPU-0c9e7d3a", "health": "Healthy"}
LOST: Json = {"resourceID": "GPU-77aa00ff", "health": "Unknown"}


def reporting(pod: PodBuilder, *devices: Json, name: str = "nvidia.com/gpu") -> PodBuilder:
    status = {
        "name": "main",
        "ready": True,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "allocatedResourcesStatus": [{"name": name, "resources": list(devices)}],
    }
    return pod.on("n1").set("status.containerStatuses", [status])


def test_devices_of_the_pod_that_are_not_healthy() -> None:
    findings = found(device_not_healthy, "pod/w0", reporting(POD, GOOD, BAD), NODE)
    assert texts(findings) == ["devices of 1 pod in question are not healthy: 1 nvidia.com/gpu Unhealthy"]
    assert findings[0].weight is Weight.WARNS
    assert findings[0].evidence == (
        Evidence("pod/default/w0", FIELD, "nvidia.com/gpu GPU-5d6f1a2b Unhealthy on n1"),
    )


def test_the_message_of_the_driver_is_told() -> None:
    bad = BAD | {"message": "ECC error count exceeded threshold"}
    findings = found(device_not_healthy, "pod/w0", reporting(POD, bad, LOST), NODE)
    assert texts(findings) == [
        "devices of 1 pod in question are not healthy:"
        " 1 nvidia.com/gpu Unhealthy (ECC error count exceeded threshold) and 1 nvidia.com/gpu Unknown"
    ]


def test_pods_of_others_on_broken_devices_where_the_pod_may_go() -> None:
    holder = reporting(make_pod("x", "team-b").gpus(8), BAD)
    findings = found(holder_not_healthy, "pod/w0", POD, NODE, holder)
    assert texts(findings) == [
        "devices of 1 pod holding nvidia.com/gpu where the pods may go are not healthy:"
        " 1 nvidia.com/gpu Unhealthy"
    ]
    assert findings[0].evidence == (
        Evidence("pod/team-b/x", FIELD, "nvidia.com/gpu GPU-5d6f1a2b Unhealthy on n1"),
    )
    assert findings[0].steps[0].command.startswith("kubectl get pod x -n team-b ")


def test_holders_that_are_no_matter_for_the_pod() -> None:
    holder = make_pod("x").gpus(8)
    assert not found(holder_not_healthy, "pod/w0", POD, NODE, reporting(holder, GOOD))
    assert not found(holder_not_healthy, "pod/w0", POD, NODE, reporting(holder, BAD).phase("Failed"))
    assert not found(holder_not_healthy, "pod/w0", POD.selector({"zone": "a"}), NODE, reporting(holder, BAD))
    assert not found(holder_not_healthy, "pod/w0", POD, NODE, reporting(holder, BAD, name="claim:gpu"))


def test_healthy_is_what_the_plugin_says_and_shown_only_on_request() -> None:
    findings = found(devices_reported_healthy, "pod/w0", reporting(POD, GOOD, GOOD), NODE)
    assert texts(findings) == [
        "all 2 devices reported for 1 pod in question are fine, as far as their plugin knows"
    ]
    assert findings[0].weight is Weight.FINE
    assert findings[0].evidence == (Evidence("pod/default/w0", FIELD, "2 Healthy"),)
    assert not found(devices_reported_healthy, "pod/w0", reporting(POD, GOOD, BAD), NODE)


def test_no_report_is_no_health() -> None:
    findings = found(health_not_reported, "pod/w0", POD.on("n1"), NODE)
    assert texts(findings) == ["could not tell: nothing is reported of the devices of 1 pod in question"]
    assert findings[0].weight is Weight.NOTE
    assert not found(devices_reported_healthy, "pod/w0", POD.on("n1"), NODE)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(POD, id="on no node"),
        pytest.param(reporting(POD, LOST), id="unknown is a report"),
        pytest.param(make_pod("w0").cpu("1").on("n1"), id="without devices"),
    ],
)
def test_pods_that_need_not_report(pod: PodBuilder) -> None:
    assert not found(health_not_reported, "pod/w0", pod, NODE)


@pytest.mark.parametrize("statuses", [None, [], [{}], [{"allocatedResourcesStatus": [{"resources": None}]}]])
def test_empty_statuses_are_no_report(statuses: object) -> None:
    pod = POD.on("n1").set("status.containerStatuses", statuses)
    for topic in (device_not_healthy, devices_reported_healthy):
        assert not found(topic, "pod/w0", pod, NODE)
    assert found(health_not_reported, "pod/w0", pod, NODE)
