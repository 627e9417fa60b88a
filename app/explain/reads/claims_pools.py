# SPDX-License-Identifier: Apache-2.0
"""Read 4, pools: those of which slices are missing, and devices that taints keep claims off."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from app.explain.case import Case
from app.explain.dra.pools import Taint
from app.explain.dra.selectors import driver_of
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.words import listed


@finding(
    "ResourcePoolIncomplete",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="incomplete pools of driver {driver}: {count}, none of their devices is given out",
    meaning=(
        "A driver may spread a pool of devices over several ResourceSlices, and says in each how many there"
        " are. As long as some of the newest generation are missing the scheduler takes nothing from the"
        " pool. That lasts a moment while a driver renews its slices; if it lasts longer the driver has"
        " failed on the way."
    ),
    confirm=("kubectl get resourceslices --field-selector spec.driver={driver} -o yaml",),
    decide=("restart the driver of the nodes",),
)
def incomplete(case: Case) -> Iterable[Hit]:
    """Per driver that could serve a request: pools of which slices are missing."""
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    drivers = _drivers(case)
    for pool in case.dra.pools if drivers is None or drivers else ():
        if (drivers is None or pool.driver in drivers) and not pool.complete:
            old = f", {len(pool.outdated)} of older generations" if pool.outdated else ""
            value = f"{len(pool.slices)} of {pool.expected} slices of generation {pool.generation}{old}"
            found[pool.driver].append(Evidence(f"pool {pool.name}", ".spec.pool.resourceSliceCount", value))
    for driver, pools in found.items():
        yield hit(*pools, driver=driver, count=len(pools))


def _drivers(case: Case) -> set[str] | None:
    """The drivers that could serve the requests; None when that could be any."""
    named = {driver_of(case.dra.selectors(one)) for need in case.needs for one in need.request.alternatives}
    return None if "" in named else named


@finding(
    "DevicesTainted",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="devices with a taint that '{what}' does not tolerate: {count}, {taints}",
    meaning=(
        "A driver, or somebody with a DeviceTaintRule, has marked devices: NoSchedule keeps new claims off,"
        " NoExecute also evicts the pods that use them. Often that is how a driver tells of a broken device."
        " A request may tolerate a taint. Schedulers without the feature gate DRADeviceTaints ignore them."
    ),
    confirm=("kubectl get devicetaintrules", "kubectl get resourceslices -o yaml"),
    decide=("repair the devices, lift the taint, or tolerate it in the request",),
)
def tainted(case: Case) -> Iterable[Hit]:
    """Per alternative of each request: devices it is kept off."""
    for need in case.needs:
        for wanted, supply in need.options:
            if supply.tainted:
                yield hit(
                    *(Evidence("/".join(key), ".taints", _taint(taint)) for key, taint in supply.tainted),
                    count=len(supply.tainted),
                    what=wanted,
                    taints=listed(dict.fromkeys(_taint(taint) for _, taint in supply.tainted)),
                )


def _taint(taint: Taint) -> str:
    """As kubectl prints it: `key=value:effect`."""
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


FINDINGS: Final[tuple[Topic[Case], ...]] = (incomplete, tainted)
