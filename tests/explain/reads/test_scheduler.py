# SPDX-License-Identifier: Apache-2.0
"""Read 3, scheduler: which gang implementation is in play."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence, Weight
from app.explain.reads.scheduler import (
    FINDINGS,
    implementation,
    label_ignored,
    native_gate_off,
    other_system,
    schedulers_split,
)  # fmt: skip
from tests.builders import PodBuilder, make_group, make_pod
from tests.explain.looking import found, texts

DEFAULT = "default-scheduler"
LABEL = make_pod("w0").gang("train")
NATIVE = make_pod("w0").native("train")
GROUP = make_group("train", 2)


@pytest.mark.parametrize(
    ("pod", "gates", "what"),
    [
        (LABEL, None, "Muster, by the label scheduling.x-k8s.io/pod-group"),
        (NATIVE, None, "Muster, by spec.schedulingGroup"),
        (make_pod("w0").gated(), None, "Muster, as a gang of one"),
        (make_pod("w0"), None, "none: the pod names no PodGroup, and Muster lets it through on its own"),
        (
            LABEL.native("train"),
            None,
            "none: the pod names two PodGroups, and Muster refuses it",
        ),
        (
            NATIVE.scheduler(DEFAULT),
            {"GenericWorkload": None},
            "kube-scheduler's own, if its feature gate GenericWorkload is on, which could not be told",
        ),
        (make_pod("w0").scheduler(DEFAULT), None, "none: default-scheduler places each pod on its own"),
        (LABEL.scheduler(DEFAULT), None, "none: default-scheduler places each pod on its own"),
        (
            NATIVE.scheduler(DEFAULT),
            None,
            "kube-scheduler's own, if its feature gate GenericWorkload is on, which could not be told",
        ),
        (NATIVE.scheduler(DEFAULT), {"GenericWorkload": True}, "kube-scheduler's own"),
        (NATIVE.scheduler(DEFAULT), {}, "none: kube-scheduler's feature gate GenericWorkload is off"),
        (
            LABEL.scheduler("batch"),
            None,
            "scheduler batch, if it runs the coscheduling plugin, which could not be told",
        ),
        (
            LABEL.scheduler("volcano"),
            None,
            "Volcano, by the name of its scheduler; its own objects decide, and were not judged",
        ),
        (
            make_pod("w0").scheduler("batch"),
            None,
            "scheduler batch; whether it places gangs could not be told",
        ),
    ],
)
def test_the_implementation_is_named(
    pod: PodBuilder, gates: dict[str, bool | None] | None, what: str
) -> None:
    findings = found(implementation, "pod/w0", pod, gates=gates)
    assert texts(findings) == [f"gang scheduling: {what}"]


def test_the_implementation_rests_on_scheduler_and_membership() -> None:
    (finding,) = found(implementation, "pod/w0", LABEL)
    assert finding.weight is Weight.NOTE
    assert finding.evidence == (
        Evidence("pod/default/w0", ".spec.schedulerName", "muster"),
        Evidence("pod/default/w0", ".metadata.labels['scheduling.x-k8s.io/pod-group']", "train"),
    )


def test_an_ordinary_pod_of_the_default_scheduler_is_nothing_to_tell() -> None:
    (finding,) = found(implementation, "pod/w0", make_pod("w0").scheduler(DEFAULT))
    assert finding.weight is Weight.FINE


def test_the_default_scheduler_ignores_the_label() -> None:
    pods = [LABEL.scheduler(DEFAULT), LABEL.named("w1").scheduler(DEFAULT)]
    (finding,) = found(label_ignored, "podgroup/train", GROUP, *pods)
    assert finding.text == (
        "2 members of scheduler default-scheduler will be placed one by one: it does not look at the label"
        " scheduling.x-k8s.io/pod-group"
    )
    assert finding.weight is Weight.WARNS
    assert finding.steps[0].command.startswith(
        "kubectl get pods -n default -l scheduling.x-k8s.io/pod-group=train"
    )
    assert not found(label_ignored, "podgroup/train", GROUP, LABEL)
    assert not found(label_ignored, "podgroup/train", GROUP, LABEL.scheduler(DEFAULT).on("n1"))
    assert not found(label_ignored, "pod/w0", NATIVE.scheduler(DEFAULT))


def test_the_native_gate_is_off_only_where_it_was_read() -> None:
    pod = NATIVE.scheduler(DEFAULT)
    (finding,) = found(native_gate_off, "pod/w0", pod, gates={"GenericWorkload": False})
    assert finding.text == (
        "1 member of scheduler default-scheduler will be placed one by one: its feature gate"
        " GenericWorkload is"
        " off, so it ignores spec.schedulingGroup"
    )
    assert not found(native_gate_off, "pod/w0", pod, gates=None)
    assert not found(native_gate_off, "pod/w0", pod, gates={"GenericWorkload": True})
    assert not found(native_gate_off, "pod/w0", NATIVE, gates={})


def test_members_of_two_schedulers() -> None:
    other = LABEL.named("w1").scheduler(DEFAULT)
    (finding,) = found(schedulers_split, "podgroup/train", GROUP, LABEL, other)
    assert finding.text == (
        "members are split over the schedulers default-scheduler (1 member) and muster (1 member): none of"
        " them"
        " sees the whole gang"
    )
    assert [one.object for one in finding.evidence] == ["pod/default/w1", "pod/default/w0"]
    assert not found(schedulers_split, "podgroup/train", GROUP, LABEL, LABEL.named("w1"))
    assert not found(schedulers_split, "podgroup/train", GROUP, LABEL.on("n1"), other.on("n1"))


def test_traces_of_other_systems_are_told_once_each() -> None:
    kueue = make_pod("w0").label("kueue.x-k8s.io/queue-name", "team").gate("kueue.x-k8s.io/admission")
    volcano = kueue.set("metadata.annotations", {"scheduling.k8s.io/group-name": "g"})
    assert texts(found(other_system, "pod/w0", volcano)) == [
        "Kueue takes part: kueue.x-k8s.io/admission",
        "Volcano takes part: scheduling.k8s.io/group-name",
    ]
    assert not found(other_system, "pod/w0", LABEL.set("metadata.annotations", {"a": "b"}))


def test_odd_objects() -> None:
    odd = LABEL.set("metadata.annotations", ["kueue.x-k8s.io/a"]).set("metadata.ownerReferences", "x")
    assert not found(other_system, "pod/w0", odd)
    assert all(not topic.meaning.endswith(" ") and topic.confirm for topic in FINDINGS)
