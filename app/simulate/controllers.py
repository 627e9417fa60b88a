# SPDX-License-Identifier: Apache-2.0
"""The pods that the controllers of Kubernetes would create for a workload, all that exist at once.

Names, labels and owner references are those of the real controllers; what is random there (suffixes, UIDs) is
derived from the names here, so that equal manifests give equal pods. Creates nothing after the first moment:
nothing finishes in a simulation.
"""

from __future__ import annotations

import copy
import itertools
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

from app.codec.snapshot import JsonObject
from app.domain.errors import InputError

MOST_PODS: Final = 100_000
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of which Kubernetes makes its suffixes."""


def uid_of(obj: JsonObject) -> str:
    """A UID that follows from what the object is called."""
    meta = obj["metadata"]
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{obj['kind']}/{meta.get('namespace', '')}/{meta['name']}"))


def suffix(seed: str, length: int = 5) -> str:
    """What takes the place of a random suffix."""
    number, letters = uuid.uuid5(uuid.NAMESPACE_URL, seed).int, ""
    while len(letters) < length:
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters


def _suffixes(name: str) -> Iterator[str]:
    """For the pods of one owner, none twice: of ten thousand, a few would share one."""
    given: set[str] = set()
    for number in itertools.count():
        made = suffix(f"{name}/{number}")
        if made not in given:
            given.add(made)
            yield made


def pods_of(owner: JsonObject) -> list[JsonObject]:
    """Its pods, in the order of their creation. `owner` has name, namespace and UID.

    Raises `InputError` for a kind that is not known here."""
    make = _KINDS.get((owner["kind"], str(owner["apiVersion"]).rpartition("/")[0]))
    if make is None:
        raise InputError(
            f"{owner['kind']} of {owner['apiVersion']} is not supported; "
            "use Pod, PodGroup, Job, StatefulSet, Deployment, ReplicaSet, Namespace or a List of these"
        )
    return list(make(owner))


def _job(owner: JsonObject) -> Iterator[JsonObject]:
    spec = _spec(owner)
    parallelism = _count(spec, "parallelism", 1)
    completions = _count(spec, "completions", parallelism)
    name, uid, indexed = (
        owner["metadata"]["name"],
        owner["metadata"]["uid"],
        spec.get("completionMode") == "Indexed",
    )
    labels = {"job-name": name, "controller-uid": uid}
    labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    count = 0 if spec.get("suspend") else min(parallelism, completions)
    for index, end in zip(range(count), _suffixes(name), strict=False):
        stem = f"{name}-{index}" if indexed else name
        own = labels | ({"batch.kubernetes.io/job-completion-index": str(index)} if indexed else {})
        yield _pod(owner, f"{stem}-{end}", own)


def _stateful_set(owner: JsonObject) -> Iterator[JsonObject]:
    """An OrderedReady one creates a pod only once the one before it runs."""
    spec, name = _spec(owner), owner["metadata"]["name"]
    replicas = _count(spec, "replicas", 1)
    at_once = replicas if spec.get("podManagementPolicy") == "Parallel" else min(1, replicas)
    first = _count(spec.get("ordinals") or {}, "start", 0)
    for index in range(first, first + at_once):
        own = {
            "statefulset.kubernetes.io/pod-name": f"{name}-{index}",
            "apps.kubernetes.io/pod-index": str(index),
        }
        yield _pod(owner, f"{name}-{index}", own)


def _deployment(owner: JsonObject) -> Iterator[JsonObject]:
    """By way of its ReplicaSet."""
    meta = owner["metadata"]
    revision = suffix(f"{meta['uid']}/template", 10)
    replica_set: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{meta['name']}-{revision}", "namespace": meta["namespace"]},
        "spec": owner.get("spec"),
    }
    replica_set["metadata"]["uid"] = uid_of(replica_set)
    for pod in _replica_set(replica_set):
        pod["metadata"]["labels"]["pod-template-hash"] = revision
        yield pod


def _replica_set(owner: JsonObject) -> Iterator[JsonObject]:
    name = owner["metadata"]["name"]
    for end in itertools.islice(_suffixes(name), _count(_spec(owner), "replicas", 1)):
        yield _pod(owner, f"{name}-{end}", {})


_KINDS: Final[dict[tuple[str, str], Callable[[JsonObject], Iterator[JsonObject]]]] = {
    ("Job", "batch"): _job,
    ("StatefulSet", "apps"): _stateful_set,
    ("Deployment", "apps"): _deployment,
    ("ReplicaSet", "apps"): _replica_set,
}


def _pod(owner: JsonObject, name: str, labels: dict[str, str]) -> JsonObject:
    template = _spec(owner).get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        raise InputError("spec.template.spec is missing")
    meta: dict[str, Any] = copy.deepcopy(template.get("metadata") or {})
    reference = {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    meta |= {"name": name, "namespace": owner["metadata"]["namespace"], "ownerReferences": [reference]}
    meta["labels"] = (meta.get("labels") or {}) | labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy.deepcopy(template["spec"])}


def _spec(owner: JsonObject) -> JsonObject:
    spec = owner.get("spec")
    if not isinstance(spec, dict):
        raise InputError("spec is missing")
    return spec


def _count(spec: JsonObject, field: str, default: int) -> int:
    value = spec.get(field)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_PODS:
        raise InputError(f"must be a number from 0 to {MOST_PODS}", field=f"spec.{field}")
    return value
