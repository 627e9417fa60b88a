# SPDX-License-Identifier: Apache-2.0
"""Evidence that several findings share: numbers of a pool, values of a node or a pod, names of gangs."""

from __future__ import annotations

from app.domain.ids import GangApi, GangKey
from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.finding import Evidence
from app.explain.pool import Pool
from app.explain.words import in_units
from app.inventory.columns import Rows


def numbers(pool: Pool, rows: Rows | list[int]) -> str:
    """The numbers of a pool, of one row or summed over several; what matters most comes first."""
    columns = {
        "free": pool.free,
        "allocatable": pool.allocatable,
        "used": pool.used,
        "reserved": pool.reserved,
        "capacity": pool.capacity,
    }
    return ", ".join(f"{in_units(pool.name, int(each[rows].sum()))} {word}" for word, each in columns.items())


def object_of(key: GangKey) -> str:
    """A gang as kubectl names what makes it one: its PodGroup, of which API must be said, or its only pod."""
    return f"pod/{key}" if key.api is GangApi.SINGLE else f"podgroup.{key.api}/{key}"


def name_of(key: GangKey) -> str:
    """The same in a sentence."""
    return f"pod {key}" if key.api is GangApi.SINGLE else f"gang {key}"


def on_node(case: Case, row: int, field: str, value: str) -> Evidence:
    """A value of the node on a row."""
    return Evidence(f"node/{case.inventory.names[row]}", field, value)


def of_pod(pod: Pod, field: str, value: str) -> Evidence:
    """A value of a pod."""
    return Evidence(f"pod/{pod.key}", field, value)
