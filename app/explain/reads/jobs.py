# SPDX-License-Identifier: Apache-2.0
"""Read 3, jobs: suspended, over, or about to be: a Job's deadline runs while its pods are gated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from app.codec.objects import seconds
from app.codec.snapshot import JsonObject
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.makers import JOB, finished
from app.explain.objects import dig, mapping, named, number, text
from app.explain.reads.scheduler import owner_of
from app.explain.words import moment


def jobs_of(case: Case) -> Iterator[JsonObject]:
    """The Jobs that create the pods in question, and the JobSet that was asked about."""
    if case.subject.kind == "jobset" and case.root is not None:
        yield case.root
    for maker in case.makers:
        if maker.kind == JOB:
            yield maker.raw


def _data(job: JsonObject) -> dict[str, Any]:
    kind, name = text(job, "kind").lower(), text(job, "metadata", "name")
    return {"kind": kind, "name": name, "namespace": text(job, "metadata", "namespace")}


@finding(
    "Suspended",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{kind} {name} is suspended{by}: it creates no pods until spec.suspend is false",
    meaning=(
        "A suspended Job has no pods, and nothing is asked of any scheduler. A queueing system such as Kueue"
        " keeps a Job suspended until it has quota for it; then the answer is in that queue."
    ),
    confirm=("kubectl get {kind} -n {namespace} {name} -o jsonpath='{{.spec.suspend}}'",),
    decide=("resume it, or ask the queueing system that suspended it",),
)
def suspended(case: Case) -> Iterable[Hit]:
    """Each Job or JobSet that is suspended and has not ended. Beside pods of others it is no blocker."""
    for job in jobs_of(case):
        if dig(job, "spec", "suspend") is not True or finished(job) is not None:
            continue
        owners = (
            owner_of(name) for kind in ("labels", "annotations") for name in mapping(job, "metadata", kind)
        )
        system = next(filter(None, owners), "")
        by = f", and has a label of {system}" if system else ""
        weight = Weight.WARNS if case.waiting or case.bound else None
        yield hit(Evidence(named(job), ".spec.suspend", "true"), weight=weight, by=by, **_data(job))


@finding(
    "DeadlineRuns",
    read=Read.GROUP,
    sentence="{kind} {name} fails {when}, started or not: activeDeadlineSeconds {limit} counts from its"
    " start",
    meaning=(
        "activeDeadlineSeconds of a Job counts from status.startTime, which is set when the Job is created or"
        " resumed, not when its first pod runs. While the pods wait for their gang the time goes on, and at"
        " its end the Job is Failed with DeadlineExceeded and its pods are deleted."
    ),
    confirm=(
        "kubectl get {kind} -n {namespace} {name} -o jsonpath='{{.status.startTime}}"
        " {{.spec.activeDeadlineSeconds}}'",
    ),
    decide=("raise activeDeadlineSeconds, or bound the run itself inside the container",),
)
def deadline_runs(case: Case) -> Iterable[Hit]:
    """A Job with a deadline has pods that wait."""
    for job in jobs_of(case) if case.waiting else ():
        limit = number(job, "spec", "activeDeadlineSeconds")
        start = seconds(text(job, "status", "startTime"))
        if limit is None or not start or finished(job) is not None:
            continue
        yield hit(
            Evidence(named(job), ".spec.activeDeadlineSeconds", str(limit)),
            Evidence(named(job), ".status.startTime", text(job, "status", "startTime")),
            when=moment(start + limit, case.facts.now),
            limit=limit,
            **_data(job),
        )


@finding(
    "JobFailed",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{kind} {name} has failed and creates no more pods: {reason}",
    meaning=(
        "A Job that is Failed stays so: its pods are removed and no new ones are created, whatever is free."
        " BackoffLimitExceeded: too many pods failed. DeadlineExceeded: activeDeadlineSeconds went by,"
        " waiting"
        " included."
    ),
    confirm=("kubectl describe {kind} -n {namespace} {name}",),
    decide=("create it again, once the reason is known",),
)
def job_failed(case: Case) -> Iterable[Hit]:
    """Each Job that has failed; one of an earlier run beside living members is no news."""
    for job in jobs_of(case):
        condition = finished(job)
        if condition is None or text(condition, "type") != "Failed" or case.waiting or case.bound:
            continue
        reason = (
            ": ".join(filter(None, (text(condition, "reason"), text(condition, "message")))) or "no reason"
        )
        evidence = Evidence(named(job), ".status.conditions[Failed]", text(condition, "lastTransitionTime"))
        yield hit(evidence, reason=reason, **_data(job))


FINDINGS: Final[tuple[Topic[Case], ...]] = (suspended, job_failed, deadline_runs)
