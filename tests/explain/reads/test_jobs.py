# SPDX-License-Identifier: Apache-2.0
"""Read 3, jobs: suspended, failed, or with a deadline that runs."""

from __future__ import annotations

from app.explain.finding import Evidence, Weight
from app.explain.reads.jobs import deadline_runs, job_failed, suspended
from tests.builders import make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import NOW, ended, job, of, plain

JOB = job("train", activeDeadlineSeconds=5400)
POD = of(JOB, make_pod("w0").gated())


def test_a_suspended_job_has_no_pods() -> None:
    (finding,) = found(suspended, "job/train", JOB.set("spec.suspend", True))
    assert finding.text == "job train is suspended: it creates no pods until spec.suspend is false"
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (Evidence("job/default/train", ".spec.suspend", "true"),)
    queued = JOB.set("spec.suspend", True).label("kueue.x-k8s.io/queue-name", "gold")
    assert texts(found(suspended, "job/train", queued)) == [
        "job train is suspended, and has a label of Kueue: it creates no pods until spec.suspend is false"
    ]
    assert not found(suspended, "job/train", JOB)
    assert not found(suspended, "job/train", ended(JOB.set("spec.suspend", True), "Complete"))


def test_a_suspended_job_set_is_told_itself() -> None:
    job_set = plain("jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec={"suspend": True})
    assert texts(found(suspended, "jobset/train", job_set)) == [
        "jobset train is suspended: it creates no pods until spec.suspend is false"
    ]


def test_a_deadline_runs_while_pods_are_gated() -> None:
    (finding,) = found(deadline_runs, "job/train", JOB, POD, now=NOW)
    assert finding.text == (
        "job train fails at 2026-01-01T01:30:00Z (in 30m), started or not:"
        " activeDeadlineSeconds 5400 counts from its start"
    )
    assert finding.weight is Weight.WARNS
    assert finding.evidence == (
        Evidence("job/default/train", ".spec.activeDeadlineSeconds", "5400"),
        Evidence("job/default/train", ".status.startTime", "2026-01-01T00:00:00Z"),
    )
    assert "fails at 2026-01-01T01:30:00Z, started" in found(deadline_runs, "pod/w0", JOB, POD)[0].text


def test_no_deadline_runs() -> None:
    assert not found(deadline_runs, "job/train", JOB, POD.on("n1"), now=NOW)
    assert not found(deadline_runs, "job/train", job("train"), POD, now=NOW)
    assert not found(deadline_runs, "job/train", ended(JOB, "Complete"), POD, now=NOW)
    assert not found(deadline_runs, "job/train", JOB.set("status.startTime", 7), POD, now=NOW)


def test_a_failed_job_creates_no_more() -> None:
    failed = ended(JOB, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    (finding,) = found(job_failed, "job/train", failed)
    assert finding.text == (
        "job train has failed and creates no more pods:"
        " BackoffLimitExceeded: Job has reached the specified backoff limit"
    )
    assert not found(job_failed, "job/train", ended(JOB, "Complete"))
    assert not found(job_failed, "job/train", failed, POD), "its pods wait for another reason"
