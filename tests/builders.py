# SPDX-License-Identifier: Apache-2.0
"""Kubernetes objects for tests, as the API would show them: raw JSON, so that every test runs the codec too.

    node = make_node("n1").gpus(8).zone("a").taint("gpu", "yes")
    pod = make_pod("w0").gpus(4).gang("train").gated()            # schedulerName is muster
    group = make_group("train", min_member=2)

    node.build()            the object as a dict             node.json()     the same as bytes
    value(pod)              the domain value                 seen(pod)       Change: it is now so
    inventory_of(node, pod, group)                           gone(pod)       Change: it is gone
    demand(*pods, need=2)   what the planner is asked        snapshot(node, pod)   a `v1 List` as bytes

Builders are immutable: every call returns a new one, so a common pod can be kept and varied
(`worker.named("w1")`). Names give UIDs (`uid-w1`); `.uid("other")` makes a replacement of the same name.
What no method covers is set by path: `pod.set("spec.nodeSelector", {"zone": "a"})`. Extend the builders
rather than going around them. Bodies of the verbs: `filter_body`, `full_filter_body`, `bind_body`,
`preempt_body`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self, TypeAlias

import orjson

from app.codec.objects import GROUP_LABEL, ObjectDecoder
from app.codec.snapshot import value_of
from app.domain.changes import Change, Value
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey
from app.domain.node import Node
from app.domain.plan import Demand, Member
from app.domain.pod import GATE, Pod
from app.inventory.inventory import Inventory

Json: TypeAlias = dict[str, Any]
Quantities: TypeAlias = Mapping[str, object]

GPU = "nvidia.com/gpu"
CREATED = "2026-01-01T00:00:00Z"


class Builder:
    """An object under construction."""

    def __init__(self, obj: Json) -> None:
        self._obj = obj

    def build(self) -> Json:
        """The object; the caller may change it."""
        return deepcopy(self._obj)

    def json(self) -> bytes:
        """The object as bytes."""
        return orjson.dumps(self._obj)

    def set(self, path: str, new: object) -> Self:
        """Set any field by its dotted path; missing parents are made."""
        *parents, last = path.split(".")
        obj = place = dict(self._obj)
        for parent in parents:
            child = place.get(parent)
            place[parent] = child = dict(child) if isinstance(child, dict) else {}
            place = child
        place[last] = new
        return type(self)(obj)

    def get(self, path: str = "", default: Any = None) -> Any:
        """A field by its dotted path (everything without one), to be read only."""
        place: Any = self._obj
        for name in path.split(".") if path else ():
            if not isinstance(place, dict) or name not in place:
                return default
            place = place[name]
        return place

    def merge(self, path: str, more: Mapping[str, Any]) -> Self:
        """Add keys to the object at `path`."""
        return self.set(path, {**self.get(path, {}), **more})

    def append(self, path: str, item: object) -> Self:
        """Add an item to the list at `path`."""
        return self.set(path, [*self.get(path, []), item])

    def named(self, name: str) -> Self:
        """The same under another name, and with the UID of that name."""
        return self.set("metadata.name", name).set("metadata.uid", f"uid-{name}")

    def uid(self, uid: str) -> Self:
        return self.set("metadata.uid", uid)

    def label(self, key: str, text: str) -> Self:
        return self.set("metadata.labels", {**self.get("metadata.labels", {}), key: text})

    def created(self, at: str) -> Self:
        """creationTimestamp, RFC 3339."""
        return self.set("metadata.creationTimestamp", at)

    def managed(self, manager: str, fields: Json, *, subresource: str = "status") -> Self:
        """One entry of managedFields."""
        entry = {
            "manager": manager,
            "operation": "Update",
            "subresource": subresource,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        return self.append("metadata.managedFields", entry)


class NodeBuilder(Builder):
    """A Node; ready, schedulable, 64 CPUs, 512Gi, 110 pods, no devices, unless told otherwise."""

    def amount(self, name: str, quantity: object) -> Self:
        """Capacity and allocatable of one resource."""
        return self.merge("status.capacity", {name: quantity}).allocatable({name: quantity})

    def allocatable(self, quantities: Quantities) -> Self:
        """Allocatable alone."""
        return self.merge("status.allocatable", quantities)

    def gpus(self, count: int, name: str = GPU) -> Self:
        return self.amount(name, str(count))

    def cpu(self, quantity: str) -> Self:
        return self.amount("cpu", quantity)

    def memory(self, quantity: str) -> Self:
        return self.amount("memory", quantity)

    def pods(self, count: int) -> Self:
        return self.amount("pods", str(count))

    def zone(self, zone: str) -> Self:
        return self.label("topology.kubernetes.io/zone", zone)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> Self:
        entry = {"key": key, "effect": effect} | ({"value": value} if value else {})
        return self.append("spec.taints", entry)

    def cordoned(self) -> Self:
        return self.set("spec.unschedulable", True)

    def not_ready(self, status: str = "False") -> Self:
        """Ready condition False, or Unknown when the kubelet is silent."""
        return self.set("status.conditions", [{"type": "Ready", "status": status}])


class PodBuilder(Builder):
    """A Pod of schedulerName muster with one container that requests nothing, unless told otherwise."""

    # -- what it asks for

    def requests(self, quantities: Quantities) -> Self:
        """Requests of the first container."""
        return self._first("requests", quantities)

    def limits(self, quantities: Quantities) -> Self:
        """Limits of the first container."""
        return self._first("limits", quantities)

    def gpus(self, count: object, name: str = GPU) -> Self:
        return self.limits({name: str(count)}).requests({name: str(count)})

    def cpu(self, quantity: str) -> Self:
        return self.requests({"cpu": quantity})

    def container(self, requests: Quantities, *, limits: Quantities | None = None) -> Self:
        """A further container."""
        return self.append("spec.containers", _container("more", requests, limits))

    def init(self, requests: Quantities, *, limits: Quantities | None = None) -> Self:
        """A further init container, in order."""
        return self.append("spec.initContainers", _container("init", requests, limits))

    def sidecar(self, requests: Quantities, *, limits: Quantities | None = None) -> Self:
        """A further restartable init container, in order."""
        container = _container("sidecar", requests, limits) | {"restartPolicy": "Always"}
        return self.append("spec.initContainers", container)

    def overhead(self, quantities: Quantities) -> Self:
        return self.set("spec.overhead", dict(quantities))

    def pod_level(self, requests: Quantities, *, limits: Quantities | None = None) -> Self:
        """Pod-level resources."""
        return self.set("spec.resources", {"requests": dict(requests), "limits": dict(limits or {})})

    def _first(self, kind: str, quantities: Quantities) -> Self:
        first, *others = deepcopy(self.get("spec.containers"))
        first["resources"][kind] = {**first["resources"].get(kind, {}), **quantities}
        return self.set("spec.containers", [first, *others])

    # -- where it may go

    def selector(self, labels: Mapping[str, str]) -> Self:
        return self.merge("spec.nodeSelector", labels)

    def affinity(self, *terms: Json) -> Self:
        """Required node affinity; each term as in the API."""
        path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        return self.set(path, {"nodeSelectorTerms": list(terms)})

    def in_zone(self, *zones: str) -> Self:
        return self.affinity(term(("topology.kubernetes.io/zone", "In", *zones)))

    def toleration(self, **fields: str) -> Self:
        """`.toleration(key="gpu", operator="Exists", effect="NoSchedule")`."""
        return self.append("spec.tolerations", fields)

    def volume_claim(self, claim: str = "data") -> Self:
        return self.append("spec.volumes", {"name": "data", "persistentVolumeClaim": {"claimName": claim}})

    def resource_claim(self, claim: str = "gpu") -> Self:
        return self.append("spec.resourceClaims", {"name": "gpu", "resourceClaimName": claim})

    def host_port(self, port: int) -> Self:
        first, *others = deepcopy(self.get("spec.containers"))
        first["ports"] = [*first.get("ports", []), {"containerPort": port, "hostPort": port}]
        return self.set("spec.containers", [first, *others])

    # -- whose it is

    def namespace(self, namespace: str) -> Self:
        return self.set("metadata.namespace", namespace)

    def scheduler(self, name: str) -> Self:
        return self.set("spec.schedulerName", name)

    def gang(self, name: str) -> Self:
        """Member of a scheduling.x-k8s.io PodGroup, by label."""
        return self.label(GROUP_LABEL, name)

    def native(self, name: str) -> Self:
        """Member of a scheduling.k8s.io PodGroup, by `spec.schedulingGroup`."""
        return self.set("spec.schedulingGroup", {"podGroupName": name})

    def gated(self) -> Self:
        """With Muster's own gate."""
        return self.gate(GATE)

    def gate(self, name: str) -> Self:
        """With a further scheduling gate."""
        return self.append("spec.schedulingGates", {"name": name})

    def ungated(self) -> Self:
        """Without any gate."""
        return self.set("spec.schedulingGates", [])

    def priority(self, priority: int) -> Self:
        return self.set("spec.priority", priority)

    # -- what has become of it

    def on(self, node: str, *, phase: str = "Running") -> Self:
        """Bound to a node."""
        return self.set("spec.nodeName", node).ungated().phase(phase)

    def nominated(self, node: str, *, by: str = "kube-scheduler") -> Self:
        """With a nomination, written by this field manager."""
        pod = self.set("status.nominatedNodeName", node)
        return pod.managed(by, {"f:status": {"f:nominatedNodeName": {}}})

    def phase(self, phase: str, *, reason: str = "") -> Self:
        pod = self.set("status.phase", phase)
        return pod.set("status.reason", reason) if reason else pod

    def deleting(self) -> Self:
        return self.set("metadata.deletionTimestamp", "2026-01-01T01:00:00Z")

    def attempted(self, message: str, *, at: str = CREATED) -> Self:
        """kube-scheduler has recorded a failed attempt."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": at,
        }
        return self.set("status.conditions", [condition])


class GroupBuilder(Builder):
    """A PodGroup of the label API, or after `.native()` of the native one."""

    def namespace(self, namespace: str) -> Self:
        return self.set("metadata.namespace", namespace)

    def native(self) -> Self:
        """The same minimum, declared the way of scheduling.k8s.io."""
        minimum = self.get("spec.minMember")
        gang = {} if minimum is None else {"minCount": minimum}
        group = self.set("apiVersion", "scheduling.k8s.io/v1beta1")
        return group.set("spec", {"schedulingPolicy": {"gang": gang}})

    def minimum(self, minimum: object) -> Self:
        """Another minimum, in the field of this API; None removes it."""
        native = self.get("apiVersion").startswith("scheduling.k8s.io/")
        path = "spec.schedulingPolicy.gang.minCount" if native else "spec.minMember"
        return self.set(path, minimum)

    def timeout(self, seconds: int) -> Self:
        return self.set("spec.scheduleTimeoutSeconds", seconds)

    def status(self, **counts: int) -> Self:
        return self.merge("status", counts)


def make_node(name: str) -> NodeBuilder:
    """A ready node without devices."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "labels": {"kubernetes.io/hostname": name},
        },
        "spec": {},
        "status": {
            "capacity": dict(amounts),
            "allocatable": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return NodeBuilder(obj)


def make_pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pending pod of Muster's scheduler."""
    obj = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
            "labels": {},
        },
        "spec": {
            "schedulerName": "muster",
            "containers": [{"name": "main", "image": "none", "resources": {}}],
        },
        "status": {"phase": "Pending"},
    }
    return PodBuilder(obj)


def make_group(name: str, min_member: object = 1, namespace: str = "default") -> GroupBuilder:
    """A PodGroup with a minimum; None leaves it out."""
    obj = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": CREATED,
        },
        "spec": {} if min_member is None else {"minMember": min_member},
    }
    return GroupBuilder(obj)


def term(*expressions: tuple[str, ...], fields: Sequence[tuple[str, ...]] = ()) -> Json:
    """A NodeSelectorTerm from (key, operator, *values) tuples."""

    def requirements(given: Iterable[tuple[str, ...]]) -> list[Json]:
        return [
            {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
            for key, operator, *values in given
        ]

    return {"matchExpressions": requirements(expressions), "matchFields": requirements(fields)}


# -- into the domain


def value(builder: Builder) -> Value:
    """The domain value, through the codec."""
    decoded = value_of(ObjectDecoder(), builder.get())
    assert decoded is not None, "a followed kind"
    return decoded


def pod_of(builder: PodBuilder) -> Pod:
    """`value`, for the checker's sake."""
    pod = value(builder)
    assert isinstance(pod, Pod)
    return pod


def node_of(builder: NodeBuilder) -> Node:
    """`value`, for the checker's sake."""
    node = value(builder)
    assert isinstance(node, Node)
    return node


def group_of(builder: GroupBuilder) -> PodGroup:
    """`value`, for the checker's sake."""
    group = value(builder)
    assert isinstance(group, PodGroup)
    return group


def seen(builder: Builder) -> Change:
    """The watch shows the object so."""
    return Change(value(builder))


def gone(builder: Builder) -> Change:
    """The watch shows that the object is no more."""
    return Change(value(builder), gone=True)


def inventory_of(*builders: Builder) -> Inventory:
    """An inventory that has seen these, in this order."""
    inventory = Inventory()
    inventory.apply(seen(builder) for builder in builders)
    return inventory


def key(name: str, namespace: str = "default", *, native: bool = False) -> GangKey:
    """The key of a gang with a PodGroup."""
    return GangKey(GangApi.NATIVE if native else GangApi.LABEL, namespace, name)


def demand(*pods: PodBuilder, need: int | None = None, gang: str = "train", priority: int = 0) -> Demand:
    """Seats for these pods, at least `need` (all by default)."""
    values = [pod_of(pod) for pod in pods]
    return Demand(
        gang=key(gang),
        members=tuple(Member(uid=pod.uid, template=pod.template) for pod in values),
        need=len(values) if need is None else need,
        priority=priority,
    )


# -- bytes for the front doors


def snapshot(*builders: Builder) -> bytes:
    """What `kubectl get -A -o json` would print."""
    return orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [b.build() for b in builders]})


def filter_body(pod: PodBuilder, names: Sequence[str]) -> bytes:
    """ExtenderArgs in name mode; of filter and of prioritize."""
    return orjson.dumps({"Pod": pod.build(), "Nodes": None, "NodeNames": list(names)})


def full_filter_body(pod: PodBuilder, nodes: Iterable[NodeBuilder]) -> bytes:
    """ExtenderArgs in full-node mode."""
    items = {"metadata": {}, "items": [node.build() for node in nodes]}
    return orjson.dumps({"Pod": pod.build(), "Nodes": items, "NodeNames": None})


def bind_body(pod: PodBuilder, node: str) -> bytes:
    """ExtenderBindingArgs."""
    return orjson.dumps(
        {
            "PodName": pod.get("metadata.name"),
            "PodNamespace": pod.get("metadata.namespace"),
            "PodUID": pod.get("metadata.uid"),
            "Node": node,
        }
    )


def preempt_body(pod: PodBuilder, victims: Mapping[str, Sequence[PodBuilder]]) -> bytes:
    """ExtenderPreemptionArgs, victims by UID."""
    meta = {
        node: {"Pods": [{"UID": v.get("metadata.uid")} for v in pods], "NumPDBViolations": 0}
        for node, pods in victims.items()
    }
    return orjson.dumps({"Pod": pod.build(), "NodeNameToVictims": None, "NodeNameToMetaVictims": meta})


def _container(name: str, requests: Quantities, limits: Quantities | None) -> Json:
    resources: Json = {"requests": dict(requests)}
    if limits:
        resources["limits"] = dict(limits)
    return {"name": name, "image": "none", "resources": resources}
