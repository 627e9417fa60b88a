# SPDX-License-Identifier: Apache-2.0
"""What creates pods and what speaks of them, as the API shows it: Jobs, quotas, events, Leases."""

from __future__ import annotations

from typing import Any

from app.codec.objects import GROUP_LABEL, seconds
from tests.builders import CREATED, GPU, Builder, PodBuilder

NOW = seconds(CREATED) + 3600
"""2026-01-01T01:00:00Z."""
NAMESPACE = "default"


def plain(api: str, kind: str, name: str, namespace: str = NAMESPACE, **fields: Any) -> Builder:
    """Any object."""
    meta: dict[str, Any] = {"name": name, "uid": f"uid-{kind.lower()}-{name}", "creationTimestamp": CREATED}
    if namespace:
        meta["namespace"] = namespace
    return Builder({"apiVersion": api, "kind": kind, "metadata": meta, **fields})


def template(gang: str = "", gpus: int = 1) -> dict[str, Any]:
    """A pod template that asks for devices, perhaps as a member."""
    amounts = {GPU: str(gpus), "cpu": "2"}
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": amounts, "limits": {GPU: str(gpus)}},
    }
    labels = {GROUP_LABEL: gang} if gang else {}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container]}}


def job(name: str, parallelism: int = 2, *, gang: str = "", gpus: int = 1, **spec: Any) -> Builder:
    counts = {"parallelism": parallelism, "completions": parallelism, "template": template(gang, gpus)}
    return plain("batch/v1", "Job", name, spec={**counts, **spec}, status={"startTime": CREATED})


def stateful_set(name: str, replicas: int, *, gang: str = "", **spec: Any) -> Builder:
    counts = {"replicas": replicas, "template": template(gang)}
    return plain("apps/v1", "StatefulSet", name, spec={**counts, **spec})


def replica_set(name: str, replicas: int) -> Builder:
    return plain("apps/v1", "ReplicaSet", name, spec={"replicas": replicas, "template": template()})


def ended(owner: Builder, kind: str, reason: str = "", message: str = "") -> Builder:
    """A Job with the condition Complete or Failed."""
    condition = {"type": kind, "status": "True", "lastTransitionTime": CREATED}
    return owner.set("status.conditions", [{**condition, "reason": reason, "message": message}])


def of(owner: Builder, pod: PodBuilder) -> PodBuilder:
    """A pod with the controller reference of this owner."""
    reference = {
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": owner.get("metadata.name"),
        "uid": owner.get("metadata.uid"),
        "controller": True,
    }
    return pod.set("metadata.ownerReferences", [reference])


def event(about: Builder, reason: str, message: str, *, at: str = CREATED, times: int = 1) -> Builder:
    """A core/v1 Event."""
    subject = {"kind": about.get("kind"), "name": about.get("metadata.name"), "namespace": NAMESPACE}
    name = f"{about.get('metadata.name')}.{reason.lower()}"
    fields: dict[str, Any] = {
        "involvedObject": subject,
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }
    return plain("v1", "Event", name, **fields, count=times, source={"component": "job-controller"})


def quota(name: str, *, hard: dict[str, str], used: dict[str, str], **spec: Any) -> Builder:
    return plain(
        "v1", "ResourceQuota", name, spec={"hard": hard, **spec}, status={"hard": hard, "used": used}
    )


def namespace(enabled: str = "") -> Builder:
    """The namespace default, perhaps switched on."""
    built = plain("v1", "Namespace", NAMESPACE, "")
    return built.set("metadata.labels", {"muster.dev/enabled": enabled} if enabled else {})


def lease(name: str, renewed: str, where: str = "muster-system") -> Builder:
    spec = {"holderIdentity": "muster-0_x", "leaseDurationSeconds": 15, "renewTime": renewed}
    return plain("coordination.k8s.io/v1", "Lease", name, where, spec=spec)


def claim(name: str, phase: str, storage: str = "") -> Builder:
    spec = {"storageClassName": storage} if storage else {}
    return plain("v1", "PersistentVolumeClaim", name, spec=spec, status={"phase": phase})


def storage(name: str, mode: str) -> Builder:
    return plain("storage.k8s.io/v1", "StorageClass", name, "", volumeBindingMode=mode)
