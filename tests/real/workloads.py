# SPDX-License-Identifier: Apache-2.0
"""Pods, PodGroups, Jobs and ReplicaSets as JSON. Builders only: nothing here talks to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cluster import RUNS_FOR

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
LABEL_API = "scheduling.x-k8s.io/v1alpha1"
NATIVE_API = "scheduling.k8s.io/v1beta1"


def group(
    namespace: str, name: str, minimum: int, *, native: bool = False, timeout: int | None = None
) -> Object:
    """A PodGroup of either API."""
    meta = {"name": name, "namespace": namespace}
    if native:
        policy = {"gang": {"minCount": minimum}}
        return {
            "apiVersion": NATIVE_API,
            "kind": "PodGroup",
            "metadata": meta,
            "spec": {"schedulingPolicy": policy},
        }
    spec: Object = {"minMember": minimum}
    if timeout is not None:
        spec["scheduleTimeoutSeconds"] = timeout
    return {"apiVersion": LABEL_API, "kind": "PodGroup", "metadata": meta, "spec": spec}


def template(
    *,
    gang: str | None = None,
    native: str | None = None,
    gpus: int = 1,
    cpu: str = "100m",
    runs_for: str | None = None,
    scheduler: str | None = None,
    priority_class: str | None = None,
    labels: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    gates: tuple[str, ...] = (),
    host_port: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> Object:
    """A pod template: metadata and spec. `gang` sets the label, `native` the field of the native API.

    `more` is anything else of the pod's spec.
    """
    resources: Object = {"requests": {"cpu": cpu}}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
    container: Object = {"name": "main", "image": "train:1", "resources": resources}
    if host_port is not None:
        container["ports"] = [{"containerPort": host_port, "hostPort": host_port}]
    spec: Object = {"containers": [container], **(more or {})}
    meta: Object = {"labels": {**(labels or {}), **({GROUP_LABEL: gang} if gang else {})}}
    if native:
        spec["schedulingGroup"] = {"podGroupName": native}
    if runs_for:
        meta["annotations"] = {RUNS_FOR: runs_for}
    if scheduler:
        spec["schedulerName"] = scheduler
    if priority_class:
        spec["priorityClassName"] = priority_class
    if selector:
        spec["nodeSelector"] = dict(selector)
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"metadata": meta, "spec": spec}


def pod(namespace: str, name: str, shape: Object) -> Object:
    """A bare pod of a template."""
    meta = {**shape["metadata"], "name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {**shape["spec"], "restartPolicy": "Never"},
    }


def pods(namespace: str, name: str, count: int, shape: Object) -> list[Object]:
    """`<name>-0` … of one template."""
    return [pod(namespace, f"{name}-{index}", shape) for index in range(count)]


def replica_set(namespace: str, name: str, replicas: int, shape: Object) -> Object:
    """apps/v1 ReplicaSet."""
    labelled = {**shape["metadata"], "labels": {**shape["metadata"]["labels"], "app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": labelled, "spec": shape["spec"]},
        },
    }


def job(namespace: str, name: str, count: int, shape: Object) -> Object:
    """batch/v1 Job, indexed, all pods at once."""
    spec = {**shape["spec"], "restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completions": count,
            "parallelism": count,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"metadata": shape["metadata"], "spec": spec},
        },
    }


def near(**labels: str) -> Object:
    """Pod affinity: only on a node where a pod with these labels is. `more=near(app="x")`."""
    return {"affinity": {"podAffinity": _by_host(labels)}}


def apart(**labels: str) -> Object:
    """Pod anti-affinity: never on a node where a pod with these labels is."""
    return {"affinity": {"podAntiAffinity": _by_host(labels)}}


def spread(**labels: str) -> Object:
    """A hard topology spread: the pods with these labels differ by at most one between nodes."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }
    return {"topologySpreadConstraints": [constraint]}


def _by_host(labels: Mapping[str, str]) -> Object:
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
