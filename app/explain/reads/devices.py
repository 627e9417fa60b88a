# SPDX-License-Identifier: Apache-2.0
"""Read 1, devices: capacity against allocatable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit


@finding(
    "AllocatableBelowCapacity",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="{missing} {name} of {nodes} nodes are not allocatable: unhealthy, or the device plugin is down",
    meaning=(
        "A device plugin advertises how many devices a node has (capacity) and how many can be used"
        " (allocatable). A device that its plugin calls unhealthy, or a plugin that stopped, takes devices"
        " out of allocatable and leaves capacity as it was. Such devices look free in a sum over capacity."
    ),
    confirm=("kubectl get node {first} -o jsonpath='{{.status.capacity}} {{.status.allocatable}}'",),
    decide=("drain and repair the nodes, or restart the device plugin there",),
)
def allocatable_below_capacity(case: Case) -> Iterable[Hit]:
    """Per resource that is asked for: nodes with fewer allocatable than they have."""
    for name in case.devices:
        capacity, allocatable = case.capacity(name), case.inventory.columns.allocatable(name)
        rows = np.flatnonzero(capacity > allocatable)
        if not len(rows):
            continue
        evidence = [
            Evidence(
                f"node/{case.inventory.names[row]}",
                f".status.allocatable['{name}']",
                f"{allocatable[row]}, capacity {capacity[row]}",
            )
            for row in rows
        ]
        missing = int((capacity - allocatable)[rows].sum())
        first = case.inventory.names[rows[0]]
        yield hit(*evidence, name=name, nodes=len(rows), missing=missing, first=first)


FINDINGS: Final[tuple[Topic[Case], ...]] = (allocatable_below_capacity,)
