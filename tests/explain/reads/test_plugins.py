# SPDX-License-Identifier: Apache-2.0
"""Read 1, device plugins: devices that are there and not offered."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence
from app.explain.reads.plugins import (
    device_plugin_down,
    devices_not_advertised,
    devices_unhealthy,
    fewer_devices_than_labelled,
)
from tests.builders import GPU, Json, NodeBuilder, make_node, make_pod
from tests.explain.looking import found, texts

POD = make_pod("w0").gpus(1)
HEALTHY = make_node("n1").gpus(8)
SICK = make_node("n2").gpus(8).allocatable({GPU: "6"})
DOWN = make_node("n3").gpus(8).allocatable({GPU: "0"})
BARE = make_node("n4")


def test_devices_that_are_not_allocatable_are_counted_and_shown() -> None:
    findings = found(devices_unhealthy, "pod/w0", POD, HEALTHY, SICK, DOWN)
    assert texts(findings) == [
        "in capacity, not allocatable: 2 nvidia.com/gpu on 1 node; the plugin calls them unhealthy"
    ]
    assert findings[0].evidence == (Evidence("node/n2", f".status.allocatable['{GPU}']", "6, capacity 8"),)


def test_a_node_that_offers_none_of_its_devices_is_told_apart() -> None:
    findings = found(device_plugin_down, "pod/w0", POD, HEALTHY, SICK, DOWN)
    assert texts(findings) == [
        "in capacity, not allocatable: all 8 nvidia.com/gpu of 1 node; the plugin is down there, or calls"
        " every device unhealthy"
    ]
    assert findings[0].evidence == (Evidence("node/n3", f".status.allocatable['{GPU}']", "0, capacity 8"),)


def test_healthy_nodes_and_resources_that_nobody_asks_for_are_not_told() -> None:
    for topic in (devices_unhealthy, device_plugin_down):
        assert not found(topic, "pod/w0", POD, HEALTHY)
        assert not found(topic, "pod/w0", make_pod("w0"), SICK, DOWN)


@pytest.mark.parametrize(
    ("node", "field", "value"),
    [
        (BARE.label("nvidia.com/gpu.present", "true"), ".metadata.labels['nvidia.com/gpu.present']", "true"),
        (
            BARE.label("cloud.google.com/gke-accelerator", "nvidia-l4"),
            ".metadata.labels['cloud.google.com/gke-accelerator']",
            "nvidia-l4",
        ),
        (
            BARE.label("feature.node.kubernetes.io/pci-0302_10de.present", "true"),
            ".metadata.labels['feature.node.kubernetes.io/pci-0302_10de.present']",
            "true",
        ),
        (BARE.gpus(0), f".status.capacity['{GPU}']", "0"),
    ],
)
def test_nodes_that_should_have_devices_and_advertise_none(node: NodeBuilder, field: str, value: str) -> None:
    findings = found(devices_not_advertised, "pod/w0", POD, HEALTHY, node)
    assert texts(findings) == ["labelled as having nvidia.com devices, and advertising none: 1 node"]
    assert findings[0].evidence == (Evidence("node/n4", field, value),)


def _slice(node: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpu.nvidia.com-x", "uid": f"slice-{node}"},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": node},
    }


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(BARE, id="no sign"),
        pytest.param(BARE.label("nvidia.com/gpu.present", "false"), id="a label that says no"),
        pytest.param(BARE.label("feature.node.kubernetes.io/amd-gpu", "true"), id="another vendor"),
        pytest.param(BARE.label("kubernetes.azure.com/accelerator", "amd"), id="another vendor, by value"),
        pytest.param(
            BARE.label("nvidia.com/gpu.present", "true").gpus(0).gpus(7, "nvidia.com/mig-1g.10gb"),
            id="offered by another name",
        ),
        pytest.param(DOWN.label("nvidia.com/gpu.present", "true"), id="in capacity: that is told elsewhere"),
    ],
)
def test_nodes_with_nothing_amiss(node: NodeBuilder) -> None:
    assert not found(devices_not_advertised, "pod/w0", POD, node)


def test_devices_that_a_dra_driver_offers_are_not_missed() -> None:
    node = BARE.label("nvidia.com/gpu.present", "true")
    assert found(devices_not_advertised, "pod/w0", POD, node, _slice("n1"))
    assert not found(devices_not_advertised, "pod/w0", POD, node, _slice("n4"))


def test_a_device_that_only_the_label_remembers() -> None:
    node = make_node("n5").gpus(7).label("nvidia.com/gpu.count", "8")
    findings = found(fewer_devices_than_labelled, "pod/w0", POD, HEALTHY, node)
    assert texts(findings) == [
        "fewer nvidia.com/gpu in capacity than the label nvidia.com/gpu.count says: 1 missing on 1 node"
    ]
    assert findings[0].evidence == (Evidence("node/n5", f".status.capacity['{GPU}']", "7, label 8"),)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(make_node("n5").gpus(8).label("nvidia.com/gpu.count", "8"), id="all there"),
        pytest.param(make_node("n5").gpus(32).label("nvidia.com/gpu.count", "8"), id="time-sliced"),
        pytest.param(make_node("n5").gpus(7).label("nvidia.com/gpu.count", "many"), id="no number"),
        pytest.param(
            make_node("n5").gpus(7).gpus(7, "nvidia.com/mig-1g.10gb").label("nvidia.com/gpu.count", "8"),
            id="the others are cut up",
        ),
    ],
)
def test_labels_that_say_no_more_than_there_is(node: NodeBuilder) -> None:
    assert not found(fewer_devices_than_labelled, "pod/w0", POD, node)


def test_nodes_that_the_pods_do_not_select_are_left_out() -> None:
    nodes = (SICK, DOWN, BARE.label("nvidia.com/gpu.present", "true"))
    short = make_node("n5").gpus(7).label("nvidia.com/gpu.count", "8")
    for topic in (devices_unhealthy, device_plugin_down, devices_not_advertised, fewer_devices_than_labelled):
        assert found(topic, "pod/w0", POD, *nodes, short)
        assert not found(topic, "pod/w0", POD.selector({"zone": "a"}), HEALTHY.zone("a"), *nodes, short)
