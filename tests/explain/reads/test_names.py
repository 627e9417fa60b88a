# SPDX-License-Identifier: Apache-2.0
"""Read 1, names: devices that are asked for by one name and offered by another."""

from __future__ import annotations

import pytest

from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.names import other_names_offered, resource_not_offered
from tests.builders import NodeBuilder, make_node, make_pod
from tests.explain.looking import found, texts

NODE = make_node("n1")


@pytest.mark.parametrize(
    ("asked", "node", "text"),
    [
        pytest.param(
            "nvidia.com/gpu",
            NODE.gpus(16, "nvidia.com/gpu.shared"),
            "no node offers nvidia.com/gpu: near it are nvidia.com/gpu.shared (16 of 16 free)",
            id="time-sliced and renamed",
        ),
        pytest.param(
            "nvidia.com/gpu.shared",
            NODE.gpus(4, "nvidia.com/gpu"),
            "no node offers nvidia.com/gpu.shared (a share of a GPU, by time-slicing or MPS with renaming):"
            " near it are nvidia.com/gpu (4 of 4 free)",
            id="the other way round",
        ),
        pytest.param(
            "nvidia.com/mig-1g.5gb",
            NODE.gpus(7, "nvidia.com/mig-1g.10gb").gpus(4, "rdma/hca"),
            "no node offers nvidia.com/mig-1g.5gb (a MIG instance, by the mixed strategy):"
            " near it are nvidia.com/mig-1g.10gb (7 of 7 free)",
            id="another MIG profile",
        ),
        pytest.param(
            "amd.com/gpu",
            NODE.gpus(64, "amd.com/cpx_nps4"),
            "no node offers amd.com/gpu: near it are amd.com/cpx_nps4 (64 of 64 free)",
            id="AMD partitions",
        ),
        pytest.param(
            "gpu.intel.com/i915",
            NODE.gpus(1, "gpu.intel.com/xe").gpus(1, "gpu.intel.com/xe_monitoring"),
            "no node offers gpu.intel.com/i915 (a GPU under the i915 driver):"
            " near it are gpu.intel.com/xe (1 of 1 free)",
            id="another Intel driver",
        ),
        pytest.param(
            "nvidia.com/gpus",
            NODE.gpus(8, "nvidia.com/gpu"),
            "no node offers nvidia.com/gpus: near it are nvidia.com/gpu (8 of 8 free)",
            id="misspelled",
        ),
        pytest.param(
            "nvidia.com/gpumem",
            NODE.gpus(4, "amd.com/gpu"),
            "no node offers nvidia.com/gpumem (for a scheduler that shares GPUs itself):"
            " nodes offer amd.com/gpu (4 of 4 free)",
            id="handled by another scheduler",
        ),
        pytest.param(
            "nvidia.com/gpu", NODE, "no node offers nvidia.com/gpu: nor any device", id="no devices"
        ),
    ],
)
def test_a_name_that_no_node_offers(asked: str, node: NodeBuilder, text: str) -> None:
    findings = found(resource_not_offered, "pod/w0", make_pod("w0").gpus(1, asked), node)
    assert texts(findings) == [text]
    assert findings[0].weight is Weight.BLOCKS


def test_names_that_a_node_has_are_offered_whatever_their_state() -> None:
    pod, node = make_pod("w0").gpus(1), NODE.gpus(8)
    assert not found(resource_not_offered, "pod/w0", pod, node)
    assert not found(resource_not_offered, "pod/w0", pod, node.allocatable({"nvidia.com/gpu": "0"}))
    assert not found(resource_not_offered, "pod/w0", make_pod("w0").cpu("1"), node)


def test_nodes_that_could_not_be_read_offer_nobody_knows_what() -> None:
    unseen = (Unseen("Node", "forbidden"),)
    assert not found(resource_not_offered, "pod/w0", make_pod("w0").gpus(1), unseen=unseen)


def test_free_devices_by_other_names_do_not_serve() -> None:
    node = NODE.gpus(4).gpus(7, "nvidia.com/mig-1g.10gb").gpus(2, "nvidia.com/gpu.shared").gpus(8, "rdma/hca")
    full = make_pod("x").gpus(4).on("n1")
    findings = found(other_names_offered, "pod/w0", make_pod("w0").gpus(1), node, full)
    assert texts(findings) == [
        "offered by other names, which do not serve nvidia.com/gpu: nvidia.com/mig-1g.10gb (7 of 7 free)"
        " and nvidia.com/gpu.shared (2 of 2 free)"
    ]
    assert findings[0].evidence[0] == Evidence(
        "1 node", ".status.allocatable['nvidia.com/mig-1g.10gb']", "7 of 7 free"
    )


def test_other_names_are_not_told_where_the_pod_fits_or_they_are_taken() -> None:
    pod, node = make_pod("w0").gpus(1), NODE.gpus(4).gpus(7, "nvidia.com/mig-1g.10gb")
    assert not found(other_names_offered, "pod/w0", pod, node)
    full, taken = make_pod("x").gpus(4).on("n1"), make_pod("y").gpus(7, "nvidia.com/mig-1g.10gb").on("n1")
    assert not found(other_names_offered, "pod/w0", pod, node, full, taken)
