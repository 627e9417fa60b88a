# SPDX-License-Identifier: Apache-2.0
"""A cluster in memory, loaded from a snapshot and changed by watch events, bindings and patches.

Does what the API server would do with the few writes Muster makes, and tells the same changes a watch
would tell. Schedules nothing and runs nothing: who plays kube-scheduler comes from outside.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from app.codec.objects import ObjectDecoder
from app.codec.snapshot import JsonObject, info_of, value_of
from app.domain.changes import Change
from app.domain.errors import InputError
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, NodeName
from app.domain.plan import Outcome, PodRef
from app.domain.pod import FIELD_MANAGER, GATE, SINGLE_LABEL
from app.explain.report import Subject
from app.explain.sight import Sight, near, sight

ObjectKey = tuple[str, str, str, str]
TYPES = ("ADDED", "MODIFIED", "DELETED")
INFO_KEY: ObjectKey = ("muster.dev", "SnapshotInfo", "", "snapshot")


class SnapshotCluster:
    """Objects by group, kind, namespace and name. Meets the ports of `app.extender`."""

    active = True

    def __init__(self, items: Iterable[JsonObject]) -> None:
        self._objects: dict[ObjectKey, JsonObject] = {}
        self._decoder = ObjectDecoder()
        self._revision = 1_000_000
        self.deliver: Callable[[list[Change]], None] = lambda changes: None
        for index, item in enumerate(items):
            try:
                value_of(self._decoder, item)
            except InputError as error:
                raise InputError(str(error), field=f"items[{index}]") from None
            self._objects[key_of(item)] = item

    def initial(self) -> list[Change]:
        """Everything as one list, as a reflector would deliver it."""
        values = (value_of(self._decoder, item) for item in self._objects.values())
        return [Change(value=value) for value in values if value is not None]

    def as_list(self) -> JsonObject:
        """The `v1 List` as of now."""
        items = list(self._objects.values())
        return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}

    async def read(self, subject: Subject) -> Sight:
        """What an explanation of the subject rests on beside the inventory."""
        found: list[JsonObject] = []
        names: dict[tuple[str, str], str] = {}  # a few, of tens of thousands of objects
        for (group, kind, namespace, _), item in self._objects.items():
            name = names.get((group, kind))
            if name is None:
                name = names[group, kind] = f"{kind}.{group}" if group else kind
            if near(name, namespace, namespace=subject.namespace):
                found.append(item)
        told = self._objects.get(INFO_KEY)
        info = info_of([told]) if told is not None else None
        return sight(found, info, kinds=set(names.values()))

    # -- events from outside

    def apply_events(self, events: object) -> int:
        """Apply a JSON array of watch events, all or none. Raises `InputError` naming the entry."""
        if not isinstance(events, list):
            raise InputError("body must be a JSON array of watch events")
        checked = [self._check(index, event) for index, event in enumerate(events)]
        for kind, obj in checked:
            self._store(kind, obj)
        return len(checked)

    def _check(self, index: int, event: Any) -> tuple[str, JsonObject]:
        where = f"[{index}]"
        if not isinstance(event, dict) or event.get("type") not in TYPES:
            raise InputError(f"type must be one of {', '.join(TYPES)}", field=where)
        obj = event.get("object")
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
            raise InputError("object must be a Kubernetes object with metadata", field=where)
        try:
            value_of(self._decoder, obj)
        except InputError as error:
            raise InputError(str(error), field=f"{where}.object") from None
        return str(event["type"]), copy.deepcopy(obj)

    def _store(self, kind: str, obj: JsonObject) -> None:
        key = key_of(obj)
        before = self._objects.get(key)
        changes = []
        if kind == "DELETED":
            if before is None or _uid(obj) not in ("", _uid(before)):
                return
            del self._objects[key]
            changes.append((before, True))
        else:
            if before is not None and _uid(before) != _uid(obj):
                changes.append((before, True))
            self._objects[key] = obj
            changes.append((obj, False))
        values = ((value_of(self._decoder, item), gone) for item, gone in changes)
        self.deliver([Change(value=value, gone=gone) for value, gone in values if value is not None])

    # -- Binder, Admitter, Leadership

    async def bind(self, pod: PodRef, node: NodeName) -> Outcome:
        """`pods/binding`."""
        found = self.find(pod)
        if found is None:
            return Outcome(
                error=f"pod {pod.namespace}/{pod.name} with UID {pod.uid} does not exist", gone=True
            )
        bound = (found.get("spec") or {}).get("nodeName")
        if bound:
            return Outcome() if bound == node else Outcome(error=f"pod is bound to {bound} already")
        changed = copy.deepcopy(found)
        _part(changed, "spec")["nodeName"] = node
        status = _part(changed, "status")
        others = [c for c in status.get("conditions") or [] if c.get("type") != "PodScheduled"]
        status["conditions"] = [*others, {"type": "PodScheduled", "status": "True"}]
        self._update(changed)
        return Outcome()

    async def nominate(self, pod: PodRef, node: NodeName | None) -> Outcome:
        """`status.nominatedNodeName`."""
        found = self.find(pod)
        if found is None:
            return Outcome(error="pod does not exist", gone=True)
        if (found.get("spec") or {}).get("nodeName"):
            return Outcome()
        changed = copy.deepcopy(found)
        status = _part(changed, "status")
        if node is None:
            status.pop("nominatedNodeName", None)
        else:
            status["nominatedNodeName"] = node
        fields = changed["metadata"].get("managedFields")
        managed = [m for m in _maps(fields) if m.get("manager") != FIELD_MANAGER]
        if node is not None:
            managed.append({
                "manager": FIELD_MANAGER, "operation": "Update", "subresource": "status", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:nominatedNodeName": {}}},
            })  # fmt: skip
        changed["metadata"]["managedFields"] = managed
        self._update(changed)
        return Outcome()

    async def lift_gate(self, pod: PodRef, *, single: bool = False) -> Outcome:
        """Our entry of `spec.schedulingGates`."""
        found = self.find(pod)
        if found is None:
            return Outcome(error="pod does not exist", gone=True)
        changed = copy.deepcopy(found)
        spec = _part(changed, "spec")
        gates = [gate for gate in spec.get("schedulingGates") or [] if gate.get("name") != GATE]
        spec.pop("schedulingGates", None)
        if gates:
            spec["schedulingGates"] = gates
        if single:
            labels = _part(changed, "metadata").get("labels") or {}
            _part(changed, "metadata")["labels"] = {**labels, SINGLE_LABEL: "true"}
        self._update(changed)
        return Outcome()

    async def confirm(self) -> bool:
        """Always active: there is no other replica."""
        return True

    # -- Reporter

    def event(self, subject: PodRef | PodGroup, *, reason: str, message: str, warning: bool = False) -> None:
        """A core/v1 Event in the list; the latest of one subject and reason wins."""
        involved = _involved(subject)
        name = f"{involved['name']}.{reason.lower()}"
        self._objects[("", "Event", involved["namespace"], name)] = {
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": involved["namespace"]},
            "involvedObject": involved, "reason": reason, "message": message,
            "type": "Warning" if warning else "Normal", "source": {"component": FIELD_MANAGER},
        }  # fmt: skip

    def counts(self, group: PodGroup, counts: dict[str, int]) -> None:
        """PodGroup status."""
        found = self._objects.get((group.key.api, "PodGroup", group.key.namespace, group.key.name))
        if found is not None:
            _part(found, "status").update(counts)

    def forget(self, subject: PodRef | PodGroup) -> None:
        """Nothing is queued here."""

    # -- storage

    def find(self, pod: PodRef) -> JsonObject | None:
        """This very pod as it is, to be read only; None if it is gone."""
        found = self._objects.get(("", "Pod", pod.namespace, pod.name))
        return found if found is not None and _uid(found) == pod.uid else None

    def _update(self, obj: JsonObject) -> None:
        self._revision += 1
        obj["metadata"]["resourceVersion"] = str(self._revision)
        self._store("MODIFIED", obj)


def key_of(obj: JsonObject) -> ObjectKey:
    """Under which an object is stored."""
    meta = obj["metadata"]
    group = str(obj.get("apiVersion") or "v1").rpartition("/")[0]
    namespace = meta.get("namespace") or ("default" if obj.get("kind") in ("Pod", "PodGroup") else "")
    return group, str(obj.get("kind")), str(namespace), str(meta.get("name"))


def _part(obj: JsonObject, field: str) -> JsonObject:
    """The map in this field, made if it is absent or null."""
    if obj.get(field) is None:
        obj[field] = {}
    part: JsonObject = obj[field]
    return part


def _maps(value: object) -> list[JsonObject]:
    """What is usable of a list that nobody has checked."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _uid(obj: JsonObject) -> str:
    return str(obj["metadata"].get("uid") or "")


def _involved(subject: PodRef | PodGroup) -> dict[str, str]:
    if isinstance(subject, PodRef):
        kind, version, namespace, name = "Pod", "v1", subject.namespace, subject.name
    else:
        kind, namespace, name = "PodGroup", subject.key.namespace, subject.key.name
        version = f"{subject.key.api}/{'v1alpha1' if subject.key.api is GangApi.LABEL else 'v1beta1'}"
    return {"apiVersion": version, "kind": kind, "namespace": namespace, "name": name, "uid": subject.uid}
