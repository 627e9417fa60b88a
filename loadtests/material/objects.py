# SPDX-License-Identifier: Apache-2.0
"""Nodes, pods and PodGroups as the API server writes them, of real size, for tests that need thousands.

Plain functions of their arguments: equal arguments, equal objects. Creates nothing anywhere.
"""

from __future__ import annotations

from typing import Any

GPU = "nvidia.com/gpu"
NAMESPACE = "bench"
CREATED = "2026-01-01T00:00:00Z"
GROUP_API = "scheduling.x-k8s.io"
Json = dict[str, Any]


def node_name(index: int) -> str:
    """The name of node `index`, so that names sort as numbers do."""
    return f"node-{index:05d}"


def node(index: int, *, gpus: int = 8) -> Json:
    """A node with GPUs and a dozen labels."""
    amounts = {"cpu": "128", "memory": "1024Gi", "pods": "110", "ephemeral-storage": "900Gi", GPU: str(gpus)}
    labels = {f"example.com/label-{n}": f"value-{index % 7}" for n in range(12)}
    name = node_name(index)
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {}, "status": {
            "allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip


def pod(name: str, *, gpus: int, gang: str = "", on: str = "", gated: bool = False) -> Json:
    """A pod: a member if `gang` is given, running if it is `on` a node. No GPUs makes it a CPU pod."""
    limits = {"cpu": "8", **({GPU: str(gpus)} if gpus else {})}
    spec: Json = {
        "schedulerName": "muster", "priority": 0,
        "containers": [{"name": "main", "image": "train:1", "resources": {"limits": limits}}],
    }  # fmt: skip
    if on:
        spec["nodeName"] = on
    if gated:
        spec["schedulingGates"] = [{"name": "muster.dev/gang"}]
    labels = {f"{GROUP_API}/pod-group": gang} if gang else {}
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": NAMESPACE, "uid": name, "labels": labels, "creationTimestamp": CREATED,
        },
        "spec": spec, "status": {"phase": "Running" if on else "Pending"},
    }  # fmt: skip


def group(name: str, minimum: int) -> Json:
    """A PodGroup of the label API."""
    meta = {"name": name, "namespace": NAMESPACE, "uid": f"pg-{name}", "creationTimestamp": CREATED}
    spec = {"minMember": minimum}
    return {"apiVersion": f"{GROUP_API}/v1alpha1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def gang(name: str, size: int, *, gpus: int, gated: bool = False) -> list[Json]:
    """A PodGroup and all its members, none of them on a node."""
    members = (pod(f"{name}-{i}", gpus=gpus, gang=name, gated=gated) for i in range(size))
    return [group(name, size), *members]
