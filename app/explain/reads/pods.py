# SPDX-License-Identifier: Apache-2.0
"""Read 3, the pods themselves: volumes, preemption, last attempt, latest event, a node at creation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.codec.snapshot import JsonObject
from app.domain.pod import Pod
from app.domain.reasons import Refusal
from app.explain import attempt
from app.explain.case import Case
from app.explain.events import Happened
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, maps, named, text
from app.explain.words import count, listed, moment

_CLAIM: Final = "PersistentVolumeClaim"
_STORAGE: Final = "StorageClass.storage.k8s.io"
_LONGEST: Final = 400


def _speaker(case: Case) -> Pod | None:
    """The pod whose words are told: the one asked about, else the first that waits."""
    return case.focus or (case.waiting[0] if case.waiting else None)


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"


@finding(
    "LastAttempt",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="pod {pod}, {scheduler} {when}: {message}",
    meaning=(
        "The condition PodScheduled holds what the scheduler said at its last attempt, as a histogram of"
        " reasons over nodes. It may be old: it changes only when the pod is tried again."
    ),
    confirm=("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.status.conditions}}'",),
)
def last_attempt(case: Case) -> Iterable[Hit]:
    """The condition of the pod that speaks for the others; a gated pod was not tried."""
    pod = _speaker(case)
    if pod is None or pod.node is not None:
        return
    said = attempt.last_attempt(pod)
    if not said.message or said.reason == "SchedulingGated":
        return
    when = moment(said.at, case.facts.now) if said.at else "at an unknown time"
    evidence = Evidence(
        f"pod/{pod.key}", ".status.conditions[PodScheduled]", f"{said.reason}: {said.message}"
    )
    yield hit(
        evidence,
        pod=pod.name,
        namespace=pod.namespace,
        scheduler=pod.scheduler,
        when=when,
        message=_short(said.message),
    )


@finding(
    "LatestEvent",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="latest event on {object} {when}: {reason}, {message}",
    meaning=(
        "Schedulers, controllers and Muster tell in events what they do. Events are kept for an hour unless"
        " the API server is told otherwise, so an old one may be missing."
    ),
    confirm=("kubectl events -n {namespace} --for {object}",),
)
def latest_event(case: Case) -> Iterable[Hit]:
    """The newest event on the pod that speaks and on the PodGroup, unless the last attempt says the same."""
    pod = _speaker(case)
    said = attempt.last_attempt(pod).message if pod is not None else ""
    for kind, name, namespace in _about(case, pod):
        told: list[Happened] = [event for event in case.events.get((kind, name), ()) if event.message != said]
        if told:
            event = told[-1]
            when = moment(event.at, case.facts.now) if event.at else "at an unknown time"
            yield hit(
                Evidence(event.object, ".message", f"{event.source}: {event.message}{event.count}"),
                object=f"{kind.lower()}/{name}",
                when=when,
                reason=event.reason,
                message=_short(event.message),
                namespace=namespace,
            )


def _about(case: Case, pod: Pod | None) -> Iterator[tuple[str, str, str]]:
    if pod is not None:
        yield "Pod", pod.name, pod.namespace
    if case.gang is not None and case.gang.group is not None and case.waiting:
        yield "PodGroup", case.gang.key.name, case.gang.key.namespace


@finding(
    "VolumeUnbound",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="volume claim {claim} of {pods} {state}",
    meaning=(
        "A scheduler places a pod only if its PersistentVolumeClaims exist and are bound, or will be bound"
        " once a node is chosen (storage class with WaitForFirstConsumer). A claim that is missing, lost, or"
        " pending with immediate binding keeps the pod from every node. Muster reserves seats without regard"
        " to volumes, so such a gang may have its seats and not start."
    ),
    confirm=("kubectl describe pvc -n {namespace} {claim}",),
    decide=("create the claim {claim}, or see to its storage class and provisioner",),
)
def volume_unbound(case: Case) -> Iterable[Hit]:
    """Each claim of a waiting pod that is not bound."""
    if case.facts.blind(_CLAIM):
        return
    users: dict[tuple[str, str], list[Pod]] = {}
    for pod in case.waiting:
        for name in _claims(case.raw(pod)):
            users.setdefault((pod.namespace, name), []).append(pod)
    for (namespace, name), pods in users.items():
        claim = case.objects.get(_CLAIM, namespace, name)
        state, weight = _state(case, claim)
        if state:
            weight = weight or (Weight.WARNS if case.spares(pods) else None)
            where = claim if claim is not None else case.raw(pods[0])
            field = ".status.phase" if claim is not None else ".spec.volumes"
            value = text(claim, "status", "phase") if claim is not None else name
            who = f"pod {pods[0].name}" if len(pods) == 1 else count(len(pods), "pod")
            yield hit(Evidence(named(where), field, value), weight=weight, claim=name, pods=who, state=state,
                      namespace=namespace)  # fmt: skip


def _claims(pod: JsonObject) -> Iterator[str]:
    for volume in maps(pod, "spec", "volumes"):
        name = text(volume, "persistentVolumeClaim", "claimName")
        if name:
            yield name
        elif dig(volume, "ephemeral") is not None:
            yield f"{text(pod, 'metadata', 'name')}-{text(volume, 'name')}"


def _state(case: Case, claim: JsonObject | None) -> tuple[str, Weight | None]:
    """What is wrong with a claim, and how much; nothing if it is bound."""
    if claim is None:
        return "does not exist", None
    phase = text(claim, "status", "phase") or "Pending"
    if phase == "Bound":
        return "", None
    if phase == "Lost":
        return "has lost its volume", None
    name = text(claim, "spec", "storageClassName")
    storage = case.objects.get(_STORAGE, "", name)
    mode = text(storage, "volumeBindingMode") or ("Immediate" if storage is not None else "")
    if mode == "WaitForFirstConsumer":
        return "is bound once a node is chosen", Weight.FINE
    if mode == "Immediate":
        return "is pending, and its storage class binds at once", None
    absent = "was not read" if case.facts.blind(_STORAGE) else "was not found"
    why = f"storage class {name} {absent}" if name else "it names no storage class"
    return f"is pending, and {why}", Weight.WARNS


@finding(
    "NeverPreempts",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{pods} preemptionPolicy Never: priority {priority} brings an earlier turn and evicts nobody",
    meaning=(
        "preemptionPolicy Never, usually from the PriorityClass, lets a pod wait for devices instead of"
        " taking"
        " them from pods of lower priority."
    ),
    confirm=("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.preemptionPolicy}}'",),
    decide=("use a PriorityClass with preemptionPolicy PreemptLowerPriority",),
)
def never_preempts(case: Case) -> Iterable[Hit]:
    """Pods of some priority find no room and do not preempt."""
    if not isinstance(case.now, Refusal) or isinstance(case.when_empty, Refusal):
        return
    meek = [pod for pod in case.waiting if not pod.preempts and pod.priority > 0]
    if meek:
        yield hit(
            *(Evidence(f"pod/{pod.key}", ".spec.preemptionPolicy", "Never") for pod in meek),
            pods=count(len(meek), "pod has", "pods have"),
            priority=listed(sorted({str(pod.priority) for pod in meek})),
            namespace=meek[0].namespace,
            pod=meek[0].name,
        )


@finding(
    "CreatedOnNode",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="pod {pod} was created with nodeName {node} by {manager}: no scheduler looked at it",
    meaning=(
        "A pod whose nodeName is set at its creation goes straight to that kubelet, past every scheduler,"
        " gate"
        " and reservation. If the node has no room, kubelet refuses it (OutOfcpu, UnexpectedAdmissionError)."
    ),
    confirm=(
        "kubectl get pod -n {namespace} {pod} --show-managed-fields -o"
        " jsonpath='{{.metadata.managedFields}}'",
    ),
    decide=("leave nodeName out of the pod; use a nodeSelector to choose a node",),
)
def created_on_node(case: Case) -> Iterable[Hit]:
    """A binding leaves no trace in managedFields; a nodeName that its creator wrote does."""
    for pod in case.bound:
        for entry in maps(case.raw(pod), "metadata", "managedFields"):
            if dig(entry, "fieldsV1", "f:spec", "f:nodeName") is not None:
                manager = text(entry, "manager")
                evidence = Evidence(f"pod/{pod.key}", ".metadata.managedFields[f:nodeName]", manager)
                yield hit(evidence, pod=pod.name, namespace=pod.namespace, node=pod.node, manager=manager)


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    volume_unbound,
    created_on_node,
    never_preempts,
    last_attempt,
    latest_event,
)
