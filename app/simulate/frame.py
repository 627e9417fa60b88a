# SPDX-License-Identifier: Apache-2.0
"""The devices of a cluster at one moment: who holds which on every node, and how much the rest is good for.

Only what is bound counts as held. Pure: an inventory in, values out.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import msgspec
import numpy as np

from app.domain.node import NOT_READY, UNSCHEDULABLE, Node
from app.domain.resources import WHOLE_GPU_NODE, is_device
from app.inventory.columns import Mask
from app.inventory.inventory import Inventory, holder_of

_CLOSED: Final = {UNSCHEDULABLE.key, NOT_READY.key}


class Held(msgspec.Struct, frozen=True):
    """What one gang, or one pod of no gang, holds of a node's devices."""

    holder: str
    gang: bool
    amount: int


class Devices(msgspec.Struct, frozen=True):
    """One device resource of a node."""

    name: str
    capacity: int
    allocatable: int
    held: tuple[Held, ...]

    @property
    def free(self) -> int:
        """What a further pod could get."""
        return max(0, self.allocatable - sum(held.amount for held in self.held))

    @property
    def unhealthy(self) -> int:
        """What is there and not handed out."""
        return max(0, self.capacity - self.allocatable)


class NodeFrame(msgspec.Struct, frozen=True):
    """A node with devices. `closed` is why it takes no pods: cordoned or not ready; empty if it does."""

    name: str
    closed: str
    devices: tuple[Devices, ...]


class Total(msgspec.Struct, frozen=True):
    """One device resource of the cluster. `whole` counts open nodes of which none is used; `members` is the
    size of the largest gang, of members that ask for `size` each, that the open nodes have devices for."""

    name: str
    allocatable: int
    free: int
    whole: int
    size: int
    members: int


class Frame(msgspec.Struct, frozen=True):
    """`nodes` are those with devices, in the order of their names, numbers by value."""

    nodes: tuple[NodeFrame, ...]
    totals: tuple[Total, ...]
    without: int
    """Nodes without devices."""


def frame_of(inventory: Inventory) -> Frame:
    """The moment that the inventory shows."""
    held = _held(inventory)
    there = [node for row in range(inventory.columns.rows) if (node := inventory.nodes.get(row)) is not None]
    nodes = [frame for node in there if (frame := _node(node, held)).devices]
    nodes.sort(key=lambda frame: natural(frame.name))
    return Frame(nodes=tuple(nodes), totals=_totals(inventory), without=len(there) - len(nodes))


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts `n2` before `n10`."""
    return [(int(digits or 0), text) for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name)]


def _held(inventory: Inventory) -> dict[tuple[str, str], Counter[tuple[str, bool]]]:
    """By node and resource: how much each holder has."""
    held: dict[tuple[str, str], Counter[tuple[str, bool]]] = {}
    for pod in inventory.pods.values():
        if pod.node is None or pod.finished:
            continue
        for name, amount in pod.template.requests:
            if is_device(name) and amount:
                held.setdefault((pod.node, name), Counter())[holder_of(pod), pod.grouped] += amount
    return held


def _node(node: Node, held: dict[tuple[str, str], Counter[tuple[str, bool]]]) -> NodeFrame:
    names = sorted(name for name in {**node.capacity, **node.allocatable} if is_device(name))
    devices = (
        Devices(
            name=name,
            capacity=node.capacity.get(name, 0),
            allocatable=node.allocatable.get(name, 0),
            held=tuple(
                Held(holder=holder, gang=gang, amount=amount)
                for (holder, gang), amount in sorted(held.get((node.name, name), {}).items())
            ),
        )
        for name in names
    )
    some = tuple(one for one in devices if one.capacity or one.allocatable or one.held)
    return NodeFrame(name=node.name, closed=_closed(node), devices=some)


def _closed(node: Node) -> str:
    keys = {taint.key for taint in node.taints}
    if UNSCHEDULABLE.key in keys:
        return "cordoned"
    return "not ready" if NOT_READY.key in keys else ""


def _totals(inventory: Inventory) -> tuple[Total, ...]:
    rows = inventory.columns.rows
    nodes = [inventory.nodes.get(row) for row in range(rows)]
    open_rows = np.array([node is not None and not _closed(node) for node in nodes], np.bool_)
    names = [name for name in inventory.columns.column_of if is_device(name)]
    totals = [_total(inventory, name, open_rows) for name in names]
    return tuple(sorted((t for t in totals if t.allocatable), key=lambda t: (-t.allocatable, t.name)))


def _total(inventory: Inventory, name: str, open_rows: Mask) -> Total:
    allocatable, used = inventory.columns.allocatable(name), inventory.columns.used(name)
    free = np.maximum(allocatable - used, 0)
    size = min(WHOLE_GPU_NODE, int(allocatable.max(initial=1))) or 1
    return Total(
        name=name,
        allocatable=int(allocatable.sum()),
        free=int(free.sum()),
        whole=int(np.count_nonzero(open_rows & (allocatable > 0) & (used == 0))),
        size=size,
        members=int((free[open_rows] // size).sum()),
    )
