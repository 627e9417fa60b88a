# SPDX-License-Identifier: Apache-2.0
"""Read 1: each finding from objects as the API shows them."""

from __future__ import annotations

from app.explain.finding import Evidence
from app.explain.reads.devices import allocatable_below_capacity
from tests.builders import GPU, make_node, make_pod
from tests.explain.looking import found, texts

POD = make_pod("w0").gpus(1)
HEALTHY = make_node("n1").gpus(8)
SICK = make_node("n2").gpus(8).allocatable({GPU: "6"})


def test_devices_that_are_not_allocatable_are_counted_and_shown() -> None:
    findings = found(allocatable_below_capacity, "pod/w0", POD, HEALTHY, SICK)
    assert texts(findings) == [
        "2 nvidia.com/gpu of 1 nodes are not allocatable: unhealthy, or the device plugin is down"
    ]
    assert findings[0].evidence == (Evidence("node/n2", f".status.allocatable['{GPU}']", "6, capacity 8"),)


def test_healthy_nodes_and_resources_that_nobody_asks_for_are_not_told() -> None:
    assert not found(allocatable_below_capacity, "pod/w0", POD, HEALTHY)
    assert not found(allocatable_below_capacity, "pod/w0", make_pod("w0"), SICK)
