# SPDX-License-Identifier: Apache-2.0
"""Nodes and pods as large as real ones (managed fields, images, conditions, probes), made from two patterns.

A pattern is the JSON of one object with `%(name)s`-like marks in it, so that an object costs microseconds.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

Json = dict[str, Any]

GANG_SIZE: Final = 8
GPU: Final = "nvidia.com/gpu"
_TIME: Final = "2026-01-01T00:00:00Z"


class Objects:
    """Object `number` of a kind: pods sit on the nodes in turn; the first of them are members of gangs."""

    def __init__(self, *, nodes: int, gangs: int) -> None:
        self._nodes = nodes
        self._members = gangs * GANG_SIZE
        self._node = orjson.dumps(_node())
        self._pod = orjson.dumps(_pod())

    def node(self, number: int, version: int, *, beat: int = 0) -> bytes:
        """A Ready node; `beat` is what differs from one status update to the next."""
        values = {b"n": number, b"v": version, b"t": 10 + beat % 50, b"zone": number % 3}
        return self._node % values

    def pod(self, number: int, version: int, *, beat: int = 0) -> bytes:
        """A running pod; every other one has a GPU."""
        gang = b"gang-%d" % (number // GANG_SIZE) if number < self._members else b""
        values = {
            b"n": number, b"v": version, b"t": 10 + beat % 50, b"node": number % self._nodes,
            b"gang": gang, b"gpus": number % 2, b"set": number // 20,
        }  # fmt: skip
        return self._pod % values

    def group(self, number: int) -> bytes:
        """The PodGroup of a gang, its counts as they are."""
        meta = {
            "name": f"gang-{number}", "namespace": "train", "uid": f"group-{number}",
            "resourceVersion": str(number + 1), "creationTimestamp": _TIME,
        }  # fmt: skip
        status = {"scheduled": GANG_SIZE, "running": GANG_SIZE, "succeeded": 0, "failed": 0}
        api = "scheduling.x-k8s.io/v1alpha1"
        spec = {"minMember": GANG_SIZE}
        return orjson.dumps(
            {"apiVersion": api, "kind": "PodGroup", "metadata": meta, "spec": spec, "status": status}
        )


def _node() -> Json:
    amounts = {
        "cpu": "128", "memory": "1056270424Ki", "pods": "110", "ephemeral-storage": "1783468Mi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0", GPU: "8",
    }  # fmt: skip
    labels = {
        "kubernetes.io/hostname": "node-%(n)d", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "region-1-%(zone)d", "node.kubernetes.io/instance-type": "gpu-8x",
        **{f"nvidia.com/gpu.property-{i}": f"value-{i}" for i in range(20)},
        **{f"feature.node.kubernetes.io/cpu-cpuid.F{i}": "true" for i in range(20)},
    }  # fmt: skip
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure")
    node: Json = {
        "metadata": _meta("node-%(n)d", labels),
        "spec": {"podCIDR": "10.1.2.0/24", "podCIDRs": ["10.1.2.0/24"], "providerID": "cloud:///node-%(n)d"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [*(_condition(kind, "False") for kind in kinds), _condition("Ready", "True")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {f"field{i}": "some-version-of-something-1.2.3" for i in range(10)},
            "images": [
                {"names": [f"registry.example/team/image-{i}@sha256:{i:064d}"], "sizeBytes": 10**9 + i}
                for i in range(12)
            ],
        },
    }
    return _managed(node, "kubelet")


def _pod() -> Json:
    labels = {
        "app": "set-%(set)d", "pod-template-hash": "5d8f9c7b6d", "team": "research",
        "scheduling.x-k8s.io/pod-group": "%(gang)b",
    }  # fmt: skip
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "set-%(set)d", "uid": "set-%(set)d",
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    meta = {**_meta("pod-%(n)d", labels), "namespace": "train", "ownerReferences": [owner]}
    status = {
        "phase": "Running",
        "conditions": [
            _condition(kind, "True")
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready", "PodReadyToStart")
        ],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.2.3",
        "podIPs": [{"ip": "10.1.2.3"}],
        "startTime": _TIME,
        "containerStatuses": [
            {
                "name": "main", "ready": True, "started": True, "restartCount": 0,
                "image": "registry.example/team/train:1", "imageID": "registry.example/team/train@sha256:0",
                "containerID": "containerd://%(n)064d", "state": {"running": {"startedAt": _TIME}},
            }
        ],
        "qosClass": "Burstable",
    }  # fmt: skip
    return _managed({"metadata": meta, "spec": _pod_spec(), "status": status}, "kubelet")


def _pod_spec() -> Json:
    mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True, "name": "token"}
    devices = {GPU: "%(gpus)d"}
    container = {
        "name": "main", "image": "registry.example/team/train:1", "imagePullPolicy": "IfNotPresent",
        "args": ["--config", "/etc/train/config.yaml", "--workers", "8"],
        "env": [{"name": f"SETTING_{i}", "value": f"the value of setting {i}"} for i in range(8)],
        "resources": {"requests": {"cpu": "2", "memory": "8Gi", **devices}, "limits": devices},
        "volumeMounts": [mount, {"name": "config", "mountPath": "/etc/train"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    }  # fmt: skip
    lasting = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": "train", "defaultMode": 420}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "containers": [container], "nodeName": "node-%(node)d", "restartPolicy": "Never",
        "schedulerName": "muster", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
        "serviceAccountName": "default", "dnsPolicy": "ClusterFirst", "securityContext": {},
        "terminationGracePeriodSeconds": 30, "enableServiceLinks": True,
        "tolerations": [
            {"key": f"node.kubernetes.io/{kind}", **lasting} for kind in ("not-ready", "unreachable")
        ],
    }  # fmt: skip


def _meta(name: str, labels: Json) -> Json:
    return {
        "name": name, "uid": f"00000000-0000-4000-8000-{name}", "resourceVersion": "%(v)d",
        "creationTimestamp": _TIME, "labels": labels,
        "annotations": {f"example.com/note-{i}": "something that a controller wrote" for i in range(5)},
    }  # fmt: skip


def _condition(kind: str, status: str) -> Json:
    return {
        "type": kind, "status": status, "reason": f"KubeletSays{kind}", "message": f"kubelet says {kind}",
        "lastHeartbeatTime": "2026-01-01T00:00:%(t)dZ", "lastTransitionTime": _TIME,
    }  # fmt: skip


def _managed(obj: Json, manager: str) -> Json:
    """The object with its managed fields, which are a third of what a real one weighs."""
    entries = [("kube-controller-manager", "", ("metadata", "spec")), (manager, "status", ("status",))]
    obj["metadata"]["managedFields"] = [
        {
            "manager": who, "operation": "Update", "apiVersion": "v1", "time": _TIME,
            "fieldsType": "FieldsV1", "subresource": sub,
            "fieldsV1": {f"f:{part}": _fields(obj[part]) for part in parts},
        }
        for who, sub, parts in entries
    ]  # fmt: skip
    return obj


def _fields(value: object) -> Json:
    if not isinstance(value, dict):
        return {}
    return {f"f:{name}": _fields(inner) for name, inner in value.items()}
