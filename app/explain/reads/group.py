# SPDX-License-Identifier: Apache-2.0
"""Read 3, group: the PodGroup that the members name, and what it declares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.domain.ids import GangApi, GangKey
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, text
from app.explain.reads.evidence import object_of
from app.explain.reads.scheduler import LABEL_FIELD, NATIVE_FIELD
from app.explain.words import count, listed

_SHORT_SECONDS: Final = 15
_OTHER: Final = {GangApi.LABEL: GangApi.NATIVE, GangApi.NATIVE: GangApi.LABEL}
_MINIMUM: Final = {
    GangApi.LABEL: ".spec.minMember",
    GangApi.NATIVE: ".spec.schedulingPolicy.gang.minCount",
}


def field_of(key: GangKey) -> str:
    """How a pod names this PodGroup."""
    return LABEL_FIELD if key.api is GangApi.LABEL else NATIVE_FIELD


@finding(
    "NoPodGroup",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{members} PodGroup {group} of {api}, which does not exist{instead}",
    meaning=(
        "A pod names its PodGroup by name; the PodGroup must be in the same namespace and of the same API:"
        " the label scheduling.x-k8s.io/pod-group means a PodGroup of scheduling.x-k8s.io, and"
        " spec.schedulingGroup one of scheduling.k8s.io. Equal names in the two APIs are two gangs. Without"
        " its PodGroup a gang has no minimum, and its members wait."
    ),
    confirm=("kubectl get podgroups.{api} -n {namespace}",),
    decide=("create the PodGroup {group} in namespace {namespace}, or correct the name in the pod template",),
)
def no_pod_group(case: Case) -> Iterable[Hit]:
    """The gang has members that wait and no PodGroup."""
    gang = case.gang
    named = [pod for pod in case.waiting if pod.grouped]
    if gang is None or gang.defined or not named or case.facts.blind(f"PodGroup.{gang.key.api}"):
        return
    yield hit(
        *(Evidence(f"pod/{pod.key}", field_of(gang.key), gang.key.name) for pod in named),
        weight=None if case.ours else Weight.WARNS,
        members=count(len(named), "pod names", "pods name"),
        group=gang.key.name,
        api=gang.key.api,
        namespace=gang.key.namespace,
        instead=_instead(case, gang.key),
    )


def _instead(case: Case, key: GangKey) -> str:
    """What exists under the same name, which is what was meant more often than not."""
    twin = case.inventory.gangs.get(key._replace(api=_OTHER.get(key.api, key.api)))
    if twin is not None and twin.group is not None:
        return f"; one of {twin.key.api} has this name, and is another gang"
    elsewhere = [
        gang.key.namespace
        for gang in case.inventory.gangs
        if gang.group is not None and gang.key.name == key.name and gang.key.api is key.api
    ]
    return f"; one of this name is in namespace {listed(sorted(elsewhere))}" if elsewhere else ""


@finding(
    "MixedApis",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{pods} both a label and spec.schedulingGroup ({both}): Muster places neither gang",
    meaning=(
        "One pod can belong to one gang. With both fields two schedulers, or two PodGroups of one scheduler,"
        " would count it, so Muster refuses it until one of the two is gone."
    ),
    confirm=(
        "kubectl get pod -n {namespace} {pod} -o jsonpath='{{.metadata.labels}} {{.spec.schedulingGroup}}'",
    ),
    decide=("keep one of the two in the pod template, and create the pods again",),
)
def mixed_apis(case: Case) -> Iterable[Hit]:
    """Waiting pods that carry both APIs."""
    mixed = [(pod, pod.mixed) for pod in case.waiting if pod.mixed is not None]
    if mixed:
        pod, both = mixed[0]
        yield hit(
            *(Evidence(f"pod/{pod.key}", LABEL_FIELD, both[0].partition("=")[2]) for pod, both in mixed),
            weight=None if case.ours else Weight.WARNS,
            pods=count(len(mixed), "pod has", "pods have"),
            both=" and ".join(both),
            namespace=pod.namespace,
            pod=pod.name,
        )


@finding(
    "UnusedTwin",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="there is a PodGroup {group} of {api} too: it is another gang, with {members}",
    meaning=(
        "Both PodGroup APIs can hold an object of the same name. They are two gangs: members of the one do"
        " not count for the other, and plain `kubectl get podgroup` may show either."
    ),
    confirm=("kubectl get podgroups.{api} -n {namespace} {group} -o yaml",),
)
def unused_twin(case: Case) -> Iterable[Hit]:
    """A PodGroup of the other API with the same name."""
    gang = case.gang
    if gang is None or not gang.defined or gang.key.api not in _OTHER:
        return
    twin = case.inventory.gangs.get(gang.key._replace(api=_OTHER[gang.key.api]))
    if twin is not None and twin.group is not None:
        key, members = twin.key, count(len(twin.roll.members), "member")
        evidence = Evidence(object_of(key), _MINIMUM[key.api], str(twin.group.declared))
        yield hit(evidence, group=key.name, api=key.api, namespace=key.namespace, members=members)


@finding(
    "MinimumUnusable",
    read=Read.GROUP,
    sentence="PodGroup {group} declares {declared}: it counts as 1, so each member starts on its own",
    meaning=(
        "The minimum is how many members must have a place before any of them starts. Absent, zero or"
        " negative it counts as 1, and the group is a gang in name only. A native PodGroup with another"
        " policy than gang declares none on purpose."
    ),
    confirm=("kubectl get podgroups.{api} -n {namespace} {group} -o yaml",),
    decide=("set {field} to the number of pods that are needed at once",),
)
def minimum_unusable(case: Case) -> Iterable[Hit]:
    """The minimum is absent or not positive."""
    group = case.gang.group if case.gang is not None else None
    if group is None or (group.declared is not None and group.declared >= 1):
        return
    field = _MINIMUM[group.key.api]
    declared = "no minimum" if group.declared is None else f"a minimum of {group.declared}"
    yield hit(
        Evidence(object_of(group.key), field, "absent" if group.declared is None else str(group.declared)),
        weight=None if group.key.api is GangApi.LABEL else Weight.NOTE,
        group=group.key.name,
        declared=declared,
        api=group.key.api,
        namespace=group.key.namespace,
        field=field,
    )


@finding(
    "ScheduleTimeoutShort",
    read=Read.GROUP,
    sentence="PodGroup {group} gives its members {seconds} s to gather: else all seats go back",
    meaning=(
        "From the first member at the barrier to the last, a gang may take scheduleTimeoutSeconds. Members"
        " that need a volume or a claim are slower than that. When the time is over all seats go back, and"
        " the gang is tried again after a pause."
    ),
    confirm=("kubectl get podgroups.{api} -n {namespace} {group} -o jsonpath='{{.spec}}'",),
    decide=("raise scheduleTimeoutSeconds, or leave it out for Muster's own limit",),
)
def timeout_short(case: Case) -> Iterable[Hit]:
    """A deadline of the PodGroup's own that is shorter than Muster waits by itself."""
    group = case.gang.group if case.gang is not None else None
    if group is None or group.timeout_seconds is None or group.timeout_seconds >= _SHORT_SECONDS:
        return
    if case.waiting:
        key = group.key
        evidence = Evidence(object_of(key), ".spec.scheduleTimeoutSeconds", str(group.timeout_seconds))
        yield hit(
            evidence, seconds=group.timeout_seconds, group=key.name, api=key.api, namespace=key.namespace
        )


@finding(
    "BeingDeleted",
    read=Read.GROUP,
    sentence="{what} is being deleted{held}",
    meaning=(
        "An object with a deletionTimestamp is on its way out; finalizers may keep it for a while. When a"
        " PodGroup goes, its waiting members have no minimum any more and wait for another one."
    ),
    confirm=("kubectl get -n {namespace} {what} -o jsonpath='{{.metadata}}'",),
)
def being_deleted(case: Case) -> Iterable[Hit]:
    """The PodGroup, or the owner that was asked about, has a deletionTimestamp."""
    for name, raw in _owned(case):
        since = text(raw, "metadata", "deletionTimestamp")
        if since:
            listing = dig(raw, "metadata", "finalizers")
            finalizers = [str(one) for one in listing] if isinstance(listing, list) else []
            held = f", and held by {listed(finalizers)}" if finalizers else ""
            evidence = Evidence(name, ".metadata.deletionTimestamp", since)
            yield hit(evidence, what=name.replace(f"/{case.subject.namespace}/", "/"), held=held,
                      namespace=case.subject.namespace)  # fmt: skip


def _owned(case: Case) -> Iterator[tuple[str, object]]:
    key = case.gang.key if case.gang is not None else None
    if key is not None and key.api in _MINIMUM:
        yield object_of(key), case.objects.get(f"PodGroup.{key.api}", key.namespace, key.name)
    if case.subject.kind not in ("pod", "podgroup"):
        yield f"{case.subject.kind}/{case.subject.namespace}/{case.subject.name}", case.root


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    no_pod_group,
    mixed_apis,
    unused_twin,
    minimum_unusable,
    timeout_short,
    being_deleted,
)
