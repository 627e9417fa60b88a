# SPDX-License-Identifier: Apache-2.0
"""Objects of Dynamic Resource Allocation for tests, as the API shows them: raw JSON of resource.k8s.io/v1.

    make_class("gpu").selector('device.driver == "gpu.example.com"')
    make_slice("n1").gpus(8)                         one slice, one pool: the node's
    make_template("gpus").request(count=2)           make_claim("shared").request()
    claim.allocated("n1", "gpu-0").reserved("w0")    .made_for("w0") from a template

Every builder takes `.beta()`: the same as resource.k8s.io/v1beta1 has it.
"""

from __future__ import annotations

from typing import Any, Self

from tests.builders import CREATED, Builder, Json, PodBuilder

DRIVER = "gpu.example.com"


class SliceBuilder(Builder):
    """A ResourceSlice; the only one of the pool of its node, unless told otherwise."""

    def gpus(self, count: int, **more: Any) -> Self:
        """Devices `gpu-0` and so on, of model H100 with 80Gi; `more` are further fields of each."""
        made = self
        for index in range(count):
            made = made.device(f"gpu-{index}", **more)
        return made

    def device(self, name: str, *, model: str = "H100", memory: str = "80Gi", **more: Any) -> Self:
        """One more device."""
        device = {
            "name": name,
            "attributes": {"model": {"string": model}, "healthy": {"bool": True}, "cores": {"int": 132}},
            "capacity": {"memory": {"value": memory}},
        }
        return self.append("spec.devices", {**device, **more})

    def pool(self, name: str, *, generation: int = 1, slices: int = 1) -> Self:
        """Of which pool it is, and of how many slices it says the pool is made."""
        return self.set("spec.pool", {"name": name, "generation": generation, "resourceSliceCount": slices})

    def beta(self) -> Self:
        """In the form of v1beta1."""
        devices = [
            {"name": device["name"], "basic": {k: v for k, v in device.items() if k != "name"}}
            for device in self.get("spec.devices", [])
        ]
        return self.set("apiVersion", "resource.k8s.io/v1beta1").set("spec.devices", devices)


class ClassBuilder(Builder):
    """A DeviceClass."""

    def selector(self, expression: str) -> Self:
        """One more CEL selector."""
        return self.append("spec.selectors", {"cel": {"expression": expression}})

    def offers(self, resource: str) -> Self:
        """Under the name of an extended resource as well."""
        return self.set("spec.extendedResourceName", resource)


class ClaimBuilder(Builder):
    """A ResourceClaim or ResourceClaimTemplate without requests."""

    @property
    def _path(self) -> str:
        template = self.get("kind") == "ResourceClaimTemplate"
        return "spec.spec.devices" if template else "spec.devices"

    def request(self, device_class: str = "gpu", *, name: str = "gpu", **fields: Any) -> Self:
        """One more request, for exactly this."""
        exactly = exact(device_class, **fields)
        return self.append(f"{self._path}.requests", {"name": name, "exactly": exactly})

    def first_of(self, *alternatives: Json, name: str = "gpu") -> Self:
        """One more request, for the first of `exact(…, name=…)`."""
        return self.append(f"{self._path}.requests", {"name": name, "firstAvailable": list(alternatives)})

    def namespace(self, namespace: str) -> Self:
        return self.set("metadata.namespace", namespace)

    def made_for(self, pod: str, *, kind: str = "Pod", version: str = "v1") -> Self:
        """Made from a template for a pod, which owns it."""
        owner = {"apiVersion": version, "kind": kind, "name": pod, "uid": f"uid-{pod}", "controller": True}
        return self.set("metadata.ownerReferences", [owner])

    def allocated(self, node: str, *devices: str, at: str = "", **more: Any) -> Self:
        """Given devices of a node's pool. `more` are further fields of each result."""
        results = [
            {"request": "gpu", "driver": DRIVER, "pool": node, "device": device, **more} for device in devices
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        made = self.set("status.allocation.devices", {"results": results}).set(
            "status.allocation.nodeSelector", {"nodeSelectorTerms": [{"matchFields": [field]}]}
        )
        return made.set("status.allocation.allocationTimestamp", at) if at else made

    def reserved(self, *pods: str) -> Self:
        """Reserved for pods, by name."""
        made = self
        for pod in pods:
            made = made.append("status.reservedFor", {"resource": "pods", "name": pod, "uid": f"uid-{pod}"})
        return made

    def beta(self) -> Self:
        """In the form of v1beta1."""
        flat = [
            {"name": request["name"], **request["exactly"]} for request in self.get(f"{self._path}.requests")
        ]
        made = self.set("apiVersion", "resource.k8s.io/v1beta1")
        return made.set(f"{self._path}.requests", flat)


def exact(device_class: str, *, selector: str = "", tolerate: str = "", **fields: Any) -> Json:
    """What is asked for exactly; `tolerate` is the key of any taint."""
    made: Json = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1, **fields}
    if selector:
        made["selectors"] = [{"cel": {"expression": selector}}]
    if tolerate:
        made["tolerations"] = [{"key": tolerate, "operator": "Exists"}]
    return made


def uses_template(pod: PodBuilder, template: str, *, claim: str = "") -> PodBuilder:
    """A pod with a claim from a template; `claim` is the one that has been made."""
    made = pod.append("spec.resourceClaims", {"name": "gpu", "resourceClaimTemplateName": template})
    status = {"name": "gpu", "resourceClaimName": claim}
    return made.append("status.resourceClaimStatuses", status) if claim else made


def make_class(name: str = "gpu") -> ClassBuilder:
    """A class without selectors."""
    return ClassBuilder(_object("DeviceClass", name, {}))


def make_slice(node: str, *, name: str = "") -> SliceBuilder:
    """A slice of the node's own pool, without devices."""
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
    }
    return SliceBuilder(_object("ResourceSlice", name or f"{node}-{DRIVER}-x7k2p", spec))


def make_claim(name: str, namespace: str = "default") -> ClaimBuilder:
    """A claim that asks for nothing yet and has not been allocated."""
    obj = _object("ResourceClaim", name, {"devices": {}}) | {"status": {}}
    obj["metadata"]["namespace"] = namespace
    return ClaimBuilder(obj)


def make_template(name: str, namespace: str = "default") -> ClaimBuilder:
    """A template that asks for nothing yet."""
    obj = _object("ResourceClaimTemplate", name, {"spec": {"devices": {}}})
    obj["metadata"]["namespace"] = namespace
    return ClaimBuilder(obj)


def make_rule(name: str, taint: Json, **selector: str) -> Builder:
    """A DeviceTaintRule for the devices that `driver=`, `pool=` and `device=` select."""
    return Builder(_object("DeviceTaintRule", name, {"deviceSelector": selector, "taint": taint}))


def _object(kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": CREATED}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
