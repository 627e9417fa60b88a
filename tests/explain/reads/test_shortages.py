# SPDX-License-Identifier: Apache-2.0
"""Read 1, shortages: what runs out beside the devices, what no node can hold, what is not judged."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence, Weight
from app.explain.reads.shortages import another_resource_runs_out, not_judged, request_too_large
from tests.builders import PodBuilder, make_node, make_pod
from tests.explain.looking import found, texts

POD = make_pod("w0").gpus(4).requests({"cpu": "32", "memory": "64Gi"})
NODE = make_node("n1").gpus(8)
HOG = make_pod("hog").cpu("40").on("n1")


def test_cpu_that_runs_out_where_devices_are_free() -> None:
    findings = found(another_resource_runs_out, "pod/w0", POD, NODE, HOG)
    assert texts(findings) == [
        "lacking cpu: 1 of 1 nodes with 4 nvidia.com/gpu free; a pod asks for 32, at most 24 is free on them"
    ]
    assert findings[0].evidence == (Evidence("node/n1", "cpu", "24 free, 8 nvidia.com/gpu free"),)


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (
            POD.requests({"hugepages-1Gi": "4Gi"}),
            "lacking hugepages-1Gi: 1 of 1 nodes with 4 nvidia.com/gpu free;"
            " a pod asks for 4Gi, at most 0Gi is free on them",
        ),
        (
            POD.requests({"rdma/hca": "1"}),
            "lacking rdma/hca: 1 of 1 nodes with 4 nvidia.com/gpu free;"
            " a pod asks for 1, at most 0 is free on them",
        ),
    ],
)
def test_other_resources_that_run_out(pod: PodBuilder, text: str) -> None:
    amounts = {"hugepages-1Gi": "4Gi", "rdma/hca": "1"}
    node, hog = NODE, HOG.requests(amounts)
    for name, amount in amounts.items():
        node = node.amount(name, amount)
    assert text in texts(found(another_resource_runs_out, "pod/w0", pod, node, hog))


def test_what_no_node_could_hold_is_told_once() -> None:
    large = POD.requests({"memory": "1Ti"})
    assert not found(another_resource_runs_out, "pod/w0", large, NODE)
    assert len(found(request_too_large, "pod/w0", large, NODE)) == 1


def test_claims_are_told_with_the_claims_alone() -> None:
    assert not found(not_judged, "pod/w0", POD.resource_claim(), NODE)
    assert texts(found(not_judged, "pod/w0", POD.resource_claim().host_port(80), NODE)) == [
        "the pods have constraints that only kube-scheduler can judge: host ports"
    ]


def test_a_node_that_is_full_of_pods() -> None:
    others = [make_pod(f"p{i}").on("n1") for i in range(3)]
    assert texts(found(another_resource_runs_out, "pod/w0", POD, NODE.pods(3), *others)) == [
        "lacking pods: 1 of 1 nodes with 4 nvidia.com/gpu free; a pod asks for 1, at most 0 is free on them"
    ]


def test_nothing_runs_out_where_the_pod_fits_or_the_devices_are_gone_first() -> None:
    assert not found(another_resource_runs_out, "pod/w0", POD, NODE, HOG, NODE.named("n2"))
    assert not found(another_resource_runs_out, "pod/w0", POD, NODE, HOG.gpus(8))


def test_a_request_that_no_node_can_hold() -> None:
    findings = found(request_too_large, "pod/w0", POD.gpus(16), NODE)
    assert texts(findings) == [
        "pod default/w0 asks for 16 nvidia.com/gpu, and the largest node it may use has 8"
    ]
    assert findings[0].weight is Weight.BLOCKS
    field = ".spec.containers[*].resources.requests['nvidia.com/gpu']"
    assert findings[0].evidence == (Evidence("pod/default/w0", field, "16"),)
    assert (
        findings[0]
        .steps[0]
        .command.endswith("'NODE:.metadata.name,HAS:.status.allocatable.nvidia\\.com/gpu'")
    )


def test_a_larger_node_that_the_pod_may_not_use_is_mentioned() -> None:
    big = make_node("n2").gpus(16).taint("dedicated")
    assert texts(found(request_too_large, "pod/w0", POD.gpus(16), NODE, big)) == [
        "pod default/w0 asks for 16 nvidia.com/gpu, and the largest node it may use has 8;"
        " a node it may not use has 16"
    ]


def test_requests_that_fit_an_empty_node_and_names_that_nobody_offers_are_not_too_large() -> None:
    assert not found(request_too_large, "pod/w0", POD, NODE, HOG)
    assert not found(request_too_large, "pod/w0", POD.gpus(1, "nvidia.com/gpu.shared"), NODE)
    assert not found(request_too_large, "pod/w0", POD.gpus(16), NODE.cordoned())
    assert not found(request_too_large, "pod/w0", POD.gpus(16).on("n1"), NODE)


def test_what_only_kube_scheduler_judges() -> None:
    findings = found(not_judged, "pod/w0", POD.volume_claim().host_port(80), NODE)
    assert texts(findings) == [
        "the pods have constraints that only kube-scheduler can judge: volumes, host ports"
    ]
    assert findings[0].steps[0].command == "kubectl describe pod w0 -n default"
    assert not found(not_judged, "pod/w0", POD, NODE)
