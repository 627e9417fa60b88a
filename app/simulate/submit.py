# SPDX-License-Identifier: Apache-2.0
"""What a snapshot looks like once manifests have been submitted to it.

Adds the objects and the pods that controllers would create for them, as the API server would store them:
named, dated after everything that is there, with a priority, and changed by the admission policy where the
namespace has it. Never changes an object of the snapshot, but for a PodGroup or Namespace that is submitted
again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final

from app.codec.objects import seconds, stamp
from app.codec.snapshot import JsonObject
from app.domain.errors import InputError
from app.domain.ids import GangApi, PodUid
from app.domain.pod import SCHEDULER
from app.simulate.cluster import key_of
from app.simulate.controllers import pods_of, suffix, uid_of
from app.simulate.policy import ENABLED_LABEL, admit, enabled

_PLAIN: Final = (("", "Namespace"), (GangApi.LABEL, "PodGroup"), (GangApi.NATIVE, "PodGroup"))
"""Group and kind of what is stored as it is."""

_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Submission:
    """A snapshot that objects are added to. `pods` are the UIDs of those that came with them; `left_alone`
    says of which why Muster has nothing to do with it; `notes` are for people."""

    def __init__(
        self, items: Iterable[JsonObject], *, namespace: str = "default", scheduler: str = SCHEDULER
    ) -> None:
        """`namespace` is for objects that name none; `scheduler` is what Muster's is called."""
        self.items = list(items)
        self.pods: set[PodUid] = set()
        self.left_alone: dict[PodUid, str] = {}
        self.notes: list[str] = []
        self._namespace = namespace
        self._scheduler = scheduler
        self._at = {key_of(item): index for index, item in enumerate(self.items)}
        self._newest = max(
            (seconds(str(i["metadata"].get("creationTimestamp"))) for i in self.items), default=0
        )
        self._classes = _priorities(self.items)

    def add(self, objects: Iterable[JsonObject]) -> None:
        """As if created one after the other; Namespaces first. Raises `InputError` naming the object."""
        objects = [copy.deepcopy(obj) for obj in objects]
        for obj in sorted(objects, key=lambda obj: obj["kind"] != "Namespace"):
            meta = obj["metadata"]
            called = f"{obj['kind']} {meta.get('name') or meta['generateName']}"
            try:
                self._add(obj)
            except InputError as error:
                raise InputError(str(error), field=called) from None
            except (AttributeError, TypeError, ValueError) as error:  # a list for a map, a text for a number
                raise InputError(f"is not shaped as the API has it: {error}", field=called) from None

    def _add(self, obj: JsonObject) -> None:
        self._newest += 1
        self._identify(obj)
        if key_of(obj)[:2] in _PLAIN:
            self._store(obj)
        elif obj["kind"] == "Pod":
            self._create(obj)
        else:
            self._create_all(obj)

    def _create_all(self, owner: JsonObject) -> None:
        pods, meta = pods_of(owner), owner["metadata"]
        for pod in pods:
            self._identify(pod)
            self._create(pod)
        if not pods:
            self.notes.append(
                f"{owner['kind']} {meta['namespace']}/{meta['name']} has no pods: it asks for none now"
            )
        if owner["kind"] == "StatefulSet" and len(pods) < (owner["spec"].get("replicas") or 0):
            self.notes.append(
                f"StatefulSet {meta['namespace']}/{meta['name']} starts one pod after the other: only the "
                "first exists until that runs; with podManagementPolicy Parallel all do"
            )

    def _identify(self, obj: JsonObject) -> None:
        """Name, namespace, UID and date, as the API server sets them."""
        meta = obj["metadata"]
        if not meta.get("name"):
            meta["name"] = meta["generateName"] + suffix(f"{meta['generateName']}/{self._newest}")
        if obj["kind"] != "Namespace":
            meta["namespace"] = meta.get("namespace") or self._namespace
        meta["uid"] = uid_of(obj)
        meta["creationTimestamp"] = stamp(self._newest)

    def _store(self, obj: JsonObject) -> None:
        """What is there already keeps its identity and its age, as with `kubectl apply`."""
        at = self._at.get(key_of(obj))
        if at is None:
            self._at[key_of(obj)] = len(self.items)
            self.items.append(obj)
            return
        for field in ("uid", "creationTimestamp"):
            if field in self.items[at]["metadata"]:
                obj["metadata"][field] = self.items[at]["metadata"][field]
        self.items[at] = obj

    def _create(self, pod: JsonObject) -> None:
        meta, spec = pod["metadata"], pod.get("spec")
        if not isinstance(spec, dict):
            raise InputError("spec is missing")
        if key_of(pod) in self._at:
            raise InputError(f"pod {meta['namespace']}/{meta['name']} is in the snapshot already")
        pod["status"] = {"phase": "Pending"}
        spec["priority"] = self._priority(spec)
        value = enabled(self._namespace_of(meta["namespace"]))
        admit(pod, value, scheduler=self._scheduler)
        self._store(pod)
        self.pods.add(PodUid(meta["uid"]))
        if spec.get("schedulerName") != self._scheduler and not spec.get("nodeName"):
            self.left_alone[PodUid(meta["uid"])] = _why_alone(spec, meta["namespace"], value)

    def _namespace_of(self, name: str) -> JsonObject | None:
        at = self._at.get(("", "Namespace", "", name))
        return None if at is None else self.items[at]

    def _priority(self, spec: JsonObject) -> int:
        name = spec.get("priorityClassName") or ""
        if not name:
            return int(spec.get("priority") or self._classes.get("", 0))
        if name not in self._classes:
            raise InputError(f"the snapshot has no PriorityClass {name}")
        return self._classes[name]


def _why_alone(spec: JsonObject, namespace: str, value: str) -> str:
    chosen = spec.get("schedulerName") or "default-scheduler"
    if chosen != "default-scheduler":
        return f"the pod names schedulerName {chosen}: Muster leaves it alone"
    if not value:
        return (
            f"namespace {namespace} has no label {ENABLED_LABEL} in the snapshot: Muster leaves the pod alone"
        )
    return f"namespace {namespace} is labelled {value}, which does not cover this pod: Muster leaves it alone"


def _priorities(items: list[JsonObject]) -> dict[str, int]:
    """Value of each PriorityClass, the default under the empty name; also as the snapshot's pods show."""
    known: dict[str, int] = dict(_SYSTEM_PRIORITIES)
    for item in items:
        if item.get("kind") == "PriorityClass" and isinstance(value := item.get("value"), int):
            known[str(item["metadata"].get("name"))] = value
            if item.get("globalDefault"):
                known[""] = value
        elif item.get("kind") == "Pod" and isinstance(spec := item.get("spec"), dict):
            name, priority = spec.get("priorityClassName"), spec.get("priority")
            if name and isinstance(priority, int):
                known.setdefault(str(name), priority)
    return known
