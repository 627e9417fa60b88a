# SPDX-License-Identifier: Apache-2.0
"""Resource names and amounts: which unit a name is counted in, and which names are devices.

An amount map is `dict[name, int]`: `cpu` in millicores, `memory`/`ephemeral-storage`/`hugepages-*` in
bytes, everything else in whole units. Names are compared exactly and never converted into each other:
`nvidia.com/gpu`, `nvidia.com/mig-1g.10gb` and `nvidia.com/gpu.shared` are three columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from app.domain.errors import QuantityError
from app.domain.quantity import LIMIT, to_count, to_milli, to_units

Amounts: TypeAlias = dict[str, int]

CPU: Final = "cpu"
PODS: Final = "pods"
WHOLE_GPU_NODE: Final = 8
"""Devices of the common large server; packing avoids breaking such a node while it is empty."""


def is_device(name: str) -> bool:
    """Whether a name is an extended resource (core/v1 helpers `IsExtendedResourceName`)."""
    return "/" in name and not name.startswith("requests.") and not _is_native(name)


def _is_native(name: str) -> bool:
    return "kubernetes.io/" in name


def parse_amount(name: str, value: object) -> int:
    """One quantity in the unit of its name. Raises `QuantityError`."""
    if name == CPU:
        return to_milli(value)
    return to_count(value) if is_device(name) else to_units(value)


def parse_amounts(raw: Mapping[str, object] | None, *, field: str) -> Amounts:
    """A `ResourceList`. Raises `QuantityError` naming the key below `field`."""
    out: Amounts = {}
    for name, value in (raw or {}).items():
        try:
            out[name] = parse_amount(name, value)
        except QuantityError as error:
            raise QuantityError(str(error), field=f"{field}[{name}]") from None
    return out


def add(into: Amounts, other: Mapping[str, int]) -> None:
    """`into` += `other`, at most LIMIT each."""
    for name, amount in other.items():
        into[name] = min(into.get(name, 0) + amount, LIMIT)


def raise_to(into: Amounts, other: Mapping[str, int]) -> None:
    """`into` = max(`into`, `other`), name by name."""
    for name, amount in other.items():
        if amount > into.get(name, 0):
            into[name] = amount
