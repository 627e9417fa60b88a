# SPDX-License-Identifier: Apache-2.0
"""Read 1, holders: who has the devices, who has them for nothing, and who would make way."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence, Weight
from app.explain.reads.holders import (
    finished_pods_hold_nothing,
    held_by_terminating,
    held_without_working,
    holders,
    lower_priority_holders,
)
from tests.builders import GPU, PodBuilder, make_group, make_node, make_pod
from tests.explain.looking import found, texts

DELETED = 1767229200  # 2026-01-01T01:00:00Z, as `.deleting()` writes it
POD = make_pod("w0").gpus(8).scheduler("default-scheduler")
NODE = make_node("n1").gpus(8)
HOLDER = make_pod("x", "team-b").gpus(2).on("n1")
ALL = (holders, held_by_terminating, held_without_working, lower_priority_holders, finished_pods_hold_nothing)


def waits(reason: str, pod: PodBuilder = HOLDER) -> PodBuilder:
    return pod.set("status.containerStatuses", [{"name": "main", "state": {"waiting": {"reason": reason}}}])


def test_the_largest_holders_are_named_and_a_gang_is_one() -> None:
    gang = make_pod("g0").gpus(2).gang("train").on("n1")
    small = make_pod("s").gpus(1).on("n1")
    findings = found(
        holders,
        "pod/w0",
        POD,
        NODE,
        make_group("train", 2),
        gang,
        gang.named("g1"),
        HOLDER,
        small,
        small.named("t"),
    )
    assert texts(findings) == [
        "8 nvidia.com/gpu are held where the pods may go, the largest holders: gang default/train (4),"
        " pod team-b/x (2), pod default/s (1); 1 more"
    ]
    assert findings[0].evidence[0] == Evidence("podgroup.scheduling.x-k8s.io/default/train", GPU, "holds 4")


def test_holders_on_nodes_that_the_pod_may_not_use_are_not_told() -> None:
    assert not found(holders, "pod/w0", POD.selector({"zone": "a"}), NODE, NODE.named("n2").zone("a"), HOLDER)


def test_pods_that_are_being_deleted_still_hold() -> None:
    findings = found(held_by_terminating, "pod/w0", POD, NODE, HOLDER.deleting(), now=DELETED - 10)
    assert texts(findings) == ["2 nvidia.com/gpu are held by 1 pod being deleted"]
    assert findings[0].weight is Weight.NOTE


def test_past_the_grace_period_something_is_stuck() -> None:
    soon = HOLDER.named("y").set("metadata.deletionTimestamp", "2026-01-02T00:00:00Z")
    findings = found(held_by_terminating, "pod/w0", POD, NODE, soon, HOLDER.deleting(), now=DELETED + 10)
    assert texts(findings) == [
        "4 nvidia.com/gpu are held by 2 pods being deleted, 1 of them past the grace period"
    ]
    assert findings[0].weight is Weight.WARNS
    assert findings[0].evidence[0] == Evidence(
        "pod/team-b/x", ".metadata.deletionTimestamp", "2026-01-01T01:00:00Z; holds 2 on n1"
    )
    assert "get pod x -n team-b" in findings[0].steps[0].command


def test_pods_that_crash_or_cannot_pull_hold_for_nothing() -> None:
    crash, pull = waits("CrashLoopBackOff"), waits("ImagePullBackOff", HOLDER.named("y"))
    findings = found(held_without_working, "pod/w0", POD, NODE, crash, crash.named("z"), pull)
    assert texts(findings) == [
        "6 nvidia.com/gpu are held by 3 pods doing no work: CrashLoopBackOff (2) and ImagePullBackOff (1)"
    ]
    assert Evidence("pod/team-b/y", ".status", "ImagePullBackOff; holds 2 on n1") in findings[0].evidence


def test_a_bound_pod_that_has_not_started_is_told_once_it_is_not_new() -> None:
    pending = HOLDER.phase("Pending").created("2026-01-01T00:00:00Z")
    assert not found(held_without_working, "pod/w0", POD, NODE, pending, now=DELETED - 3600 + 30)
    assert texts(found(held_without_working, "pod/w0", POD, NODE, pending, now=DELETED)) == [
        "2 nvidia.com/gpu are held by 1 pod doing no work: not started (1)"
    ]


def test_a_pod_that_is_going_is_told_as_that_alone() -> None:
    assert not found(held_without_working, "pod/w0", POD, NODE, waits("CrashLoopBackOff", HOLDER.deleting()))


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        (POD, "preempting some would free enough on one node, which is up to default-scheduler"),
        (POD.set("spec.preemptionPolicy", "Never"), "the pod never preempts, so says its priority class"),
        (POD.scheduler("muster").gang("g"), "Muster does not preempt for gangs"),
        (POD.gang("g"), "that is up to default-scheduler"),
        (POD.gpus(9), "preempting them would not free enough on one node"),
    ],
)
def test_whether_preemption_would_help(pod: PodBuilder, word: str) -> None:
    findings = found(lower_priority_holders, "pod/w0", pod.priority(100), NODE, make_group("g", 1), HOLDER)
    assert texts(findings) == [f"2 nvidia.com/gpu are held by pods of a priority below 100: {word}"]
    assert findings[0].evidence[0] == Evidence("pod/default/w0", ".spec.priority", "100")


def test_holders_of_the_same_priority_would_not_make_way() -> None:
    assert not found(lower_priority_holders, "pod/w0", POD, NODE, HOLDER)


def test_pods_that_have_ended_hold_nothing() -> None:
    ended = make_pod("e").gpus(8).on("n1", phase="Failed")
    findings = found(finished_pods_hold_nothing, "pod/w0", POD, NODE, HOLDER, ended, ended.named("f"))
    assert texts(findings) == ["ended, still listed and holding nothing: 2 pods with nvidia.com/gpu"]
    assert findings[0].weight is Weight.FINE


def test_nothing_is_told_of_holders_where_the_pod_fits_or_none_holds() -> None:
    ended = make_pod("e").gpus(8).on("n1", phase="Succeeded")
    stuck = waits("CrashLoopBackOff")
    for topic in ALL:
        assert not found(
            topic, "pod/w0", POD.priority(5), NODE.gpus(16), stuck, ended, HOLDER.named("y").deleting()
        )
        assert not found(topic, "pod/w0", POD.priority(5).gpus(16), NODE)
