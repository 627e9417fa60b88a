# SPDX-License-Identifier: Apache-2.0
"""Read 1, device plugins: devices that a node has, or should have by its labels, and does not offer.

Nodes that the pods do not select are left out: what is broken there is not in their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import text
from app.explain.pool import Pool
from app.explain.reads.evidence import on_node
from app.explain.words import count
from app.matching.nodes import selected

COUNT_LABEL: Final = "nvidia.com/gpu.count"
_NO: Final = ("", "0", "false")

_SIGNS: Final[Mapping[str, Mapping[str, str]]] = {
    "nvidia.com": {
        "nvidia.com/gpu.present": "",
        COUNT_LABEL: "",
        "nvidia.com/gpu.product": "",
        "feature.node.kubernetes.io/pci-10de.present": "",
        "feature.node.kubernetes.io/pci-0300_10de.present": "",
        "feature.node.kubernetes.io/pci-0302_10de.present": "",
        "cloud.google.com/gke-accelerator": "",
        "k8s.amazonaws.com/accelerator": "nvidia",
        "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
        "eks.amazonaws.com/instance-gpu-manufacturer": "nvidia",
        "kubernetes.azure.com/accelerator": "nvidia",
    },
    "amd.com": {
        "feature.node.kubernetes.io/amd-gpu": "",
        "amd.com/gpu.device-id": "",
        "amd.com/gpu.product-name": "",
        "beta.amd.com/gpu.device-id": "",
        "karpenter.k8s.aws/instance-gpu-manufacturer": "amd",
        "kubernetes.azure.com/accelerator": "amd",
    },
    "gpu.intel.com": {
        "intel.feature.node.kubernetes.io/gpu": "",
        "gpu.intel.com/device.count": "",
        "gpu.intel.com/product": "",
    },
}
"""By the vendor's domain: labels that say a node has its devices, and how the value must begin."""


@finding(
    "DevicesUnhealthy",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="in capacity, not allocatable: {missing} {name} on {nodes}; the plugin calls them unhealthy",
    meaning=(
        "A device plugin tells kubelet which devices a node has (capacity) and which of them can be used"
        " (allocatable). A device that its plugin calls unhealthy leaves allocatable and stays in capacity:"
        " it looks free in a sum over capacity. The logs of plugin and driver say what is wrong with it."
    ),
    confirm=("kubectl get node {first} -o jsonpath='{{.status.capacity}} {{.status.allocatable}}'",),
    decide=("drain and repair the nodes, or restart the device plugin there",),
)
def devices_unhealthy(case: Case) -> Iterable[Hit]:
    """Per device that is asked for: nodes that offer some of what they have."""
    return _below_capacity(case, offering=True)


@finding(
    "DevicePluginDown",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence=(
        "in capacity, not allocatable: all {missing} {name} of {nodes}; the plugin is down there, or calls"
        " every device unhealthy"
    ),
    meaning=(
        "When a device plugin stops, kubelet takes all its devices out of allocatable at once and leaves"
        " capacity as it was for some minutes. The same is seen when every device is unhealthy, as after a"
        " failed driver update. No pod that asks for these devices can be placed on such a node."
    ),
    confirm=(
        "kubectl get node {first} -o jsonpath='{{.status.capacity}} {{.status.allocatable}}'",
        "kubectl get pods -A -o wide --field-selector spec.nodeName={first}",
    ),
    decide=("restart the device plugin on the nodes, or repair their driver",),
)
def device_plugin_down(case: Case) -> Iterable[Hit]:
    """Per device that is asked for: nodes that have some and offer none."""
    return _below_capacity(case, offering=False)


def _below_capacity(case: Case, *, offering: bool) -> Iterator[Hit]:
    for pool in _devices(case):
        below = (pool.capacity > pool.allocatable) & ((pool.allocatable > 0) == offering)
        rows = [row for row in np.flatnonzero(below).tolist() if _chosen(case, pool, row)]
        if rows:
            yield hit(
                *(
                    on_node(
                        case,
                        row,
                        f".status.allocatable['{pool.name}']",
                        f"{pool.allocatable[row]}, capacity {pool.capacity[row]}",
                    )
                    for row in rows
                ),
                name=pool.name,
                nodes=count(len(rows), "node"),
                missing=int((pool.capacity - pool.allocatable)[rows].sum()),
                first=case.inventory.names[rows[0]],
            )


@finding(
    "DevicesNotAdvertised",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="labelled as having {domain} devices, and advertising none: {nodes}",
    meaning=(
        "The labels of these nodes say that they have devices of this vendor, or their capacity names the"
        " resource with 0, as kubelet leaves it some minutes after a device plugin has gone. No device plugin"
        " advertises one: it was never installed there (a taint it does not tolerate, a selector that does"
        " not match), it crashes, or the driver is missing. Devices that are given out by resource claims"
        " (DRA) are not advertised either: then nothing is wrong, and pods have to ask by a claim."
    ),
    confirm=(
        "kubectl get pods -A -o wide --field-selector spec.nodeName={first}",
        "kubectl get resourceslices --field-selector spec.nodeName={first}",
    ),
    decide=("install or repair driver and device plugin on the nodes",),
)
def devices_not_advertised(case: Case) -> Iterable[Hit]:
    """Per vendor that is asked for: nodes that should have its devices and advertise none of any name."""
    sliced = {text(one, "spec", "nodeName") for one in case.objects.of("ResourceSlice.resource.k8s.io")}
    for domain, pool in {_domain(pool.name): pool for pool in _devices(case)}.items():
        signs = {row: sign for row in _bare(case, domain) if (sign := _sign(case, row, domain))}
        signs = {row: sign for row, sign in signs.items() if _chosen(case, pool, row)}
        signs = {row: sign for row, sign in signs.items() if case.inventory.names[row] not in sliced}
        if signs:
            yield hit(
                *(on_node(case, row, *sign) for row, sign in signs.items()),
                nodes=count(len(signs), "node"),
                domain=domain,
                first=case.inventory.names[next(iter(signs))],
            )


@finding(
    "FewerDevicesThanLabelled",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="fewer {name} in capacity than the label {label} says: {missing} missing on {nodes}",
    meaning=(
        "The label was written from what the driver saw when the node was inspected; capacity is what the"
        " device plugin offers now. A device that fell off the bus is not seen by a plugin that starts"
        " afterwards: it leaves capacity too, and only the label remembers it."
    ),
    confirm=("kubectl get node {first} -o jsonpath='{{.metadata.labels}} {{.status.capacity}}'",),
    decide=("drain the nodes and let somebody look at the devices",),
)
def fewer_devices_than_labelled(case: Case) -> Iterable[Hit]:
    """Nodes with whole devices alone whose label counts more of them."""
    pool = next((pool for pool in case.pools if pool.name == "nvidia.com/gpu"), None)
    short = dict(_short(case, pool)) if pool is not None else {}
    if pool is not None and short:
        yield hit(
            *(
                on_node(case, row, f".status.capacity['{pool.name}']", f"{pool.capacity[row]}, label {label}")
                for row, label in short.items()
            ),
            name=pool.name,
            nodes=count(len(short), "node"),
            label=COUNT_LABEL,
            missing=sum(label - int(pool.capacity[row]) for row, label in short.items()),
            first=case.inventory.names[next(iter(short))],
        )


def _short(case: Case, pool: Pool) -> Iterator[tuple[int, int]]:
    for row in np.flatnonzero(pool.capacity > 0).tolist():
        node = case.inventory.nodes.get(row)
        label = node.labels.get(COUNT_LABEL, "") if node is not None else ""
        if node is None or not label.isdecimal() or len(label) > 4 or int(label) <= pool.capacity[row]:
            continue
        cut = any(
            n != pool.name and amount and _domain(n) == "nvidia.com" for n, amount in node.capacity.items()
        )
        if not cut and _chosen(case, pool, row):
            yield row, int(label)


def _devices(case: Case) -> list[Pool]:
    return [pool for pool in case.pools if is_device(pool.name)]


def _domain(name: str) -> str:
    return name.partition("/")[0]


def _chosen(case: Case, pool: Pool, row: int) -> bool:
    """Whether the pods would use the node on a row, if it were in order."""
    node = case.inventory.nodes.get(row)
    return node is not None and selected(pool.template, node.name, node.labels)


def _bare(case: Case, domain: str) -> list[int]:
    """Rows where no resource of the domain is allocatable."""
    columns = case.inventory.columns
    bare = np.ones(columns.rows, np.bool_)
    for name in columns.column_of:
        if _domain(name) == domain:
            bare &= columns.allocatable(name) == 0
    found: list[int] = np.flatnonzero(bare).tolist()
    return found


def _sign(case: Case, row: int, domain: str) -> tuple[str, str] | None:
    """Where a node without capacity of the domain says that it should have some: field and value."""
    node = case.inventory.nodes.get(row)
    if node is None:
        return None
    listed = [(name, amount) for name, amount in node.capacity.items() if _domain(name) == domain]
    if any(amount for _, amount in listed):
        return None  # down, which is another finding
    for label, start in _SIGNS.get(domain, {}).items():
        value = node.labels.get(label, "")
        if value.lower() not in _NO and value.lower().startswith(start):
            return f".metadata.labels['{label}']", value
    return (f".status.capacity['{listed[0][0]}']", "0") if listed else None


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    devices_unhealthy,
    device_plugin_down,
    devices_not_advertised,
    fewer_devices_than_labelled,
)
