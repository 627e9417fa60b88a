# SPDX-License-Identifier: Apache-2.0
"""Read 3, the pods' own words."""

from __future__ import annotations

import pytest

from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.pods import created_on_node, last_attempt, latest_event, never_preempts, volume_unbound
from tests.builders import make_group, make_node, make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import NOW, claim, event, storage

MESSAGE = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
TRIED = make_pod("w0").attempted(MESSAGE, at="2026-01-01T00:50:00Z")
USER = make_pod("w0").volume_claim("data")


def test_what_the_scheduler_said_last() -> None:
    (finding,) = found(last_attempt, "pod/w0", TRIED, now=NOW)
    assert finding.text == f"pod w0, muster at 2026-01-01T00:50:00Z (10m ago): {MESSAGE}"
    assert finding.weight is Weight.NOTE
    assert finding.evidence == (
        Evidence("pod/default/w0", ".status.conditions[PodScheduled]", f"Unschedulable: {MESSAGE}"),
    )
    assert not found(last_attempt, "pod/w0", TRIED.on("n1"))
    assert not found(last_attempt, "pod/w0", make_pod("w0"))


def test_a_gate_is_no_attempt_and_a_bar_in_a_message_is_no_separator() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}
    assert not found(last_attempt, "pod/w0", TRIED.set("status.conditions", [gated]))
    (finding,) = found(last_attempt, "pod/w0", make_pod("w0").attempted("a|b", at="odd"))
    assert finding.text == "pod w0, muster at an unknown time: a|b"


def test_long_messages_are_cut_in_the_sentence_and_whole_in_the_evidence() -> None:
    (finding,) = found(last_attempt, "pod/w0", TRIED.attempted("x" * 500))
    assert finding.text.endswith("x…") and len(finding.text) < 500
    assert finding.evidence[0].value.endswith("x" * 500)


def test_the_latest_event() -> None:
    pod = make_pod("w0")
    older = event(pod, "GangBusy", "no seats", at="2026-01-01T00:10:00Z")
    newer = event(pod, "GangBehind", "waits\n behind", at="2026-01-01T00:59:00Z", times=3)
    (finding,) = found(latest_event, "pod/w0", pod, newer, older, now=NOW)
    assert finding.text == (
        "latest event on pod/w0 at 2026-01-01T00:59:00Z (60s ago): GangBehind, waits behind"
    )
    assert finding.evidence == (
        Evidence("event/default/w0.gangbehind", ".message", "job-controller: waits behind, 3 times"),
    )


def test_an_event_that_repeats_the_last_attempt_is_left_out() -> None:
    same = event(TRIED, "FailedScheduling", MESSAGE)
    assert not found(latest_event, "pod/w0", TRIED, same)
    assert not found(latest_event, "pod/w0", TRIED, same.set("involvedObject.name", "other"))


def test_events_of_the_pod_group_are_told_too() -> None:
    group = make_group("train", 1)
    assert texts(
        found(latest_event, "podgroup/train", group, make_pod("w0").gang("train"), event(group, "A", "b"))
    ) == ["latest event on podgroup/train at 2026-01-01T00:00:00Z: A, b"]


@pytest.mark.parametrize(
    ("objects", "state", "weight"),
    [
        ((), "does not exist", Weight.BLOCKS),
        ((claim("data", "Lost"),), "has lost its volume", Weight.BLOCKS),
        (
            (claim("data", "Pending", "fast"), storage("fast", "Immediate")),
            "is pending, and its storage class binds at once",
            Weight.BLOCKS,
        ),
        (
            (claim("data", "Pending", "fast"), storage("fast", "WaitForFirstConsumer")),
            "is bound once a node is chosen",
            Weight.FINE,
        ),
        (
            (claim("data", "Pending", "fast"),),
            "is pending, and storage class fast was not found",
            Weight.WARNS,
        ),
        ((claim("data", "Pending"),), "is pending, and it names no storage class", Weight.WARNS),
    ],
)
def test_a_volume_claim_that_is_not_bound(objects: tuple, state: str, weight: Weight) -> None:  # type: ignore[type-arg]
    (finding,) = found(volume_unbound, "pod/w0", USER, *objects)
    assert (finding.text, finding.weight) == (f"volume claim data of pod w0 {state}", weight)


def test_a_storage_class_that_was_not_read_is_not_called_absent() -> None:
    unseen = (Unseen("StorageClass.storage.k8s.io", "forbidden"),)
    pending = claim("data", "Pending", "fast")
    assert texts(found(volume_unbound, "pod/w0", USER, pending, unseen=unseen)) == [
        "volume claim data of pod w0 is pending, and storage class fast was not read"
    ]


def test_claims_that_are_bound_unread_or_not_asked_for() -> None:
    assert not found(volume_unbound, "pod/w0", USER, claim("data", "Bound"))
    assert not found(volume_unbound, "pod/w0", USER, unseen=(Unseen("PersistentVolumeClaim", "forbidden"),))
    assert not found(volume_unbound, "pod/w0", USER.on("n1"))
    assert not found(volume_unbound, "pod/w0", make_pod("w0").set("spec.volumes", "odd"))


def test_a_claim_of_a_generic_ephemeral_volume_has_the_name_of_its_pod() -> None:
    pod = make_pod("w0").set("spec.volumes", [{"name": "scratch", "ephemeral": {}}])
    assert texts(found(volume_unbound, "pod/w0", pod)) == ["volume claim w0-scratch of pod w0 does not exist"]


def test_pods_that_never_preempt() -> None:
    node, holder = make_node("n1").gpus(8), make_pod("x").gpus(8).on("n1")
    meek = make_pod("w0").gpus(8).priority(50).set("spec.preemptionPolicy", "Never")
    assert texts(found(never_preempts, "pod/w0", node, holder, meek)) == [
        "1 pod has preemptionPolicy Never: priority 50 brings an earlier turn and evicts nobody"
    ]
    assert not found(never_preempts, "pod/w0", node, meek)
    assert not found(never_preempts, "pod/w0", node, holder, meek.priority(0))


def test_a_pod_that_was_created_on_its_node() -> None:
    pod = make_pod("w0").on("n1")
    placed = pod.managed("kubectl", {"f:spec": {"f:nodeName": {}}}, subresource="")
    (finding,) = found(created_on_node, "pod/w0", placed)
    assert finding.text == "pod w0 was created with nodeName n1 by kubectl: no scheduler looked at it"
    assert not found(created_on_node, "pod/w0", pod.managed("kubelet", {"f:status": {}}))
    assert not found(created_on_node, "pod/w0", pod.set("metadata.managedFields", [{"fieldsV1": 1}, 2]))
