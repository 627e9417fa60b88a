# SPDX-License-Identifier: Apache-2.0
"""Read 3, quota and admission: pods that were never created."""

from __future__ import annotations

import pytest

from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.admission import creation_refused, pods_not_created, quota_exceeded, quota_too_small
from tests.builders import GPU, make_group, make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import NOW, event, job, of, quota, replica_set, stateful_set

JOB = job("train", 4, gpus=2)
NAME = f"requests.{GPU}"
SPENT = quota("gpus", hard={NAME: "8"}, used={NAME: "7"})
EXCEEDED = (
    'Error creating: pods "train-0-x7k2p" is forbidden: exceeded quota: gpus,'
    f" requested: {NAME}=2, used: {NAME}=7, limited: {NAME}=8"
)
REFUSED = event(JOB, "FailedCreate", EXCEEDED, at="2026-01-01T00:58:00Z", times=12)


def test_a_job_without_pods_because_of_a_quota() -> None:
    (finding,) = found(quota_exceeded, "job/train", JOB, SPENT, REFUSED, now=NOW)
    assert finding.text == (
        "quota gpus refuses 4 pods of job train: requested requests.nvidia.com/gpu=2,"
        " used requests.nvidia.com/gpu=7 of requests.nvidia.com/gpu=8"
    )
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (
        Evidence(
            "event/default/train.failedcreate",
            ".message",
            f"{EXCEEDED} (FailedCreate at 2026-01-01T00:58:00Z (2m ago), 12 times)",
        ),
        Evidence("resourcequota/default/gpus", f".status.used['{NAME}']", "7 of 8"),
    )
    assert finding.steps[0].command == "kubectl describe resourcequota -n default gpus"


def test_some_pods_of_a_job_without_a_gang_only_warn() -> None:
    pod = of(JOB, make_pod("train-0"))
    (finding,) = found(quota_exceeded, "job/train", JOB, REFUSED, pod)
    assert finding.weight is Weight.WARNS
    assert finding.text.startswith("quota gpus refuses 3 pods of job train:")


def test_a_gang_that_a_quota_keeps_below_its_minimum_is_blocked() -> None:
    owner = job("train", 4, gang="g")
    pods = [of(owner, make_pod(f"train-{i}").gang("g").gated()) for i in range(2)]
    (finding,) = found(quota_exceeded, "podgroup/g", make_group("g", 4), owner, REFUSED, *pods)
    assert finding.weight is Weight.BLOCKS
    (finding,) = found(quota_exceeded, "podgroup/g", make_group("g", 2), owner, REFUSED, *pods)
    assert finding.weight is Weight.WARNS


def test_an_old_failure_of_a_job_that_has_all_its_pods_is_no_news() -> None:
    owner = job("train", 1)
    assert not found(quota_exceeded, "job/train", owner, REFUSED, of(owner, make_pod("train-0")))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (
            'Error creating: admission webhook "v.example.com" denied the request: no team label',
            "an admission webhook refused it"
            ' (admission webhook "v.example.com" denied the request: no team label)',
        ),
        (
            'Error creating: pods "a" is forbidden: violates PodSecurity "restricted:latest": hostPath',
            "the namespace's Pod Security level forbids it"
            ' (pods "a" is forbidden: violates PodSecurity "restricted:latest": hostPath)',
        ),
        (
            'Error creating: pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
            "a LimitRange forbids it"
            ' (pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2)',
        ),
        (
            'Error creating: pods "a" is forbidden: failed quota: q: must specify limits.cpu',
            "a quota wants requests or limits that the template lacks"
            ' (pods "a" is forbidden: failed quota: q: must specify limits.cpu)',
        ),
        ("Error creating: something new", "something new"),
        ("create Pod ps-0 in StatefulSet ps failed error: something: new", "something: new"),
    ],
)
def test_other_refusals_are_told_in_the_words_of_the_api_server(message: str, why: str) -> None:
    told = event(JOB, "FailedCreate", message)
    assert texts(found(creation_refused, "job/train", JOB, told)) == [
        f"the API server refuses 4 pods of job train: {why}"
    ]


def test_the_latest_failure_counts() -> None:
    other = event(JOB, "FailedCreate", "Error creating: later", at="2026-01-01T00:59:00Z").named("newer")
    assert texts(found(creation_refused, "job/train", JOB, REFUSED, other)) == [
        "the API server refuses 4 pods of job train: later"
    ]
    assert not found(quota_exceeded, "job/train", JOB, REFUSED, other)
    assert not found(creation_refused, "job/train", JOB, REFUSED)


def test_events_of_the_newer_api_are_read_too() -> None:
    newer = (
        REFUSED.set("apiVersion", "events.k8s.io/v1")
        .set("regarding", REFUSED.get("involvedObject"))
        .set("involvedObject", None)
        .set("note", EXCEEDED)
        .set("message", None)
    )
    assert len(found(quota_exceeded, "job/train", JOB, newer)) == 1


def test_a_replica_set_remembers_what_no_event_tells_any_more() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": EXCEEDED[16:]}
    owner = replica_set("web", 2).set("status.conditions", [failure])
    (finding,) = found(quota_exceeded, "replicaset/web", owner)
    assert finding.text.startswith("quota gpus refuses 2 pods of replicaset web: requested")
    assert (finding.evidence[0].object, finding.evidence[0].field) == (
        "replicaset/default/web",
        ".status.conditions[ReplicaFailure].message",
    )
    cured = owner.set("status.conditions", [{**failure, "status": "False"}])
    assert not found(quota_exceeded, "replicaset/web", cured)


def test_a_sum_that_leaves_too_little_for_one_more() -> None:
    (finding,) = found(quota_too_small, "job/train", JOB, SPENT)
    assert finding.text == (
        "quota gpus leaves 1 nvidia.com/gpu, and each of 4 pods to come from job train asks for 2"
    )
    assert finding.weight is Weight.BLOCKS
    assert not found(quota_too_small, "job/train", JOB, SPENT, REFUSED), "the event has said it"
    roomy = quota("gpus", hard={NAME: "9"}, used={NAME: "7"})
    assert not found(quota_too_small, "job/train", JOB, roomy)


def test_cpu_and_pods_count_in_their_units() -> None:
    small = quota("cpu", hard={"cpu": "5", "pods": "3"}, used={"cpu": "3500m", "pods": "3"})
    assert texts(found(quota_too_small, "job/train", JOB, small)) == [
        "quota cpu leaves 1.5 cpu, and each of 4 pods to come from job train asks for 2",
        "quota cpu leaves 0 pods, and each of 4 pods to come from job train asks for 1",
    ]


def test_quotas_that_are_odd_or_have_scopes_are_not_judged() -> None:
    scoped = quota("gpus", hard={NAME: "0"}, used={}, scopes=["BestEffort"])
    odd = quota("odd", hard={NAME: "many"}, used={})
    assert not found(quota_too_small, "job/train", JOB, scoped, odd, SPENT.set("status", "odd"))
    assert not found(quota_too_small, "job/train", JOB.set("spec.template", None), SPENT)


def test_pods_that_are_missing_without_a_trace() -> None:
    (finding,) = found(pods_not_created, "replicaset/web", replica_set("web", 2))
    assert finding.text == "replicaset web has 0 of 2 pods, and nothing that was read says why"
    assert finding.steps[0].command == "kubectl describe -n default replicaset/web"
    assert not found(pods_not_created, "job/train", JOB, REFUSED)
    assert not found(pods_not_created, "job/train", JOB, SPENT), "the quota says why"
    unseen = (Unseen("Pod", "forbidden"),)
    assert not found(pods_not_created, "job/train", JOB, unseen=unseen), "they may be there"


def test_an_ordered_stateful_set_may_have_fewer_for_a_while() -> None:
    owner = stateful_set("ps", 3)
    assert not found(pods_not_created, "statefulset/ps", owner, of(owner, make_pod("ps-0")))
    assert found(pods_not_created, "statefulset/ps", owner)


def test_a_deployment_is_asked_through_its_replica_set() -> None:
    deployment = replica_set("web", 2).set("kind", "Deployment").uid("uid-deployment")
    owned = replica_set("web-1", 2).set(
        "metadata.ownerReferences", [{"kind": "Deployment", "uid": "uid-deployment", "controller": True}]
    )
    told = event(owned, "FailedCreate", EXCEEDED)
    (finding,) = found(quota_exceeded, "deployment/web", deployment, owned, told)
    assert finding.text.startswith("quota gpus refuses 2 pods of replicaset web-1:")
