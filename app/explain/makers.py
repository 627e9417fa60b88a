# SPDX-License-Identifier: Apache-2.0
"""Who creates the pods in question, how many at once, and how many there are.

A maker is a Job, ReplicaSet, StatefulSet or ReplicationController that was asked about, that owns one of the
pods, or whose template names the gang: pods that were never created tell nobody who should have done it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from app.codec.objects import GROUP_LABEL
from app.codec.snapshot import JsonObject
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.pod import Pod
from app.explain.objects import Objects, dig, maps, named, namespace_of, number, text, uid_of

JOB: Final = "Job.batch"
STATEFUL_SET: Final = "StatefulSet.apps"
MAKERS: Final = (JOB, "ReplicaSet.apps", STATEFUL_SET, "ReplicationController")


class Maker(msgspec.Struct, frozen=True):
    """`wanted` pods are to exist at once; `there` of them are alive."""

    raw: JsonObject
    kind: str
    wanted: int
    there: int

    @property
    def short(self) -> bool:
        """Whether it has fewer pods than it is to have."""
        return self.there < self.wanted

    @property
    def name(self) -> str:
        """As kubectl names it, without its namespace."""
        return f"{text(self.raw, 'kind').lower()} {text(self.raw, 'metadata', 'name')}"

    @property
    def object(self) -> str:
        """The same for evidence."""
        return named(self.raw)

    @property
    def bound_by(self) -> str:
        """What decides how many there are at once."""
        if self.kind != JOB:
            return f"replicas {self.wanted}"
        if dig(self.raw, "spec", "suspend") is True:
            return "is suspended"
        if finished(self.raw) is not None:
            return "has ended"
        parallelism = _spec(self.raw, "parallelism", "1")
        return f"parallelism {parallelism}, completions {_spec(self.raw, 'completions', 'unset')}"


def makers_of(
    objects: Objects, *, namespace: str, root: JsonObject | None, pods: list[Pod], gang: GangKey | None
) -> list[Maker]:
    """The makers, in the order of MAKERS and as they were read."""
    alive = {pod.uid for pod in pods if pod.alive}
    owners = {owner for pod in pods for owner in _controllers(objects.get("Pod", pod.namespace, pod.name))}
    near = {uid_of(raw) for raw in (root, *objects.below(root))} - {""} if root is not None else set()
    found = []
    for kind in MAKERS:
        for raw in objects.of(kind, namespace):
            if uid_of(raw) in owners or uid_of(raw) in near or (gang is not None and names(raw, gang)):
                there = sum(PodUid(uid_of(pod)) in alive for pod in objects.owned_by(uid_of(raw)))
                found.append(Maker(raw, kind, _wanted(raw, kind), there))
    return found


def names(raw: JsonObject, gang: GangKey) -> bool:
    """Whether the pods of this template are members of the gang."""
    template = dig(raw, "spec", "template")
    if namespace_of(raw) != gang.namespace:
        return False
    if gang.api is GangApi.LABEL:
        return text(template, "metadata", "labels", GROUP_LABEL) == gang.name
    return (
        gang.api is GangApi.NATIVE and text(template, "spec", "schedulingGroup", "podGroupName") == gang.name
    )


def finished(raw: JsonObject) -> JsonObject | None:
    """The condition under which a Job, or a JobSet, has ended; None while it has not."""
    for condition in maps(raw, "status", "conditions"):
        if (
            text(condition, "type") in ("Complete", "Completed", "Failed")
            and condition.get("status") == "True"
        ):
            return condition
    return None


def _controllers(pod: JsonObject | None) -> Iterator[str]:
    for owner in maps(pod, "metadata", "ownerReferences"):
        if owner.get("controller") is True:
            yield text(owner, "uid")


def _wanted(raw: JsonObject, kind: str) -> int:
    if kind != JOB:
        replicas = number(raw, "spec", "replicas")
        return 1 if replicas is None else max(0, replicas)
    if dig(raw, "spec", "suspend") is True or finished(raw) is not None:
        return 0
    parallelism = number(raw, "spec", "parallelism")
    at_once = 1 if parallelism is None else max(0, parallelism)
    completions = number(raw, "spec", "completions")
    if completions is None:
        return at_once
    return max(0, min(at_once, completions - (number(raw, "status", "succeeded") or 0)))


def _spec(raw: JsonObject, field: str, default: str) -> str:
    value = number(raw, "spec", field)
    return default if value is None else str(value)
