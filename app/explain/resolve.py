# SPDX-License-Identifier: Apache-2.0
"""From what was asked about to the case: which pods are concerned, and which gang.

Decides nothing about them; says whether something is not there, or was not looked for.
"""

from __future__ import annotations

from app.domain.errors import InputError
from app.domain.ids import GangApi, GangKey, PodUid
from app.explain.case import Case
from app.explain.facts import Facts
from app.explain.objects import kind_of, uid_of
from app.explain.report import KINDS, Subject


def resolve(facts: Facts, subject: Subject) -> Case:
    """The case of what was asked about. Raises `InputError` if it is not there."""
    if subject.kind == "pod":
        return _of_pod(facts, subject)
    if subject.kind == "podgroup":
        return _of_group(facts, subject)
    return _of_owner(facts, subject)


def _of_pod(facts: Facts, subject: Subject) -> Case:
    root = facts.objects.get("Pod", subject.namespace, subject.name)
    pod = facts.inventory.pods.get(PodUid(uid_of(root))) if root is not None else None
    if pod is None:
        raise _missing(facts, subject, "Pod")
    gang = facts.inventory.gangs.get(pod.gang) if pod.gang is not None else None
    return Case(facts, subject, pods=gang.roll.members if gang is not None else [pod], gang=gang, root=root)


def _of_group(facts: Facts, subject: Subject) -> Case:
    keys = [GangKey(api, subject.namespace, subject.name) for api in (GangApi.LABEL, GangApi.NATIVE)]
    gangs = [gang for key in keys if (gang := facts.inventory.gangs.get(key)) is not None]
    if not gangs:
        raise _missing(facts, subject, *(f"PodGroup.{key.api}" for key in keys))
    gang = max(gangs, key=lambda gang: len(gang.roll.members))  # of two of one name, the one that is used
    root = facts.objects.get(f"PodGroup.{gang.key.api}", subject.namespace, subject.name)
    return Case(facts, subject, pods=gang.roll.members, gang=gang, root=root)


def _of_owner(facts: Facts, subject: Subject) -> Case:
    kind = KINDS[subject.kind]
    root = facts.objects.get(kind, subject.namespace, subject.name)
    if root is None:
        raise _missing(facts, subject, kind)
    uids = (PodUid(uid_of(raw)) for raw in facts.objects.below(root) if kind_of(raw) == "Pod")
    pods = [pod for uid in uids if (pod := facts.inventory.pods.get(uid)) is not None]
    keys = {pod.gang for pod in pods if pod.alive} or {pod.gang for pod in pods}
    key = keys.pop() if len(keys) == 1 else None
    gang = facts.inventory.gangs.get(key) if key is not None and key.api is not GangApi.SINGLE else None
    return Case(facts, subject, pods=pods if gang is None else gang.roll.members, gang=gang, root=root)


def _missing(facts: Facts, subject: Subject, *kinds: str) -> InputError:
    places = {*kinds, *(f"{kind} {subject.namespace}/{subject.name}" for kind in kinds)}
    unread = [unseen for unseen in facts.unseen if unseen.what in places]
    if unread:
        some = "could not be looked up:" if len(unread) >= len(kinds) else "is not among what was read, and"
        return InputError(f"{subject} {some} {unread[0].what} was not read: {unread[0].why}")
    if facts.namespaces is not None and subject.namespace not in facts.namespaces:
        return InputError(f"{subject} could not be looked up: namespace {subject.namespace} was not read")
    return InputError(f"there is no {subject}; check the name and the namespace (-n)")
