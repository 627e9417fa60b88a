# SPDX-License-Identifier: Apache-2.0
"""Read 2, device health: what kubelet wrote of the devices that pods hold (`allocatedResourcesStatus`).

Devices of resource claims are told with the claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from app.codec.snapshot import JsonObject
from app.domain.pod import DeviceHealth, Pod
from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import maps, text
from app.explain.reads.evidence import of_pod
from app.explain.words import count, listed

FIELD: Final = ".status.containerStatuses[*].allocatedResourcesStatus"
_CLAIM: Final = "claim:"


@finding(
    "DeviceNotHealthy",
    read=Read.HEALTH,
    weight=Weight.WARNS,
    sentence="devices of {pods} in question are not healthy: {what}",
    meaning=(
        "Kubelet writes into the pod's status what the device plugin says of each device that the pod holds."
        " Unhealthy means that the plugin has found a fault; the pod goes on running and may hang or compute"
        " rubbish. Unknown means that kubelet cannot tell: the plugin has gone and not come back. A container"
        " that is restarted gets the same devices again; only a new pod gets others."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status.containerStatuses}}'",),
    decide=("delete the pod, so that its replacement gets other devices", "cordon the node and repair it"),
)
def device_not_healthy(case: Case) -> Iterable[Hit]:
    """Devices of the pods in question."""
    return _sick([pod for pod in case.bound if _devices(pod)])


@finding(
    "HolderNotHealthy",
    read=Read.HEALTH,
    weight=Weight.WARNS,
    sentence="devices of {pods} holding {name} where the pods may go are not healthy: {what}",
    meaning=(
        "A pod on a broken device holds it, and all its other devices, until it ends, and it may never end."
        " When it does, the broken device leaves allocatable: not all that the pod holds will come free."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status.containerStatuses}}'",),
    decide=("ask the owner whether the pod still makes progress", "cordon the node and repair it"),
)
def holder_not_healthy(case: Case) -> Iterable[Hit]:
    """Per resource: pods of others that hold it where the pods may go."""
    own = {pod.uid for pod in case.pods}
    for pool in case.pools:
        others = [pod for pod in case.ledger[pool.name].sick if pod.uid not in own and _devices(pod)]
        yield from _sick(others, name=pool.name)


@finding(
    "DevicesReportedHealthy",
    read=Read.HEALTH,
    weight=Weight.FINE,
    sentence="all {devices} devices reported for {pods} in question are fine, as far as their plugin knows",
    meaning=(
        "A healthy status is what the device plugin says, and no more: that it has seen no fault of the kinds"
        " it watches. It does not prove that the device computes correctly, runs at full speed, or that the"
        " links between devices and nodes work. A plugin without health checks reports every device as"
        " healthy; the status may be minutes old when kubelet is busy."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status.containerStatuses}}'",),
)
def devices_reported_healthy(case: Case) -> Iterable[Hit]:
    """Devices of the pods in question, where all that are reported are healthy."""
    reported = {pod.uid: _reported(case.raw(pod)) for pod in case.bound}
    told = [pod for pod in case.bound if reported[pod.uid]]
    if told and not any(_devices(pod) for pod in case.bound):
        yield hit(
            *(of_pod(pod, FIELD, f"{len(reported[pod.uid])} Healthy") for pod in told),
            pods=count(len(told), "pod"),
            devices=sum(len(reported[pod.uid]) for pod in told),
            pod=told[0].name,
            namespace=told[0].namespace,
        )


@finding(
    "HealthNotReported",
    read=Read.HEALTH,
    weight=Weight.NOTE,
    sentence="could not tell: nothing is reported of the devices of {pods} in question",
    meaning=(
        "Kubelet reports the health of devices only with the feature gate ResourceHealthStatus (beta and on"
        " by default since Kubernetes 1.36), and only for plugins that report it. Where nothing is reported,"
        " nothing is known: the devices may be broken."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status.containerStatuses}}'",),
)
def health_not_reported(case: Case) -> Iterable[Hit]:
    """Pods in question that hold devices of a plugin without a status."""
    silent = [pod for pod in case.bound if _asks(pod) and (raw := case.raw(pod)) and not _statuses(raw)]
    if silent:
        yield hit(
            *(of_pod(pod, FIELD, "absent") for pod in silent),
            pods=count(len(silent), "pod"),
            pod=silent[0].name,
            namespace=silent[0].namespace,
        )


def _sick(found: list[Pod], name: str = "") -> Iterable[Hit]:
    """One hit for all devices that are not healthy, worst first."""
    found = sorted(found, key=lambda pod: (all(one.health != "Unhealthy" for one in _devices(pod)), pod.key))
    each = [(pod, one) for pod in found for one in _devices(pod)]
    if each:
        kinds = Counter((one.resource, one.health, one.message) for _, one in each)
        yield hit(
            *(_evidence(pod, one) for pod, one in each),
            name=name,
            pods=count(len(found), "pod"),
            what=listed([_kind(*kind, count) for kind, count in kinds.most_common()]),
            pod=found[0].name,
            namespace=found[0].namespace,
        )


def _kind(resource: str, health: str, message: str, count: int) -> str:
    return f"{count} {resource} {health}" + (f" ({message})" if message else "")


def _evidence(pod: Pod, one: DeviceHealth) -> Evidence:
    words = (one.resource, one.device, f"{one.health} on {pod.node}", one.message)
    return of_pod(pod, FIELD, " ".join(word for word in words if word))


def _devices(pod: Pod) -> list[DeviceHealth]:
    """What is not healthy of the devices that a plugin gave to a pod."""
    return [one for one in pod.sick if not one.resource.startswith(_CLAIM)]


def _asks(pod: Pod) -> bool:
    return any(is_device(name) for name, _ in pod.template.requests)


def _statuses(raw: JsonObject) -> list[JsonObject]:
    """The devices of a plugin that a raw pod has a status for."""
    containers = [
        one for kind in ("initContainerStatuses", "containerStatuses") for one in maps(raw, "status", kind)
    ]
    allocated = [status for one in containers for status in maps(one, "allocatedResourcesStatus")]
    plugin = [status for status in allocated if not text(status, "name").startswith(_CLAIM)]
    return [device for status in plugin for device in maps(status, "resources")]


def _reported(raw: JsonObject) -> list[JsonObject]:
    return [device for device in _statuses(raw) if text(device, "health") == "Healthy"]


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    device_not_healthy,
    holder_not_healthy,
    devices_reported_healthy,
    health_not_reported,
)
