# SPDX-License-Identifier: Apache-2.0
"""The scheduling shape of a pod spec, parsed once per distinct shape.

Effective requests follow component-helpers `resource.PodRequests`: containers add up; a restartable init
container adds to everything that starts after it; an ordinary init container counts beside the restartable
ones before it; pod-level cpu, memory and hugepages replace the sum; overhead comes on top. Requests
default to limits (of a pod as a whole: where no container says anything), as the API server defaults them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from cachetools import LRUCache
from msgspec import Raw

from app.codec import wire
from app.domain.errors import InputError, QuantityError
from app.domain.placement import Requirement, Template, Term, Toleration
from app.domain.resources import PODS, Amounts, add, parse_amounts, raise_to

T = TypeVar("T")
Key = tuple[bytes, ...]

_POD_LEVEL = ("cpu", "memory")
_BINDING_VOLUMES = re.compile(rb'"(?:persistentVolumeClaim|ephemeral|csi|iscsi|nfs)"')


class TemplateCache:
    """Templates by the raw bytes they were parsed from. Equal templates are one object."""

    def __init__(self, size: int = 4096) -> None:
        self._by_bytes: LRUCache[Key, Template] = LRUCache(size)
        self._equal: LRUCache[Template, Template] = LRUCache(size)

    def of(self, spec: wire.PodSpec) -> Template:
        """The template of a pod spec. Raises `InputError` naming the field."""
        key = _key(spec)
        found = self._by_bytes.get(key)
        if found is None:
            parsed = _parse(spec)
            found = self._by_bytes[key] = self._equal.setdefault(parsed, parsed)
        return found


def _key(spec: wire.PodSpec) -> Key:
    parts: list[Raw | bytes] = [
        spec.overhead, spec.resources, spec.node_selector, spec.affinity, spec.tolerations,
        spec.topology_spread_constraints, b"v" if _needs_volume(spec) else b"",
        b"c" if _present(spec.resource_claims) else b"",
    ]  # fmt: skip
    for mark, containers in ((b"c", spec.containers), (b"i", spec.init_containers)):
        for container in containers or ():
            parts += [mark, container.resources, container.ports, (container.restart_policy or "").encode()]
    return tuple(map(bytes, parts))


def _parse(spec: wire.PodSpec) -> Template:
    affinity = decode(spec.affinity, wire.Affinity, "spec.affinity") or wire.Affinity()
    selector = decode(spec.node_selector, dict[str, str], "spec.nodeSelector") or {}
    requests = _requests(spec)
    requests[PODS] = 1
    return Template(
        requests=tuple(sorted((name, amount) for name, amount in requests.items() if amount)),
        selector=tuple(sorted(selector.items())),
        affinity=_terms(affinity.node_affinity),
        tolerations=_tolerations(spec.tolerations),
        unmodelled=tuple(_unmodelled(spec, affinity)),
    )


# -- requests


def _requests(spec: wire.PodSpec) -> Amounts:
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for index, container in enumerate(spec.containers or ()):
        add(total, _container(container.resources, f"spec.containers[{index}].resources"))
    for index, container in enumerate(spec.init_containers or ()):
        amounts = _container(container.resources, f"spec.initContainers[{index}].resources")
        if container.restart_policy == "Always":
            add(total, amounts)
            add(sidecars, amounts)
            raise_to(peak, sidecars)
        else:
            add(amounts, sidecars)
            raise_to(peak, amounts)
    raise_to(total, peak)
    limits, requests = _resources(spec.resources, "spec.resources")
    total = _pod_level(limits) | total | _pod_level(requests)
    overhead = decode(spec.overhead, dict[str, object], "spec.overhead")
    add(total, _positive(overhead, "spec.overhead"))
    return total


def _container(raw: Raw, field: str) -> Amounts:
    limits, requests = _resources(raw, field)
    return limits | requests


def _resources(raw: Raw, field: str) -> tuple[Amounts, Amounts]:
    resources = decode(raw, wire.Resources, field) or wire.Resources()
    return (
        _positive(resources.limits, f"{field}.limits"),
        _positive(resources.requests, f"{field}.requests"),
    )


def _pod_level(amounts: Amounts) -> Amounts:
    return {n: amount for n, amount in amounts.items() if n in _POD_LEVEL or n.startswith("hugepages-")}


def _positive(raw: Mapping[str, object] | None, field: str) -> Amounts:
    amounts = parse_amounts(raw, field=field)
    for name, amount in amounts.items():
        if amount < 0:
            raise QuantityError("must not be negative", field=f"{field}[{name}]")
    return amounts


# -- constraints


def _terms(affinity: wire.NodeAffinity | None) -> tuple[Term, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    return tuple(
        Term(labels=_requirements(term.match_expressions), fields=_requirements(term.match_fields))
        for term in affinity.required.node_selector_terms or ()
    )


def _requirements(raw: list[wire.SelectorRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(key=r.key, operator=r.operator, values=tuple(r.values or ())) for r in raw or ())


def _tolerations(raw: Raw) -> tuple[Toleration, ...]:
    parsed = decode(raw, list[wire.TolerationObject], "spec.tolerations") or []
    return tuple(
        Toleration(
            key=t.key or "", operator=t.operator or "Equal", value=t.value or "", effect=t.effect or ""
        )
        for t in parsed
    )


def _unmodelled(spec: wire.PodSpec, affinity: wire.Affinity) -> list[str]:
    found = []
    if _needs_volume(spec):
        found.append("volumes")
    if _has_required(affinity.pod_affinity) or _has_required(affinity.pod_anti_affinity):
        found.append("inter-pod affinity")
    spreads = (
        decode(spec.topology_spread_constraints, list[wire.Spread], "spec.topologySpreadConstraints") or []
    )
    if any(spread.when_unsatisfiable == "DoNotSchedule" for spread in spreads):
        found.append("topology spread")
    if any(_host_ports(container) for container in [*(spec.containers or ()), *(spec.init_containers or ())]):
        found.append("host ports")
    if _present(spec.resource_claims):
        found.append("resource claims")
    return found


def _has_required(affinity: wire.PodAffinity | None) -> bool:
    return affinity is not None and bool(affinity.required)


def _host_ports(container: wire.Container) -> bool:
    return b'"hostPort"' in bytes(container.ports)


def _present(raw: Raw) -> bool:
    return bytes(raw) not in (b"", b"null", b"[]")


def _needs_volume(spec: wire.PodSpec) -> bool:
    """Only volumes that can bind a pod to a node matter; the API server's token volume is in every pod."""
    return _BINDING_VOLUMES.search(spec.volumes) is not None


def decode(raw: Raw, kind: type[T], field: str) -> T | None:
    """Raw bytes as `kind`; None when absent or null. Raises `InputError` naming the field."""
    if not _present(raw):
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except wire.UNUSABLE as error:
        raise InputError(str(error), field=field) from None
