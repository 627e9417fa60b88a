# SPDX-License-Identifier: Apache-2.0
"""Read 4, allocations: what claims have been given, for whom, and where that ties their pods."""

from __future__ import annotations

import pytest

from app.explain.explain import explain
from app.explain.finding import Evidence, Weight
from app.explain.reads.claims_allocated import allocation, full, not_ready
from app.explain.reads.claims_pinned import pinned
from app.explain.report import Outcome, Subject
from tests.builders import Builder, NodeBuilder, make_node, make_pod, term
from tests.explain.dra_objects import ClaimBuilder, make_claim
from tests.explain.looking import facts, found, texts

POD = make_pod("w0").scheduler("default-scheduler").cpu("8").resource_claim("shared")
NODES = (make_node("n1"), make_node("n2"))
CLAIM = make_claim("shared").request().allocated("n1", "gpu-0")
OTHER = make_pod("x").priority(7).resource_claim("shared").on("n1")


# -- allocated


def test_what_a_claim_has_been_given_and_for_whom() -> None:
    findings = found(allocation, "pod/w0", POD, OTHER, *NODES, CLAIM.reserved("x", "gone"))
    assert texts(findings) == [
        "devices are allocated for pod w0: claim shared on node n1,"
        " reserved for pod default/x (priority 7) and pod default/gone (gone)"
    ]
    where = "resourceclaim/default/shared"
    assert findings[0].evidence == (
        Evidence(where, ".status.allocation.devices.results[gpu]", "gpu.example.com/n1/gpu-0"),
        Evidence(where, ".status.reservedFor", "pod default/x (priority 7)"),
        Evidence(where, ".status.reservedFor", "pod default/gone (gone)"),
    )
    assert findings[0].weight is Weight.NOTE


def test_for_a_pod_that_runs_it_is_in_order() -> None:
    findings = found(allocation, "pod/x", OTHER, *NODES, CLAIM.reserved("x"))
    assert [one.weight for one in findings] == [Weight.FINE]


def test_an_allocation_that_can_be_reached_from_many_nodes() -> None:
    zone = CLAIM.set("status.allocation.nodeSelector", {"nodeSelectorTerms": [term(("zone", "In", "a"))]})
    nodes = [make_node(f"n{n}").label("zone", "a" if n else "b") for n in range(3)]
    assert texts(found(allocation, "pod/w0", POD, *nodes, zone)) == [
        "devices are allocated for pod w0: claim shared on 2 nodes, n1 among them, reserved for nobody"
    ]
    anywhere = CLAIM.set("status.allocation.nodeSelector", None)
    assert "on every node" in found(allocation, "pod/w0", POD, *nodes, anywhere)[0].text


def test_a_claim_without_devices_yet_is_not_allocated() -> None:
    assert not found(allocation, "pod/w0", POD, *NODES, make_claim("shared").request())


# -- pinned

CORDONED, FULL = NODES[0].cordoned(), NODES[0].cpu("8")
HOG = make_pod("hog").cpu("4").on("n1")


@pytest.mark.parametrize(
    ("node", "why"),
    [(CORDONED, "which labels, taints or a cordon keep it off"), (FULL, "which is full")],
)
def test_an_allocation_on_a_node_without_a_place_is_given_back(node: NodeBuilder, why: str) -> None:
    for claim in (CLAIM, CLAIM.reserved("w0"), CLAIM.reserved("gone")):
        findings = found(pinned, "pod/w0", POD, HOG, node, NODES[1], claim)
        assert texts(findings) == [
            "devices allocated for pod w0 are where there is no place for a pod:"
            f" claim shared on node n1, {why};"
            " the scheduler gives them back when it next tries the pod"
        ]
        assert findings[0].weight is Weight.WARNS
        assert findings[0].steps[1].command == "kubectl describe node n1"


def test_while_others_use_it_the_pod_can_start_nowhere_else() -> None:
    objects: tuple[Builder, ...] = (POD, OTHER, CORDONED, NODES[1], CLAIM.reserved("x", "w0"))
    findings = found(pinned, "pod/w0", *objects)
    assert texts(findings) == [
        "devices allocated for pod w0 are where there is no place for a pod:"
        " claim shared on node n1, which labels, taints or a cordon keep it off;"
        " used by pod default/x (priority 7), so they stay there"
    ]
    assert findings[0].weight is Weight.BLOCKS
    verdict = explain(facts(*objects), Subject("pod", "default", "w0")).verdict
    assert verdict.code is Outcome.BLOCKED


def test_a_node_that_is_gone_is_no_place() -> None:
    findings = found(pinned, "pod/w0", POD, NODES[1], CLAIM)
    assert "claim shared on no node that is there, where none can start; " in findings[0].text


def test_an_allocation_with_a_place_ties_nobody() -> None:
    assert not found(pinned, "pod/w0", POD, *NODES, CLAIM.reserved("w0"))
    assert not found(pinned, "pod/w0", POD, CORDONED, CLAIM.set("status.allocation.nodeSelector", None))
    assert not found(pinned, "pod/x", OTHER, CORDONED, CLAIM.reserved("x"))


# -- full, and not ready


def test_a_claim_has_room_for_256() -> None:
    users = [f"p{n}" for n in range(256)]
    findings = found(full, "pod/w0", POD, *NODES, CLAIM.reserved(*users))
    assert texts(findings) == [
        "claim shared is reserved for 256 consumers, as many as it can have: pod w0 must wait"
    ]
    assert not found(full, "pod/w0", POD, *NODES, CLAIM.reserved(*users[1:]))
    assert not found(full, "pod/w0", POD, *NODES, CLAIM.reserved(*users[1:], "w0"))


def reporting(status: str, *, kind: str = "Ready") -> ClaimBuilder:
    condition = {
        "type": kind,
        "status": status,
        "reason": "XidError",
        "message": "fell off the bus",
        "lastTransitionTime": "2026-01-01T00:10:00Z",
    }
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0", "conditions": [condition]}
    return CLAIM.append("status.devices", device)


def test_a_device_that_its_driver_does_not_call_ready() -> None:
    findings = found(not_ready, "pod/x", OTHER, *NODES, reporting("False"))
    assert texts(findings) == [
        "device gpu.example.com/n1/gpu-0 of claim shared reports Ready=False: fell off the bus"
    ]
    field = ".status.devices[gpu.example.com/n1/gpu-0].conditions[Ready]"
    where = "resourceclaim/default/shared"
    assert findings[0].evidence == (Evidence(where, field, "False since 2026-01-01T00:10:00Z"),)
    assert not found(not_ready, "pod/x", OTHER, *NODES, reporting("True"))
    assert not found(not_ready, "pod/x", OTHER, *NODES, reporting("False", kind="Degraded"))
