# SPDX-License-Identifier: Apache-2.0
"""Read 3, scheduler: which gang implementation is in play, and whether it sees the whole gang.

What a scheduler of another name does cannot be read from the API: it is named, not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.codec.objects import GROUP_LABEL
from app.domain.ids import GangApi
from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import mapping, text
from app.explain.words import count, listed

DEFAULT: Final = "default-scheduler"
NATIVE_GATE: Final = "GenericWorkload"
NATIVE_FIELD: Final = ".spec.schedulingGroup.podGroupName"
LABEL_FIELD: Final = f".metadata.labels['{GROUP_LABEL}']"
_KNOWN: Final = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "yunikorn": "YuniKorn",
    "koord-scheduler": "Koordinator",
}
"""Schedulers that group pods by rules of their own, by the name they usually have."""
_TRACES: Final = {
    "kueue.x-k8s.io/": "Kueue",
    "scheduling.k8s.io/group-name": "Volcano",
    "volcano.sh/": "Volcano",
    "scheduling.volcano.sh/": "Volcano",
    "kai.scheduler/": "KAI",
    "yunikorn.apache.org/": "YuniKorn",
    "gang.scheduling.koordinator.sh/": "Koordinator",
    "grove.io/": "Grove",
}
"""Who a label, an annotation or a gate of a pod belongs to, by the start of its name."""


def owner_of(name: str) -> str:
    """The system that a label, annotation or gate belongs to; empty if it is not known."""
    return next((system for start, system in _TRACES.items() if name.startswith(start)), "")


def starts_as_one(case: Case) -> bool:
    """Whether a scheduler that serves gangs places the waiting members, as far as can be told."""
    if case.gang is None or case.gang.key.api is GangApi.SINGLE:
        return False
    if DEFAULT not in {pod.scheduler for pod in case.waiting}:
        return True
    return case.gang.key.api is GangApi.NATIVE and _native_gate(case) is not False


def _native_gate(case: Case) -> bool | None:
    """Whether kube-scheduler serves native gangs; None if that could not be told. One that has never heard of
    the gate does not."""
    gates = case.facts.gates
    return gates.get(NATIVE_GATE, False) if gates is not None else None


@finding(
    "GangImplementation",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="gang scheduling: {what}",
    meaning=(
        "A pod belongs to a gang by the label scheduling.x-k8s.io/pod-group or by spec.schedulingGroup, and"
        " only a scheduler that looks at the one or the other starts the members together. Muster looks at"
        " both. kube-scheduler itself looks at spec.schedulingGroup alone, and only if its feature gate"
        " GenericWorkload is on. Other schedulers (coscheduling plugin, Volcano, KAI, YuniKorn) have names of"
        " their own; what they do is not in the API, so a report says that it could not tell."
    ),
    confirm=("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.schedulerName}}'",),
)
def implementation(case: Case) -> Iterable[Hit]:
    """Once per case that has a pod alive. Ordinary pods of the default scheduler are nothing to tell."""
    pod = next((pod for pod in case.asking if pod.alive), None)
    if pod is None:
        return
    what = _implementation(case, pod)
    ordinary = pod.gang is None and pod.scheduler == DEFAULT
    yield hit(
        Evidence(f"pod/{pod.key}", ".spec.schedulerName", pod.scheduler),
        *_membership(pod),
        weight=Weight.FINE if ordinary else None,
        what=what,
        namespace=pod.namespace,
        pod=pod.name,
    )


def _membership(pod: Pod) -> Iterator[Evidence]:
    if pod.gang is not None and not pod.single:
        field = LABEL_FIELD if pod.gang.api is GangApi.LABEL else NATIVE_FIELD
        yield Evidence(f"pod/{pod.key}", field, pod.gang.name)


def _implementation(case: Case, pod: Pod) -> str:
    api = pod.gang.api if pod.gang is not None else None
    if pod.scheduler == case.inventory.scheduler:
        return _ours(api) if pod.mixed is None else "none: the pod names two PodGroups, and Muster refuses it"
    if pod.scheduler == DEFAULT:
        return _default(case, api)
    known = _KNOWN.get(pod.scheduler)
    if known is not None:
        return f"{known}, by the name of its scheduler; its own objects decide, and were not judged"
    if api is GangApi.LABEL:
        return f"scheduler {pod.scheduler}, if it runs the coscheduling plugin, which could not be told"
    return f"scheduler {pod.scheduler}; whether it places gangs could not be told"


def _ours(api: GangApi | None) -> str:
    if api is GangApi.SINGLE:
        return "Muster, as a gang of one"
    if api is None:
        return "none: the pod names no PodGroup, and Muster lets it through on its own"
    return f"Muster, by {'the label ' + GROUP_LABEL if api is GangApi.LABEL else 'spec.schedulingGroup'}"


def _default(case: Case, api: GangApi | None) -> str:
    if api is not GangApi.NATIVE:
        return f"none: {DEFAULT} places each pod on its own"
    on = _native_gate(case)
    if on is None:
        return f"kube-scheduler's own, if its feature gate {NATIVE_GATE} is on, which could not be told"
    return "kube-scheduler's own" if on else f"none: kube-scheduler's feature gate {NATIVE_GATE} is off"


@finding(
    "NativeGateOff",
    read=Read.GROUP,
    sentence="{members} of scheduler {scheduler} will be placed one by one: its feature gate"
    " GenericWorkload is off, so it ignores spec.schedulingGroup",
    meaning=(
        "The API server and the scheduler have a feature gate GenericWorkload each. With the API server's"
        " on, PodGroups and spec.schedulingGroup are kept; with the scheduler's off, nobody acts on them:"
        " members bind as soon as each finds a place, and a gang that does not fit starts in part."
    ),
    confirm=(
        "kubectl get pods -n kube-system -l component=kube-scheduler",
        "kubectl get --raw /api/v1/namespaces/kube-system/pods/https:POD:10259/proxy/metrics"
        " | grep GenericWorkload",
    ),
    decide=("turn the gate on in kube-scheduler, or let Muster place the gang",),
)
def native_gate_off(case: Case) -> Iterable[Hit]:
    """Native members that wait for a scheduler whose gate is known to be off."""
    members = _waiting(case, DEFAULT, GangApi.NATIVE)
    if members and _native_gate(case) is False:
        evidence = (Evidence(f"pod/{pod.key}", NATIVE_FIELD, pod.gang.name) for pod in members if pod.gang)
        yield hit(
            Evidence("kube-scheduler", f"kubernetes_feature_enabled{{name='{NATIVE_GATE}'}}", "0"),
            *evidence,
            members=count(len(members), "member"),
            scheduler=DEFAULT,
        )


@finding(
    "LabelIgnored",
    read=Read.GROUP,
    sentence="{members} of scheduler {scheduler} will be placed one by one: it does not look at the label"
    " scheduling.x-k8s.io/pod-group",
    meaning=(
        "The label and its PodGroup mean something to Muster and to schedulers with the coscheduling plugin."
        " The default scheduler reads neither. It binds each member as soon as that one finds a place, so a"
        " gang that does not fit starts in part and holds devices that compute nothing."
    ),
    confirm=("kubectl get pods -n {namespace} -l scheduling.x-k8s.io/pod-group={group} -o wide",),
    decide=(
        "have a scheduler that serves the label place it: create the pods again with its schedulerName, or"
        " with Muster's admission policy in namespace {namespace}",
    ),
)
def label_ignored(case: Case) -> Iterable[Hit]:
    """Members by label that wait for the default scheduler."""
    members = _waiting(case, DEFAULT, GangApi.LABEL)
    if members and case.gang is not None:
        yield hit(
            *(Evidence(f"pod/{pod.key}", ".spec.schedulerName", pod.scheduler) for pod in members),
            members=count(len(members), "member"),
            scheduler=DEFAULT,
            namespace=case.gang.key.namespace,
            group=case.gang.key.name,
        )


def _waiting(case: Case, scheduler: str, api: GangApi) -> list[Pod]:
    return [p for p in case.waiting if p.scheduler == scheduler and p.gang is not None and p.gang.api is api]


@finding(
    "SchedulersSplit",
    read=Read.GROUP,
    sentence="members are split over the schedulers {schedulers}: none of them sees the whole gang",
    meaning=(
        "A gang starts together only if one scheduler places all of it. Muster counts members of another"
        " scheduler once they are bound, and never waits for them; the other one knows nothing of the gang."
        " Pods whose template names a scheduler are left alone by Muster's admission policy."
    ),
    confirm=("kubectl get pods -n {namespace} -o custom-columns=NAME:.metadata.name,BY:.spec.schedulerName",),
    decide=("give all members of the gang the same schedulerName",),
)
def schedulers_split(case: Case) -> Iterable[Hit]:
    """Members that are alive name different schedulers, and some still wait."""
    if case.gang is None or not case.waiting or len(case.schedulers) < 2:
        return
    alive = [pod for pod in case.pods if pod.alive]
    evidence = (
        Evidence(f"pod/{pod.key}", ".spec.schedulerName", name)
        for name in case.schedulers
        for pod in [next(pod for pod in alive if pod.scheduler == name)]
    )
    numbers = ((name, sum(pod.scheduler == name for pod in alive)) for name in case.schedulers)
    schedulers = listed(f"{name} ({count(number, 'member')})" for name, number in numbers)
    yield hit(*evidence, schedulers=schedulers, namespace=case.gang.key.namespace)


@finding(
    "OtherSystem",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{system} takes part: {trace}",
    meaning=(
        "Labels, annotations or gates show that another system decides about these pods too. Queueing systems"
        " such as Kueue hold pods back by a gate or keep a Job suspended until there is quota; batch"
        " schedulers such as Volcano or KAI group pods by annotations of their own. Ask them as well."
    ),
    confirm=("kubectl describe pod -n {namespace} {pod}",),
)
def other_system(case: Case) -> Iterable[Hit]:
    """Each system that left a trace on the pods or on the object asked about, once."""
    told: set[str] = set()
    for pod in case.pods:
        for field, name, value in _traces(case, pod):
            system = owner_of(name)
            if system and system not in told:
                told.add(system)
                evidence = Evidence(f"pod/{pod.key}", field, value)
                yield hit(evidence, system=system, trace=name, namespace=pod.namespace, pod=pod.name)


def _traces(case: Case, pod: Pod) -> Iterator[tuple[str, str, str]]:
    for name in pod.foreign_gates:
        yield ".spec.schedulingGates", name, name
    raw = case.raw(pod)
    for kind in ("labels", "annotations"):
        for name in mapping(raw, "metadata", kind):
            yield f".metadata.{kind}['{name}']", name, text(raw, "metadata", kind, name)


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    implementation,
    label_ignored,
    native_gate_off,
    schedulers_split,
    other_system,
)
