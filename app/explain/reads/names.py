# SPDX-License-Identifier: Apache-2.0
"""Read 1, names: a device is asked for by one name and offered by another.

Names are compared exactly, as Kubernetes does. Which names mean devices of one kind is known for the common
device plugins; for others a name counts as near when it is spelled nearly alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

import numpy as np

from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.words import count, listed

_FAMILIES: Final = (
    re.compile(r"nvidia\.com/(gpu(\.shared)?|mig-.+)"),
    re.compile(r"amd\.com/(gpu(_[vp]f)?|[a-z]px_nps\d+)"),
    re.compile(r"gpu\.intel\.com/(i915|xe)"),
    re.compile(r"huawei\.com/Ascend.+"),
    re.compile(r"aws\.amazon\.com/neuron(core|device)?"),
)
"""Names under which one vendor's devices are offered, depending on how its plugin is configured."""

_ORIGINS: Final = (
    (re.compile(r"nvidia\.com/gpu\.shared"), "a share of a GPU, by time-slicing or MPS with renaming"),
    (re.compile(r"nvidia\.com/mig-.+"), "a MIG instance, by the mixed strategy"),
    (re.compile(r"nvidia\.com/(gpumem(-percentage)?|gpucores)"), "for a scheduler that shares GPUs itself"),
    (re.compile(r"amd\.com/[a-z]px_nps\d+"), "a partition, by the mixed naming strategy"),
    (re.compile(r"amd\.com/gpu_[vp]f"), "a GPU passed through to a virtual machine"),
    (re.compile(r"gpu\.intel\.com/i915"), "a GPU under the i915 driver"),
    (re.compile(r"gpu\.intel\.com/xe"), "a GPU under the xe driver"),
)


@finding(
    "ResourceNotOffered",
    read=Read.DEVICES,
    weight=Weight.BLOCKS,
    sentence="no node offers {name}: {instead}",
    meaning=(
        "The pods ask for a resource by a name that is in no node's capacity. Device plugins offer the same"
        " devices by other names when they are configured to share or partition them: time-slicing with"
        " renaming (`nvidia.com/gpu.shared`), MIG with the mixed strategy (`nvidia.com/mig-1g.10gb`), AMD"
        " partitions with the mixed naming strategy (`amd.com/cpx_nps4`), or the driver of an Intel GPU"
        " (`gpu.intel.com/i915`, `gpu.intel.com/xe`). One name is never converted into another. Some names"
        " (`nvidia.com/gpumem`) are not offered by nodes at all: a scheduler of their own handles them."
    ),
    confirm=("kubectl get nodes -o jsonpath='{{.items[*].status.capacity}}'",),
    decide=("ask by a name that nodes offer", "have the device plugin offer this name"),
)
def resource_not_offered(case: Case) -> Iterable[Hit]:
    """Per device: its name is in no node's capacity."""
    if case.facts.blind("Node"):
        return
    for pool in case.pools:
        if is_device(pool.name) and not pool.capacity.any() and not pool.allocatable.any():
            offered = _offered(case)
            near = _near(pool.name, list(offered))
            words = [_told(case, name) for name in near or offered]
            yield hit(
                *(
                    Evidence(count(number, "node"), f".status.allocatable['{n}']", _free(case, n))
                    for n, number in offered.items()
                ),
                name=pool.name + _origin(pool.name),
                instead=f"{'near it are' if near else 'nodes offer'} {listed(words)}"
                if words
                else "nor any device",
            )


@finding(
    "OtherNamesOffered",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="offered by other names, which do not serve {name}: {others}",
    meaning=(
        "Nodes offer devices of the same vendor by another name: MIG instances, time-sliced shares,"
        " partitions. They are counted as devices on many dashboards, and a pod gets only what it asks for by"
        " its exact name."
    ),
    confirm=("kubectl get nodes -o jsonpath='{{.items[*].status.allocatable}}'",),
    decide=("ask for the other name, if such a device is enough",),
)
def other_names_offered(case: Case) -> Iterable[Hit]:
    """Per device: free devices of the same family by other names, where the pods find too little."""
    for pool in case.pools if not case.fits else ():
        near = [name for name in _related(pool.name, list(_offered(case))) if _free_of(case, name)]
        if near and pool.allocatable.any():
            near.sort(key=lambda name: -_free_of(case, name))
            yield hit(
                *(
                    Evidence(count(_offered(case)[n], "node"), f".status.allocatable['{n}']", _free(case, n))
                    for n in near
                ),
                name=pool.name,
                others=listed([_told(case, name) for name in near]),
            )


def _offered(case: Case) -> dict[str, int]:
    """Devices that are allocatable somewhere, and on how many nodes; most first."""
    columns = case.inventory.columns
    counts = {n: int((columns.allocatable(n) > 0).sum()) for n in columns.column_of if is_device(n)}
    return dict(sorted(((n, c) for n, c in counts.items() if c), key=lambda item: (-item[1], item[0])))


def _near(name: str, offered: list[str]) -> list[str]:
    return _related(name, offered) or get_close_matches(name, offered, n=3, cutoff=0.75)


def _related(name: str, offered: list[str]) -> list[str]:
    """Other names of the same family."""
    family = next((family for family in _FAMILIES if family.fullmatch(name)), None)
    return [one for one in offered if one != name and family is not None and family.fullmatch(one)]


def _told(case: Case, name: str) -> str:
    return f"{name} ({_free(case, name)})"


def _free(case: Case, name: str) -> str:
    total = int(case.inventory.columns.allocatable(name).sum())
    return f"{_free_of(case, name)} of {total} free"


def _free_of(case: Case, name: str) -> int:
    columns = case.inventory.columns
    free = columns.allocatable(name) - columns.used(name) - columns.reserved(name)
    return int(np.maximum(free, 0).sum())


def _origin(name: str) -> str:
    origin = next((words for pattern, words in _ORIGINS if pattern.fullmatch(name)), "")
    return f" ({origin})" if origin else ""


FINDINGS: Final[tuple[Topic[Case], ...]] = (resource_not_offered, other_names_offered)
