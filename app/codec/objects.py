# SPDX-License-Identifier: Apache-2.0
"""JSON bytes of API objects to domain values.

A field that is null counts as absent, as in Go. Raises `InputError` naming the object and the field.
"""

from __future__ import annotations

from calendar import timegm
from functools import lru_cache
from time import gmtime, strftime, strptime
from typing import Final, TypeVar

import msgspec

from app.codec import wire
from app.codec.containers import ailments
from app.codec.templates import TemplateCache, decode
from app.domain.errors import InputError
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, NodeName, PodUid, single_key
from app.domain.node import NOT_READY, UNSCHEDULABLE, Node
from app.domain.placement import Taint
from app.domain.pod import FIELD_MANAGER, GATE, GATE_ANNOTATION, SINGLE_LABEL, Pod
from app.domain.resources import parse_amounts

T = TypeVar("T")

GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
"""Label of the out-of-tree PodGroup API (scheduling.x-k8s.io/v1alpha1)."""

_POD = msgspec.json.Decoder(wire.PodObject)
_NODE = msgspec.json.Decoder(wire.NodeObject)
_POD_GROUP = msgspec.json.Decoder(wire.PodGroupObject)
_WAIVED_BY = f'"{GATE_ANNOTATION}"'.encode()
_COUNTS = ("scheduled", "running", "succeeded", "failed")


class ObjectDecoder:
    """Decodes pods, nodes and PodGroups; owns the cache of templates shared between pods."""

    def __init__(self) -> None:
        self._templates = TemplateCache()

    def pod(self, raw: bytes | msgspec.Raw) -> Pod:
        """A core/v1 Pod."""
        return self.pod_of(_decode(_POD, raw, "Pod"))

    def pod_of(self, obj: wire.PodObject) -> Pod:
        """The same of decoded fields."""
        meta, spec, status = obj.metadata, obj.spec or wire.PodSpec(), obj.status or wire.PodStatus()
        namespace = meta.namespace or "default"
        _identified(meta.uid, f"pod {namespace}/{meta.name}: metadata.uid")
        try:
            template = self._templates.of(spec)
        except InputError as error:
            raise InputError(f"pod {namespace}/{meta.name}: {error}") from None
        gates = tuple(gate.name for gate in spec.scheduling_gates or ())
        gang, mixed = _gang(meta, namespace, spec, gates)
        nominated = NodeName(status.nominated_node_name) if status.nominated_node_name else None
        stuck, sick = ailments(status) if spec.node_name else ("", ())
        return Pod(
            uid=PodUid(meta.uid),
            namespace=namespace,
            name=meta.name,
            template=template,
            created=seconds(meta.creation_timestamp),
            scheduler=spec.scheduler_name or "default-scheduler",
            priority=spec.priority or 0,
            preempts=spec.preemption_policy != "Never",
            phase=status.phase or "Pending",
            deleting=bool(meta.deletion_timestamp),
            expiry=seconds(meta.deletion_timestamp) if meta.deletion_timestamp else 0,
            node=NodeName(spec.node_name) if spec.node_name else None,
            nominated=nominated,
            nominated_by_us=bool(nominated and not spec.node_name and _ours(meta.managed_fields)),
            gates=gates,
            waived=_waived(meta.annotations),
            gang=gang,
            mixed=mixed,
            failure=(status.reason or "") if status.phase == "Failed" else "",
            outcome=_outcome(status) if not spec.node_name else "",
            stuck=stuck,
            sick=sick,
        )

    def node(self, raw: bytes | msgspec.Raw) -> Node:
        """A core/v1 Node."""
        return self.node_of(_decode(_NODE, raw, "Node"))

    def node_of(self, obj: wire.NodeObject) -> Node:
        """The same of decoded fields. Cordon and a false Ready condition become the taints they amount to."""
        _identified(obj.metadata.name, "Node: metadata.name")
        spec, status = obj.spec or wire.NodeSpec(), obj.status or wire.NodeStatus()
        taints = {Taint(key=t.key, effect=t.effect, value=t.value or "") for t in spec.taints or ()}
        if spec.unschedulable:
            taints.add(UNSCHEDULABLE)
        if any(c.type == "Ready" and c.status != "True" for c in status.conditions or ()):
            taints.add(NOT_READY)
        try:
            allocatable = parse_amounts(status.allocatable, field="status.allocatable")
            capacity = parse_amounts(status.capacity, field="status.capacity")
        except InputError as error:
            raise InputError(f"node {obj.metadata.name}: {error}") from None
        return Node(
            name=NodeName(obj.metadata.name),
            uid=obj.metadata.uid,
            allocatable=allocatable,
            capacity=capacity,
            labels=obj.metadata.labels or {},
            taints=tuple(sorted(taints, key=lambda t: (t.key, t.effect, t.value))),
        )

    def pod_group(self, raw: bytes | msgspec.Raw) -> PodGroup:
        """A PodGroup of either API; the API group of `apiVersion` decides which."""
        obj = _decode(_POD_GROUP, raw, "PodGroup")
        return self.pod_group_of(obj, native=obj.api_version.startswith(f"{GangApi.NATIVE}/"))

    def pod_group_of(self, obj: wire.PodGroupObject, *, native: bool) -> PodGroup:
        """The same of decoded fields (items of a list may carry no `apiVersion`)."""
        _identified(obj.metadata.name, "PodGroup: metadata.name")
        spec = obj.spec or wire.PodGroupSpec()
        gang = (spec.scheduling_policy or wire.SchedulingPolicy()).gang
        key = GangKey(
            GangApi.NATIVE if native else GangApi.LABEL,
            obj.metadata.namespace or "default",
            obj.metadata.name,
        )
        counts = obj.status or {}
        return PodGroup(
            key=key,
            uid=obj.metadata.uid,
            created=seconds(obj.metadata.creation_timestamp),
            declared=(gang.min_count if gang else None) if native else spec.min_member,
            timeout_seconds=spec.schedule_timeout_seconds,
            status=tuple((n, c) for n in _COUNTS if isinstance(c := counts.get(n), int)),
            status_owner=_status_owner(obj.metadata.managed_fields),
        )


@lru_cache(maxsize=65536)
def seconds(timestamp: str | None) -> int:
    """RFC 3339 in UTC to Unix seconds; 0 when absent or unreadable (an age is never worth a failure)."""
    try:
        return timegm(strptime((timestamp or "")[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0


def stamp(at: float) -> str:
    """The other way round: as the API writes it, to the second."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(at))


def _decode(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw, kind: str) -> T:
    try:
        return decoder.decode(raw)
    except wire.UNUSABLE as error:
        raise InputError(f"not a usable {kind}: {error}") from None


def _identified(value: str, field: str) -> None:
    """Objects without an identity would take each other's place."""
    if not value:
        raise InputError("is missing", field=field)


def _gang(
    meta: wire.Metadata, namespace: str, spec: wire.PodSpec, gates: tuple[str, ...]
) -> tuple[GangKey | None, tuple[str, str] | None]:
    label = (meta.labels or {}).get(GROUP_LABEL)
    native = spec.scheduling_group.pod_group_name if spec.scheduling_group else None
    if label and native:
        return None, (f"{GROUP_LABEL}={label}", f"spec.schedulingGroup.podGroupName={native}")
    if label:
        return GangKey(GangApi.LABEL, namespace, label), None
    if native:
        return GangKey(GangApi.NATIVE, namespace, native), None
    if GATE in gates or SINGLE_LABEL in (meta.labels or {}):
        return single_key(namespace, meta.name, meta.uid), None
    return None, None


def _managers(raw: msgspec.Raw) -> list[wire.ManagedFields]:
    return decode(raw, list[wire.ManagedFields], "metadata.managedFields") or []


def _waived(annotations: msgspec.Raw) -> bool:
    """Annotations may be long, and hardly ever matter: they are read where they name what does."""
    if _WAIVED_BY not in bytes(annotations):
        return False
    try:
        return msgspec.json.decode(annotations, type=wire.Annotations).gate == "none"
    except wire.UNUSABLE:
        return False


def _ours(raw: msgspec.Raw) -> bool:
    return any(
        entry.manager == FIELD_MANAGER and b'"f:nominatedNodeName"' in bytes(entry.fields_v1)
        for entry in _managers(raw)
    )


def _status_owner(raw: msgspec.Raw) -> str:
    """The other manager that writes this PodGroup's status counts, if there is one."""
    for entry in _managers(raw):
        if entry.manager != FIELD_MANAGER and b'"f:scheduled"' in bytes(entry.fields_v1):
            return entry.manager
    return ""


def _outcome(status: wire.PodStatus) -> str:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled":
            parts = (
                condition.reason,
                condition.message,
                condition.last_transition_time,
                condition.last_probe_time,
            )
            return "|".join(part or "" for part in parts)
    return ""
