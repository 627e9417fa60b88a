# SPDX-License-Identifier: Apache-2.0
"""Words that several findings share: counts, lists that end, evidence of a node or a pod."""

from __future__ import annotations

from collections.abc import Sequence

from app.domain.pod import Pod
from app.explain.blocker import shown
from app.explain.case import Case
from app.explain.finding import Evidence
from app.explain.pool import Pool
from app.inventory.columns import Rows


def nodes(count: int) -> str:
    """`1 node`, `5 nodes`."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def pods(count: int) -> str:
    """`1 pod`, `5 pods`."""
    return f"{count} pod" if count == 1 else f"{count} pods"


def listed(parts: Sequence[str], *, most: int = 3) -> str:
    """The first few, and how many more there are."""
    more = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {more} more" if more > 0 else "")


def numbers(pool: Pool, rows: Rows | list[int]) -> str:
    """The numbers of a pool, of one row or summed over several."""
    columns = {
        "capacity": pool.capacity,
        "allocatable": pool.allocatable,
        "used": pool.used,
        "reserved": pool.reserved,
        "free": pool.free,
    }
    return ", ".join(f"{word} {shown(pool.name, int(each[rows].sum()))}" for word, each in columns.items())


def on_node(case: Case, row: int, field: str, value: str) -> Evidence:
    """A value of the node on a row."""
    return Evidence(f"node/{case.inventory.names[row]}", field, value)


def of_pod(pod: Pod, field: str, value: str) -> Evidence:
    """A value of a pod."""
    return Evidence(f"pod/{pod.key}", field, value)
