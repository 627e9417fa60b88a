# SPDX-License-Identifier: Apache-2.0
"""Read 3, Muster itself: is the namespace switched on, were the pods taken over, does somebody serve them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.codec.objects import seconds
from app.codec.snapshot import JsonObject
from app.domain.pod import GATE, GATE_ANNOTATION, Pod
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import named, number, text
from app.explain.reads.scheduler import DEFAULT
from app.explain.words import count, span

ENABLED: Final = "muster.dev/enabled"
_FIELD: Final = f".metadata.labels['{ENABLED}']"
_VALUES: Final = ("gangs", "gpus")
_POLICY: Final = "MutatingAdmissionPolicy.admissionregistration.k8s.io"
_LEASE: Final = "Lease.coordination.k8s.io"
_LEASE_SECONDS: Final = 15


def _namespace(case: Case) -> JsonObject | None:
    return case.objects.get("Namespace", "", case.subject.namespace)


def _enabled(case: Case) -> str | None:
    """The value of the label; empty without one, None when the namespace was not read."""
    namespace = _namespace(case)
    return text(namespace, "metadata", "labels", ENABLED) if namespace is not None else None


@finding(
    "NamespaceNotEnabled",
    read=Read.GROUP,
    sentence="the pods are members of a gang, and Muster does not see to namespace {namespace}: {why}",
    meaning=(
        "Muster's admission policy takes pods over in namespaces whose label muster.dev/enabled is gangs or"
        " gpus, when they are created. In any other namespace a member keeps the default scheduler, which"
        " knows nothing of the gang. Nothing is wrong where another gang scheduler is meant to do it."
    ),
    confirm=("kubectl get namespace {namespace} --show-labels",),
    decide=("label the namespace {namespace} with muster.dev/enabled=gangs, then create the pods again",),
)
def namespace_not_enabled(case: Case) -> Iterable[Hit]:
    """Members wait for the default scheduler, and the label of the namespace is not what it should be."""
    value = _enabled(case)
    left = [pod for pod in case.waiting if pod.grouped and pod.scheduler == DEFAULT]
    if value is None or value in _VALUES or not left:
        return
    why = f"the label {ENABLED} is {value}, which is neither gangs nor gpus" if value else f"no {ENABLED}"
    evidence = Evidence(f"namespace/{case.subject.namespace}", _FIELD, value or "absent")
    yield hit(evidence, namespace=case.subject.namespace, why=why)


@finding(
    "NotTakenOver",
    read=Read.GROUP,
    sentence="namespace {namespace} is switched on ({value}), and {pods} without {lacks}: {why}",
    meaning=(
        "In a namespace that is switched on, the admission policy gives a pod schedulerName muster and the"
        " gate muster.dev/gang at its creation, and never later: a gate cannot be added to a pod. Pods that"
        " are older than the label, or were created while the policy was absent, go without (those with the"
        " annotation muster.dev/gate: none, as in a burst, on purpose). Those that name"
        " Muster's scheduler still start only with their gang, but they are tried again and again; those of"
        " the default scheduler start on their own."
    ),
    confirm=("kubectl get mutatingadmissionpolicies,mutatingadmissionpolicybindings",),
    decide=("create the pods again, once the policy and the label are there",),
)
def not_taken_over(case: Case) -> Iterable[Hit]:
    """The namespace is switched on and waiting pods that the policy covers lack what it sets."""
    value = _enabled(case)
    missed = [pod for pod in case.waiting if _missed(case, pod, value or "")]
    if not missed or value is None:
        return
    default = [pod for pod in missed if pod.scheduler == DEFAULT]
    absent = not case.facts.blind(_POLICY) and case.objects.get(_POLICY, "", "muster") is None
    shown = default or missed
    older = "older than the label or the policy" + ("" if default else ", or had seats before")
    field, lacks = (
        ("schedulerName", "schedulerName muster") if default else ("schedulingGates", f"gate {GATE}")
    )
    why = "no MutatingAdmissionPolicy muster was found" if absent else older
    yield hit(
        Evidence(f"namespace/{case.subject.namespace}", _FIELD, value),
        *(Evidence(f"pod/{p.key}", f".spec.{field}", p.scheduler if default else "absent") for p in shown),
        weight=None if default else Weight.NOTE,
        namespace=case.subject.namespace,
        value=value,
        pods=count(len(shown), "pod waits", "pods wait"),
        lacks=lacks,
        why=why,
    )


def _missed(case: Case, pod: Pod, value: str) -> bool:
    """Whether the policy would take the pod over, and it carries no trace of that."""
    if value not in _VALUES or pod.gated or pod.single or case.inventory.book.get(pod.uid) is not None:
        return False
    if pod.scheduler not in (DEFAULT, case.inventory.scheduler):
        return False
    on_purpose = text(case.raw(pod), "metadata", "annotations", GATE_ANNOTATION) == "none"
    if pod.grouped:
        return pod.scheduler == DEFAULT or not on_purpose
    return value == "gpus" and pod.wants_devices


@finding(
    "SchedulerNotSeen",
    read=Read.GROUP,
    sentence="{pods} for scheduler {scheduler}, and {what}",
    meaning=(
        "kube-scheduler and Muster run in one pod and share a Lease. While nobody renews it, no gang is"
        " planned and no gate is lifted: gated pods wait for ever. Where leader election is off"
        " (MUSTER_ACTIVE=always) there is no Lease, and its absence means nothing."
    ),
    confirm=(
        "kubectl get leases -A --field-selector metadata.name={scheduler}",
        "kubectl get pods -A -l app.kubernetes.io/name=muster",
    ),
)
def scheduler_not_seen(case: Case) -> Iterable[Hit]:
    """Pods wait for Muster, Leases were read, and Muster's is missing or was not renewed in time."""
    leases = list(case.objects.of(_LEASE))
    if not case.ours or not leases or case.facts.blind(_LEASE):
        return
    name = case.inventory.scheduler
    own = [lease for lease in leases if text(lease, "metadata", "name") == name]
    if not own and case.facts.namespaces is not None:
        return  # it may be in a namespace that was not read
    late = [_late(lease, case.facts.now) for lease in own]
    if own and not all(late):
        return
    what = f"its Lease was last renewed {span(min(late))} ago" if own else f"no Lease {name} was found"
    evidence = (Evidence(named(lease), ".spec.renewTime", text(lease, "spec", "renewTime")) for lease in own)
    pods = count(len(case.waiting), "pod waits", "pods wait")
    yield hit(*evidence, pods=pods, scheduler=name, what=what)


def _late(lease: JsonObject, now: int) -> int:
    """Seconds since a renewal that is overdue; 0 if it is not, or the present is not known."""
    ago = now - seconds(text(lease, "spec", "renewTime"))
    patience = max(_LEASE_SECONDS, number(lease, "spec", "leaseDurationSeconds") or 0)
    return ago if now and ago > 2 * patience else 0


FINDINGS: Final[tuple[Topic[Case], ...]] = (namespace_not_enabled, not_taken_over, scheduler_not_seen)
