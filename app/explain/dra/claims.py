# SPDX-License-Identifier: Apache-2.0
"""Which claims a pod refers to, what a claim has been given, and who it is reserved for.

Follows resolution as kube-scheduler and kube-controller-manager do it. Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from app.codec.snapshot import JsonObject
from app.domain.pod import Pod
from app.explain.dra.pools import DeviceKey
from app.explain.dra.requests import Request, requests_of, spec_of
from app.explain.objects import Objects, dig, maps, name_of, named, text

CLAIM = "ResourceClaim.resource.k8s.io"
TEMPLATE = "ResourceClaimTemplate.resource.k8s.io"
CLASS = "DeviceClass.resource.k8s.io"
SLICE = "ResourceSlice.resource.k8s.io"
RULE = "DeviceTaintRule.resource.k8s.io"

MOST_CONSUMERS = 256
"""Entries that `status.reservedFor` may have."""


class Reference(msgspec.Struct, frozen=True):
    """One entry of `spec.resourceClaims` of a pod.

    `claim` is the name of the claim, empty as long as none has been made from `template`.
    """

    pod: Pod
    entry: str
    claim: str
    template: str = ""


class Asked(msgspec.Struct, frozen=True):
    """A reference with what it leads to. `source` says what is asked for: the claim, else its template."""

    reference: Reference
    claim: JsonObject | None
    source: JsonObject | None
    requests: tuple[Request, ...]

    @property
    def pod(self) -> Pod:
        """Whose it is."""
        return self.reference.pod

    @property
    def where(self) -> str:
        """What is asked for stands there, as kubectl names it."""
        return named(self.source or {})

    @property
    def open(self) -> bool:
        """Whether devices have yet to be found for it."""
        return self.source is not None and not (self.claim and allocated(self.claim))


class State(StrEnum):
    """What has become of somebody a claim is reserved for."""

    ALIVE = "alive"
    FINISHED = "finished"
    GONE = "gone"
    UNKNOWN = "unknown"


class Consumer(msgspec.Struct, frozen=True):
    """One entry of `status.reservedFor`. `pod` is None unless it is one that is there."""

    name: str
    state: State
    pod: Pod | None = None

    def __str__(self) -> str:
        if self.pod is not None and self.state is State.ALIVE:
            deleting = ", terminating" if self.pod.deleting else ""
            return f"{self.name} (priority {self.pod.priority}{deleting})"
        return f"{self.name} ({self.state})"


def references(pod: Pod, raw: JsonObject) -> list[Reference]:
    """Claims that a pod refers to. An entry for which no claim is needed is left out."""
    made = {text(item, "name"): item for item in maps(raw, "status", "resourceClaimStatuses")}
    found = []
    for item in maps(raw, "spec", "resourceClaims"):
        entry, claim = text(item, "name"), text(item, "resourceClaimName")
        template = text(item, "resourceClaimTemplateName")
        if template and entry in made:
            claim = text(made[entry], "resourceClaimName")
            if not claim:
                continue
        found.append(Reference(pod, entry, claim, template))
    extended = text(raw, "status", "extendedResourceClaimStatus", "resourceClaimName")
    if extended:
        found.append(Reference(pod, "", extended))
    return found


def follow(objects: Objects, reference: Reference) -> Asked:
    """Where a reference leads, as far as the objects were read."""
    namespace = reference.pod.namespace
    claim = objects.get(CLAIM, namespace, reference.claim) if reference.claim else None
    source = claim or (objects.get(TEMPLATE, namespace, reference.template) if reference.template else None)
    return Asked(reference, claim, source, requests_of(spec_of(source)))


def is_for(claim: JsonObject, pod: Pod, raw: JsonObject) -> bool:
    """Whether a claim that was made from a template is this pod's, or its native PodGroup's."""
    owner = controller(claim)
    if text(owner, "uid") == pod.uid:
        return True
    group = text(raw, "spec", "schedulingGroup", "podGroupName")
    native = text(owner, "apiVersion").startswith("scheduling.k8s.io/")
    return bool(group) and native and text(owner, "kind") == "PodGroup" and text(owner, "name") == group


def controller(obj: JsonObject) -> JsonObject:
    """The ownerReference of the controller; empty if there is none."""
    owners = maps(obj, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), {})


def allocated(claim: JsonObject) -> bool:
    """Whether it has been given its devices."""
    return isinstance(dig(claim, "status", "allocation"), dict)


def devices_of(claim: JsonObject) -> list[tuple[str, DeviceKey]]:
    """(request, device) of an allocated claim."""
    results = maps(claim, "status", "allocation", "devices", "results")
    return [(text(r, "request"), device_key(r)) for r in results]


def device_key(item: JsonObject) -> DeviceKey:
    """Of a device in a status."""
    return text(item, "driver"), text(item, "pool"), text(item, "device")


def holders_of(claims: Iterable[JsonObject]) -> dict[tuple[str, str], dict[str, JsonObject]]:
    """The claim that holds a device by itself, by (driver, pool) and device.

    Not those that have it for administration or in part.
    """
    held: defaultdict[tuple[str, str], dict[str, JsonObject]] = defaultdict(dict)
    for claim in claims:
        for result in maps(claim, "status", "allocation", "devices", "results"):
            if result.get("adminAccess") is not True and not result.get("shareID"):
                driver, pool, device = result.get("driver"), result.get("pool"), result.get("device")
                if isinstance(driver, str) and isinstance(pool, str) and isinstance(device, str):
                    held[driver, pool][device] = claim
    return held


def reserved_for(claim: JsonObject) -> list[JsonObject]:
    """Entries of `status.reservedFor`."""
    return maps(claim, "status", "reservedFor")


def label(claim: JsonObject) -> str:
    """namespace/name."""
    return f"{text(claim, 'metadata', 'namespace')}/{name_of(claim)}"


def reserves(claim: JsonObject, pod: Pod) -> bool:
    """Whether it is reserved for the pod itself."""
    return any(text(item, "uid") == pod.uid for item in reserved_for(claim))
