# SPDX-License-Identifier: Apache-2.0
"""The prioritize verb for pods that have no seat: pack devices, keep empty 8-GPU nodes whole, steer pods
without devices off device nodes, and put a node that keeps failing pods at admission last.

Only scores; never refuses. kube-scheduler reads a missing node as 0, so only higher scores are returned.
"""

from __future__ import annotations

from app.domain.ids import NodeName
from app.domain.pod import Pod
from app.domain.resources import WHOLE_GPU_NODE, is_device
from app.inventory.inventory import Inventory

BEST = 10
BAD_STARTS = 3
"""From this many pods that failed at admission a node is taken for broken."""


def prioritize(inventory: Inventory, pod: Pod, names: list[str]) -> dict[str, int]:
    """Node → score 1 to 10, for offered nodes that score at all."""
    devices = [name for name, _ in pod.template.requests if is_device(name)]
    score = _pack if devices else _steer
    scores = {}
    for name in names:
        row = inventory.columns.row_of.get(NodeName(name))
        if row is None or inventory.bad_starts[NodeName(name)] >= BAD_STARTS:
            continue
        value = score(inventory, row, devices)
        if value > 0:
            scores[name] = value
    return scores


def _pack(inventory: Inventory, row: int, devices: list[str]) -> int:
    """9 for the node with least left, down to 2; 1 for a large node that is still whole."""
    total = free = 0
    for name in devices:
        allocatable, used, reserved = inventory.columns.cell(name, row)
        total += allocatable
        free += allocatable - used - reserved
    if total >= WHOLE_GPU_NODE and free >= total:
        return 1
    return 2 + round(7 * (1 - max(0, free) / max(total, 1)))


def _steer(inventory: Inventory, row: int, devices: list[str]) -> int:
    columns = inventory.columns
    has = any(columns.cell(name, row)[0] > 0 for name in columns.column_of if is_device(name))
    return 0 if has else BEST
