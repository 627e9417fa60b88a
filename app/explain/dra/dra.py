# SPDX-License-Identifier: Apache-2.0
"""All of Dynamic Resource Allocation that one explanation needs, each part worked out once and only if asked.

One pass over the slices, one over the claims, and one over the devices for each different request.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from app.codec.snapshot import JsonObject
from app.domain.ids import NodeName, PodUid
from app.domain.placement import Requirement, Template, Term, Toleration
from app.explain.dra.claims import (
    CLAIM,
    CLASS,
    RULE,
    SLICE,
    Consumer,
    State,
    holders_of,
    reserved_for,
)
from app.explain.dra.pools import DeviceKey, Market, Pool, Supply, pools_of, supply, taint_of
from app.explain.dra.requests import Wanted, selectors_of
from app.explain.facts import Facts
from app.explain.objects import dig, mapping, maps, name_of, namespace_of, text
from app.inventory.columns import Mask

ANY_TAINT = (Toleration(operator="Exists"),)
NAME = "metadata.name"


class Dra:
    """Reads the raw objects of `resource.k8s.io` and the pods and nodes of the inventory."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._supplies: dict[tuple[Wanted, tuple[str, ...]], Supply] = {}

    @property
    def sighted(self) -> bool:
        """Whether devices and classes were read: without them there is nothing to count."""
        return not (self._facts.blind(SLICE) or self._facts.blind(CLASS))

    # -- classes

    def device_class(self, name: str) -> JsonObject | None:
        """A DeviceClass; None if there is none, or it was not read."""
        return self._facts.objects.get(CLASS, "", name)

    @cached_property
    def by_resource(self) -> dict[str, JsonObject]:
        """The class that serves an extended resource: the newest, and of those the first by name."""
        found: dict[str, JsonObject] = {}
        classes = sorted(self._facts.objects.of(CLASS), key=name_of)
        for one in sorted(classes, key=_created, reverse=True):
            resource = text(one, "spec", "extendedResourceName")
            for name in (resource, f"deviceclass.resource.kubernetes.io/{name_of(one)}"):
                if name:
                    found.setdefault(name, one)
        return found

    def selectors(self, wanted: Wanted) -> tuple[str, ...]:
        """Those of the class, then those of the request: the order in which they are evaluated."""
        return (*selectors_of(dig(self.device_class(wanted.device_class), "spec")), *wanted.selectors)

    # -- devices

    @cached_property
    def pools(self) -> list[Pool]:
        """All pools, by driver and name."""
        found = pools_of(self._facts.objects.of(SLICE))
        return [found[key] for key in sorted(found)]

    @cached_property
    def held(self) -> dict[tuple[str, str], dict[str, JsonObject]]:
        """The claim that holds each allocated device, by (driver, pool) and device."""
        return holders_of(self._facts.objects.of(CLAIM))

    @cached_property
    def market(self) -> Market:
        """Who holds what, and which taints rules add."""
        gates = self._facts.gates or {}
        given = () if gates.get("DRADeviceTaintRules") is False else self._facts.objects.of(RULE)
        rules = [rule for rule in given if isinstance(dig(rule, "spec", "deviceSelector"), dict)]
        return Market(
            held=self.held,
            rules=tuple((_rule(rule), taint_of(mapping(rule, "spec", "taint"))) for rule in rules),
            taints_count=gates.get("DRADeviceTaints") is True,
        )

    def supply(self, wanted: Wanted) -> Supply:
        """What there is for a request."""
        selectors = self.selectors(wanted)
        key = (wanted, selectors)
        if key not in self._supplies:
            self._supplies[key] = supply(wanted, selectors, self.pools, self.market)
        return self._supplies[key]

    # -- consumers

    def consumers(self, claim: JsonObject) -> list[Consumer]:
        """Who it is reserved for, and what has become of them."""
        return [self._consumer(namespace_of(claim), item) for item in reserved_for(claim)]

    def idle(self, claim: JsonObject) -> bool:
        """Whether nobody who may be running has it: all have finished or are gone, or there is nobody."""
        pods = self._facts.inventory.pods
        for item in reserved_for(claim):
            pod = pods.get(PodUid(text(item, "uid")))
            if pod is not None and not pod.finished:
                return False  # the usual case, and there may be many thousands of it
            if self._consumer(namespace_of(claim), item).state not in (State.FINISHED, State.GONE):
                return False
        return True

    def _consumer(self, namespace: str, item: JsonObject) -> Consumer:
        kind, name = text(item, "resource"), f"{namespace}/{text(item, 'name')}"
        if kind != "pods":
            return Consumer(f"{kind} {name}", State.UNKNOWN)
        pod = self._facts.inventory.pods.get(PodUid(text(item, "uid")))
        if pod is not None:
            return Consumer(f"pod {name}", State.FINISHED if pod.finished else State.ALIVE, pod)
        namespaces = self._facts.namespaces
        seen = not self._facts.blind("Pod") and (namespaces is None or namespace in namespaces)
        return Consumer(f"pod {name}", State.GONE if seen else State.UNKNOWN)

    # -- places

    def rows(self, claim: JsonObject) -> Mask | None:
        """Rows from which the devices of an allocated claim can be reached; None for all."""
        selector = dig(claim, "status", "allocation", "nodeSelector")
        if not isinstance(selector, dict):
            return None
        return self._select(tuple(_term(term) for term in maps(selector, "nodeSelectorTerms")))

    def _select(self, terms: tuple[Term, ...]) -> Mask:
        inventory = self._facts.inventory
        names = _only_names(terms)
        if names is None:
            return inventory.admitting(Template(requests=(), affinity=terms, tolerations=ANY_TAINT))
        mask = np.zeros(inventory.columns.rows, np.bool_)
        rows = [row for name in names if (row := inventory.columns.row_of.get(name)) is not None]
        mask[rows] = [inventory.nodes.get(row) is not None for row in rows]
        return mask


def _created(obj: JsonObject) -> str:
    return text(obj, "metadata", "creationTimestamp")


def _rule(rule: JsonObject) -> DeviceKey:
    selector = mapping(rule, "spec", "deviceSelector")
    return text(selector, "driver"), text(selector, "pool"), text(selector, "device")


def _term(term: JsonObject) -> Term:
    return Term(
        labels=_requirements(maps(term, "matchExpressions")), fields=_requirements(maps(term, "matchFields"))
    )


def _requirements(items: Iterable[JsonObject]) -> tuple[Requirement, ...]:
    return tuple(Requirement(text(i, "key"), text(i, "operator"), _values(i)) for i in items)


def _values(item: JsonObject) -> tuple[str, ...]:
    values = item.get("values")
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _only_names(terms: tuple[Term, ...]) -> list[NodeName] | None:
    """Names, where the terms do nothing but name nodes: no need to look at all of them."""
    names: list[NodeName] = []
    for term in terms:
        if term.labels or len(term.fields) != 1 or term.fields[0].key != NAME:
            return None
        if term.fields[0].operator != "In":
            return None
        names += map(NodeName, term.fields[0].values)
    return names
