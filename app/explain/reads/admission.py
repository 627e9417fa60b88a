# SPDX-License-Identifier: Apache-2.0
"""Read 3, quota and admission: pods that the API server refused to create, and by whose word.

The controller's own event is believed before any sum: quotas have scopes, and limits have defaults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from app.codec.objects import ObjectDecoder, seconds
from app.codec.snapshot import JsonObject
from app.domain.errors import InputError
from app.domain.resources import PODS, parse_amount
from app.explain.case import Case
from app.explain.events import Happened
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.makers import Maker
from app.explain.objects import dig, mapping, maps, named, text
from app.explain.words import count, in_units, moment

_QUOTA: Final = re.compile(r"exceeded quota: ([^,\s]+), requested: (.+?), used: (.+?), limited: (.+)$")
_START: Final = re.compile(r"^(Error creating|create Pod \S+ in StatefulSet \S+ failed error): ")
_REFUSALS: Final = (
    ("must specify", "a quota wants requests or limits that the template lacks"),
    ("failed quota", "a quota wants requests or limits that the template lacks"),
    ("violates PodSecurity", "the namespace's Pod Security level forbids it"),
    ("admission webhook", "an admission webhook refused it"),
    ("ValidatingAdmissionPolicy", "an admission policy refused it"),
    ("MutatingAdmissionPolicy", "an admission policy failed on it"),
    ("serviceaccount", "its service account is missing"),
    ("no PriorityClass", "its priority class is missing"),
    ("usage per", "a LimitRange forbids it"),
    ("ratio per", "a LimitRange forbids it"),
)
"""What a message of the API server says (its start is the controller's), and what that means."""


def short_of_pods(case: Case) -> list[Maker]:
    """Makers that have fewer pods than they are to have."""
    return [] if case.facts.blind("Pod") else [maker for maker in case.makers if maker.short]


def _refused(case: Case) -> Iterator[tuple[Maker, Happened]]:
    """The latest failure to create a pod of each maker that is short of some."""
    for maker in short_of_pods(case):
        about = text(maker.raw, "kind"), text(maker.raw, "metadata", "name")
        failures = [event for event in case.events.get(about, ()) if event.reason == "FailedCreate"]
        if failures:
            yield maker, failures[-1]
        elif (condition := _condition(maker)) is not None:
            yield maker, condition


def _condition(maker: Maker) -> Happened | None:
    """The same from the status of a ReplicaSet, which stays when the event has expired."""
    for condition in maps(maker.raw, "status", "conditions"):
        if text(condition, "type") == "ReplicaFailure" and text(condition, "status") == "True":
            at = seconds(text(condition, "lastTransitionTime"))
            message = " ".join(text(condition, "message").split())
            return Happened(maker.object, text(condition, "reason"), message, at=at)
    return None


def _weight(case: Case, maker: Maker) -> Weight | None:
    """Pods that are missing block their gang, or an owner that has none at all; else they take some away."""
    gang = case.gang.roll if case.gang is not None else None
    lacks = gang is not None and gang.counted + len(gang.gated_by_others) < gang.minimum
    return None if lacks or not maker.there else Weight.WARNS


@finding(
    "QuotaExceeded",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="quota {quota} refuses {missing} of {maker}: requested {requested}, used {used} of {limited}",
    meaning=(
        "A ResourceQuota counts what the pods of a namespace request, whether they run or wait, and the API"
        " server refuses to create a pod that would exceed it. The pod does not exist then, so no scheduler"
        " can say anything about it; the controller tells it in an event FailedCreate. Waiting pods of a gang"
        " use up quota too: two gangs that each got half of their pods block each other."
    ),
    confirm=(
        "kubectl describe resourcequota -n {namespace} {quota}",
        "kubectl get events -n {namespace} --field-selector reason=FailedCreate",
    ),
    decide=("raise the quota {quota}, or ask for less in namespace {namespace}",),
)
def quota_exceeded(case: Case) -> Iterable[Hit]:
    """The controller was told that a quota is exceeded."""
    for maker, event in _refused(case):
        found = _QUOTA.search(event.message)
        if found is None:
            continue
        quota, requested, used, limited = found.groups()
        yield hit(
            _told(case, event),
            *_hard(case, quota, requested),
            weight=_weight(case, maker),
            quota=quota,
            missing=count(maker.wanted - maker.there, "pod"),
            maker=maker.name,
            requested=requested,
            used=used,
            limited=limited,
            namespace=case.subject.namespace,
        )


def _told(case: Case, event: Happened) -> Evidence:
    when = moment(event.at, case.facts.now) if event.at else "at an unknown time"
    of_status = "" if event.object.startswith("event/") else ".status.conditions[ReplicaFailure]"
    return Evidence(
        event.object, f"{of_status}.message", f"{event.message} ({event.reason} {when}{event.count})"
    )


def _hard(case: Case, quota: str, requested: str) -> Iterator[Evidence]:
    """What the quota says now of the names that the event is about."""
    raw = case.objects.get("ResourceQuota", case.subject.namespace, quota)
    for name in (part.partition("=")[0] for part in requested.split(",")):
        hard = mapping(raw, "status", "hard")
        if raw is not None and name in hard:
            used = mapping(raw, "status", "used").get(name)
            yield Evidence(named(raw), f".status.used['{name}']", f"{used} of {hard[name]}")


@finding(
    "CreationRefused",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="the API server refuses {missing} of {maker}: {why}",
    meaning=(
        "Pods are checked when they are created: by LimitRanges, the Pod Security level of the namespace,"
        " webhooks and admission policies. A pod that is refused does not exist, and no scheduler can say"
        " anything about it; the controller tells it in an event FailedCreate and tries again, ever slower."
    ),
    confirm=(
        "kubectl get events -n {namespace} --field-selector reason=FailedCreate",
        "kubectl get limitranges,resourcequotas -n {namespace}",
    ),
    decide=("correct the pod template, or what refuses it",),
)
def creation_refused(case: Case) -> Iterable[Hit]:
    """The controller was told no for another reason than an exceeded quota."""
    for maker, event in _refused(case):
        if _QUOTA.search(event.message) is None:
            yield hit(
                _told(case, event),
                weight=_weight(case, maker),
                missing=count(maker.wanted - maker.there, "pod"),
                maker=maker.name,
                why=_why(event.message),
                namespace=case.subject.namespace,
            )


def _why(message: str) -> str:
    told = _START.sub("", message)
    meaning = next((means for sign, means in _REFUSALS if sign.lower() in message.lower()), "")
    return f"{meaning} ({told})" if meaning else told


@finding(
    "QuotaTooSmall",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="quota {quota} leaves {left} {name}, and each of {missing} to come from {maker} asks for"
    " {asked}",
    meaning=(
        "What a ResourceQuota has left is less than one more pod of this template requests. The next attempt"
        " to create one will be refused. Quotas with scopes are not judged."
    ),
    confirm=("kubectl describe resourcequota -n {namespace} {quota}",),
    decide=("raise the quota {quota}, or ask for less in namespace {namespace}",),
)
def quota_too_small(case: Case) -> Iterable[Hit]:
    """No event tells of it, and the sum shows that one more pod would exceed a quota."""
    told = {maker.object for maker, _ in _refused(case)}
    for maker in short_of_pods(case):
        for quota, name, left, one in _too_small(case, maker) if maker.object not in told else ():
            plain = name.removeprefix("requests.")
            used, hard = (mapping(quota, "status", kind).get(name) for kind in ("used", "hard"))
            yield hit(
                Evidence(named(quota), f".status.used['{name}']", f"{used} of {hard}"),
                weight=_weight(case, maker),
                quota=text(quota, "metadata", "name"),
                left=in_units(plain, left),
                name=plain,
                asked=in_units(plain, one),
                missing=count(maker.wanted - maker.there, "pod"),
                maker=maker.name,
                namespace=case.subject.namespace,
            )


def _too_small(case: Case, maker: Maker) -> Iterator[tuple[JsonObject, str, int, int]]:
    """(quota, name, left, asked) of each count that one more pod of the maker would exceed."""
    asked = _asked(maker.raw)
    for quota in case.objects.of("ResourceQuota", case.subject.namespace):
        yield from ((quota, *found) for found in _exceeded(quota, asked))


def _asked(maker: JsonObject) -> dict[str, int]:
    """What one pod of the template requests, by the names that a quota uses; empty if it cannot be read."""
    pod = {"metadata": {"name": "one", "uid": "one"}, "spec": mapping(maker, "spec", "template", "spec")}
    try:
        template = ObjectDecoder().pod(orjson.dumps(pod)).template
    except (InputError, TypeError):
        return {}
    asked = {name if name == PODS else f"requests.{name}": amount for name, amount in template.requests}
    return asked | {name: amount for name, amount in template.requests if name in ("cpu", "memory")}


def _exceeded(quota: JsonObject, asked: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """(name, left, asked) of each count that one more pod would exceed; a quota with scopes is not judged."""
    if dig(quota, "spec", "scopes") or maps(quota, "spec", "scopeSelector", "matchExpressions"):
        return
    for name, hard in mapping(quota, "status", "hard").items():
        if name not in asked:
            continue
        plain = name.removeprefix("requests.")
        try:
            left = parse_amount(plain, hard) - parse_amount(
                plain, mapping(quota, "status", "used").get(name, 0)
            )
        except InputError:
            continue
        if left < asked[name]:
            yield name, max(0, left), asked[name]


@finding(
    "PodsNotCreated",
    read=Read.GROUP,
    sentence="{maker} has {there} of {wanted}, and nothing that was read says why",
    meaning=(
        "The object asks for more pods than there are, and no event FailedCreate and no quota explains it."
        " Events are kept for an hour only. The controller may be slow, stopped, or backing off after pods"
        " that failed."
    ),
    confirm=("kubectl describe -n {namespace} {path}",),
)
def pods_not_created(case: Case) -> Iterable[Hit]:
    """Pods are missing, without a trace."""
    told = {maker.object for maker, _ in _refused(case)}
    for maker in short_of_pods(case):
        explained = maker.object in told or _ordered(maker) or any(_too_small(case, maker))
        if case.gang is None and not explained:
            evidence = Evidence(maker.object, ".spec", f"{maker.bound_by}; {maker.there} there")
            path = maker.name.replace(" ", "/")
            wanted = count(maker.wanted, "pod")
            yield hit(evidence, maker=maker.name, there=maker.there, wanted=wanted,
                      namespace=case.subject.namespace, path=path)  # fmt: skip


def _ordered(maker: Maker) -> bool:
    """Whether it is right for the next pod to be missing: a StatefulSet creates one after the other."""
    return maker.kind.startswith("StatefulSet") and (
        text(maker.raw, "spec", "podManagementPolicy") != "Parallel" and maker.there > 0
    )


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    quota_exceeded,
    creation_refused,
    quota_too_small,
    pods_not_created,
)
