# SPDX-License-Identifier: Apache-2.0
"""A volume that takes as long as the test wants: the honest way to keep one member from reaching bind.

kube-scheduler chooses the node of such a pod (filter, seat) and then waits in PreBind, before the bind call,
until somebody has provisioned the volume. `provide` plays that somebody; nobody else does.
"""

from __future__ import annotations

from tests.real.lab import Lab
from tests.real.workloads import Object, pod, template

CLASS = "slow"


def late_member(lab: Lab, gang: str, *, gpus: int = 1) -> None:
    """One more member, `<gang>-late`, that is on its way to bind until `provide(lab, gang)`."""
    slow_claim(lab, gang)
    lab.create(pod(lab.namespace, f"{gang}-late", template(gang=gang, gpus=gpus, more=mounts(gang))))


def mounts(claim: str) -> Object:
    """The part of a pod's spec that uses a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def slow_claim(lab: Lab, name: str, namespace: str | None = None) -> None:
    """A PersistentVolumeClaim whose volume is made only after its first pod has a node."""
    lab.cluster.apply([_storage_class()])
    lab.create(_claim(namespace or lab.namespace, name))


def provide(lab: Lab, name: str, namespace: str | None = None) -> None:
    """The volume for a claim: kube-controller-manager binds the two, and PreBind ends."""
    where = namespace or lab.namespace
    path = f"/api/v1/namespaces/{where}/persistentvolumeclaims/{name}"
    uid = lab.cluster.get(path)["metadata"]["uid"]  # without it the controller would look every 15 s only
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": CLASS,
        "claimRef": {"namespace": where, "name": name, "uid": uid},
        "csi": {"driver": "slow.test", "volumeHandle": name},
    }
    meta = {"name": f"{where}-{name}"}
    lab.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec})


def _storage_class() -> Object:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": "slow.test",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _claim(namespace: str, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
