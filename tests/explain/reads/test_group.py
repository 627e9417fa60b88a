# SPDX-License-Identifier: Apache-2.0
"""Read 3, group: the PodGroup that the members name."""

from __future__ import annotations

import pytest

from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.group import (
    being_deleted,
    minimum_unusable,
    mixed_apis,
    no_pod_group,
    timeout_short,
    unused_twin,
)  # fmt: skip
from tests.builders import GroupBuilder, make_group, make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import job

W0, W1 = (make_pod(name).gang("train").gated() for name in ("w0", "w1"))
NATIVE = make_pod("n0").native("train").gated()
GROUP = make_group("train", 2)
LABEL_FIELD = ".metadata.labels['scheduling.x-k8s.io/pod-group']"


def test_a_label_without_a_pod_group() -> None:
    (finding,) = found(no_pod_group, "pod/w0", W0, W1)
    assert finding.text == "2 pods name PodGroup train of scheduling.x-k8s.io, which does not exist"
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence[0] == Evidence("pod/default/w0", LABEL_FIELD, "train")


def test_the_pod_group_that_was_meant_is_named() -> None:
    assert texts(found(no_pod_group, "pod/w0", W0, GROUP.native())) == [
        "1 pod names PodGroup train of scheduling.x-k8s.io, which does not exist;"
        " one of scheduling.k8s.io has this name, and is another gang"
    ]
    assert texts(found(no_pod_group, "pod/n0", NATIVE, make_group("train", 2, "team-b").native())) == [
        "1 pod names PodGroup train of scheduling.k8s.io, which does not exist;"
        " one of this name is in namespace team-b"
    ]


def test_no_pod_group_is_missed_where_there_is_one_or_none_is_needed() -> None:
    assert not found(no_pod_group, "pod/w0", W0, GROUP)
    assert not found(no_pod_group, "pod/w0", make_pod("w0").gated())
    assert not found(no_pod_group, "pod/w0", W0.on("n1"))
    unseen = (Unseen("PodGroup.scheduling.x-k8s.io", "forbidden"),)
    assert not found(no_pod_group, "pod/w0", W0, unseen=unseen)


def test_a_missing_pod_group_need_not_stop_other_schedulers() -> None:
    (finding,) = found(no_pod_group, "pod/w0", W0.scheduler("batch"))
    assert finding.weight is Weight.WARNS


def test_both_apis_on_one_pod() -> None:
    (finding,) = found(mixed_apis, "pod/w0", W0.native("other"), GROUP)
    assert finding.text == (
        "1 pod has both a label and spec.schedulingGroup (scheduling.x-k8s.io/pod-group=train and"
        " spec.schedulingGroup.podGroupName=other): Muster places neither gang"
    )
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (Evidence("pod/default/w0", LABEL_FIELD, "train"),)
    assert not found(mixed_apis, "pod/w0", W0)


def test_a_pod_group_of_the_same_name_in_the_other_api() -> None:
    (finding,) = found(unused_twin, "pod/w0", W0, GROUP, GROUP.native(), NATIVE)
    assert finding.text == (
        "there is a PodGroup train of scheduling.k8s.io too: it is another gang, with 1 member"
    )
    assert not found(unused_twin, "pod/w0", W0, GROUP, NATIVE)


@pytest.mark.parametrize(
    ("group", "text", "weight"),
    [
        (make_group("train", None), "no minimum", Weight.WARNS),
        (make_group("train", 0), "a minimum of 0", Weight.WARNS),
        (make_group("train", -2), "a minimum of -2", Weight.WARNS),
        (
            make_group("train").native().set("spec", {"schedulingPolicy": {"basic": {}}}),
            "no minimum",
            Weight.NOTE,
        ),
    ],
)
def test_a_minimum_that_is_none(group: GroupBuilder, text: str, weight: Weight) -> None:
    (finding,) = found(minimum_unusable, "podgroup/train", group)
    assert finding.text == (
        f"PodGroup train declares {text}: it counts as 1, so each member starts on its own"
    )
    assert finding.weight is weight


def test_a_usable_minimum_is_not_told() -> None:
    assert not found(minimum_unusable, "podgroup/train", GROUP)
    assert not found(minimum_unusable, "pod/w0", W0)


def test_a_short_timeout() -> None:
    (finding,) = found(timeout_short, "podgroup/train", GROUP.timeout(5), W0)
    assert finding.text == ("PodGroup train gives its members 5 s to gather: else all seats go back")
    assert not found(timeout_short, "podgroup/train", GROUP.timeout(600), W0)
    assert not found(timeout_short, "podgroup/train", GROUP, W0)
    assert not found(timeout_short, "podgroup/train", GROUP.timeout(5), W0.on("n1"))


def test_what_is_being_deleted() -> None:
    going = GROUP.set("metadata.deletionTimestamp", "2026-01-01T00:10:00Z")
    (finding,) = found(
        being_deleted, "podgroup/train", going.set("metadata.finalizers", ["example.com/keep"])
    )
    assert finding.text == (
        "podgroup.scheduling.x-k8s.io/train is being deleted, and held by example.com/keep"
    )
    assert finding.evidence[0].value == "2026-01-01T00:10:00Z"
    owner = job("j").set("metadata.deletionTimestamp", "2026-01-01T00:10:00Z")
    assert texts(found(being_deleted, "job/j", owner)) == ["job/j is being deleted"]
    assert texts(found(being_deleted, "job/j", owner.set("metadata.finalizers", "odd"))) == [
        "job/j is being deleted"
    ]
    assert not found(being_deleted, "podgroup/train", GROUP)
