# SPDX-License-Identifier: Apache-2.0
"""Which devices drivers publish: ResourceSlices put together to pools, newest generation alone.

A pool is complete when as many slices of its newest generation were seen as they say there are; the
scheduler takes nothing from a pool that is not. Decides nothing about a request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from app.codec.snapshot import JsonObject
from app.explain.dra.requests import Wanted
from app.explain.dra.selectors import Stages, bind, judge
from app.explain.objects import mapping, maps, name_of, number, text

DeviceKey = tuple[str, str, str]
"""(driver, pool, device)"""

Taint = tuple[str, str, str]
"""(key, value, effect)"""


class Pool(msgspec.Struct):
    """`slices` are of the newest generation, `outdated` names the others; `expected` as the newest say."""

    driver: str
    name: str
    generation: int = -1
    expected: int = 0
    slices: list[JsonObject] = []
    outdated: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether all slices were seen."""
        return len(self.slices) >= self.expected

    def add(self, item: JsonObject) -> None:
        """One more slice of the pool."""
        own = mapping(item, "spec", "pool")
        generation = number(own, "generation") or 0
        if generation < self.generation:
            self.outdated.append(name_of(item))
            return
        if generation > self.generation:
            self.outdated += [name_of(old) for old in self.slices]
            self.slices, self.generation = [], generation
            self.expected = number(own, "resourceSliceCount") or 0
        self.slices.append(item)


def pools_of(slices: Iterable[JsonObject]) -> dict[tuple[str, str], Pool]:
    """Pools by driver and name."""
    pools: dict[tuple[str, str], Pool] = {}
    for item in slices:
        spec = mapping(item, "spec")
        key = text(spec, "driver"), text(spec, "pool", "name")
        pool = pools.get(key)
        if pool is None:
            pool = pools[key] = Pool(*key, slices=[], outdated=[])
        pool.add(item)
    return pools


class Supply(msgspec.Struct):
    """How many devices there are for one `Wanted`, and by node; `""` is for those of no single node.

    `matching` is what the selectors take, whoever holds it; `unjudged` could not be judged here and may
    match. `usable` and `free` (not held) count both by node: they are upper bounds. `held` has, by the id
    of the object, the claims that hold such devices and how many each. `shared` devices serve several
    claims, `parts` draw on counters they share with others.
    """

    matching: int = 0
    unjudged: int = 0
    held: dict[int, tuple[JsonObject, int]] = {}
    tainted: list[tuple[DeviceKey, Taint]] = []
    shared: int = 0
    parts: int = 0
    usable: defaultdict[str, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    free: defaultdict[str, int] = msgspec.field(default_factory=lambda: defaultdict(int))

    @property
    def in_use(self) -> int:
        """Devices that are held."""
        return sum(count for _, count in self.held.values())


class Market(msgspec.Struct, frozen=True):
    """What is on offer besides the devices: who holds which, and the taints that rules add.

    `held` has the claim by (driver, pool) and device. `rules` are (driver, pool, device), where empty
    stands for any, and the taint. `taints_count` says that the scheduler is known to respect taints; where
    it may not, they are told and exclude nothing.
    """

    held: Mapping[tuple[str, str], Mapping[str, JsonObject]]
    rules: tuple[tuple[DeviceKey, Taint], ...] = ()
    taints_count: bool = False


def supply(wanted: Wanted, selectors: tuple[str, ...], pools: Iterable[Pool], market: Market) -> Supply:
    """Look at every device once. `selectors` are those of the class and of the request, in this order."""
    look = _Look(wanted, market)
    bound: dict[str, Stages | None] = {}
    for pool in pools:
        if pool.driver not in bound:
            bound[pool.driver] = bind(selectors, pool.driver)
        stages = bound[pool.driver]
        if stages is not None and pool.complete:
            look.at_pool(pool, stages)
    return look.found


class _Look:
    """Counts devices. Large clusters have 100,000 of them: nothing is made for one that is as expected."""

    def __init__(self, wanted: Wanted, market: Market) -> None:
        self.found = Supply()
        self._wanted = wanted
        self._market = market

    def at_pool(self, pool: Pool, stages: Stages) -> None:
        """All devices of a pool, given what their driver leaves to be tested."""
        key = (pool.driver, pool.name)
        held = {} if self._wanted.admin else self._market.held.get(key, {})
        rules = [
            (rule[2], taint)
            for rule, taint in self._market.rules
            if rule[0] in ("", pool.driver) and rule[1] in ("", pool.name)
        ]
        for item in pool.slices:
            spec = mapping(item, "spec")
            devices = self._matching(_devices(spec), stages)
            if rules or any("taints" in device for device in devices):
                devices = [device for device in devices if self._untainted(key, device, rules)]
            self._count(devices, text(spec, "nodeName"), held)

    def _matching(self, devices: list[JsonObject], stages: Stages) -> list[JsonObject]:
        """Those that match or could not be judged."""
        if not stages:
            self.found.matching += len(devices)
            return devices
        verdicts = [judge(stages, device) for device in devices]
        self.found.matching += verdicts.count(True)
        self.found.unjudged += verdicts.count(None)
        return [device for device, verdict in zip(devices, verdicts, strict=True) if verdict is not False]

    def _untainted(self, pool: tuple[str, str], device: JsonObject, rules: list[tuple[str, Taint]]) -> bool:
        """Whether the request may use it; told either way."""
        name = text(device, "name")
        taints = [taint_of(item) for item in maps(device, "taints")]
        taints += [taint for of, taint in rules if of in ("", name)]
        against = next((taint for taint in taints if not tolerated(self._wanted, taint)), None)
        if against is not None:
            self.found.tainted.append(((*pool, name), against))
        return against is None or not self._market.taints_count

    def _count(self, devices: list[JsonObject], node: str, held: Mapping[str, JsonObject]) -> None:
        """Devices of one slice that may be used."""
        alone = devices
        if any("consumesCounters" in d or "allowMultipleAllocations" in d for d in devices):
            self.found.parts += sum(bool(device.get("consumesCounters")) for device in devices)
            alone = [device for device in devices if device.get("allowMultipleAllocations") is not True]
            self.found.shared += len(devices) - len(alone)
        self._spread(self.found.usable, devices, node, sign=1)
        self._spread(self.found.free, devices, node, sign=1)
        if held:
            taken = [device for device in alone if device.get("name") in held]
            self._spread(self.found.free, taken, node, sign=-1)
            for name in [device["name"] for device in taken]:
                claim = held[name]
                known = self.found.held.get(id(claim))
                self.found.held[id(claim)] = claim, known[1] + 1 if known else 1

    @staticmethod
    def _spread(counts: dict[str, int], devices: list[JsonObject], node: str, *, sign: int) -> None:
        """Add to the count of the node; of each device's own where the slice is of none."""
        if node:
            counts[node] += sign * len(devices)
            return
        for device in devices:
            counts[text(device, "nodeName")] += sign


def _devices(spec: JsonObject) -> list[JsonObject]:
    """Of a slice, in the form of v1; v1beta1 has all but the name under `basic`."""
    devices = [device for device in maps(spec, "devices") if isinstance(device.get("name"), str)]
    if not devices or "basic" not in devices[0]:
        return devices
    return [{**mapping(device, "basic"), "name": device.get("name")} for device in devices]


def taint_of(item: JsonObject) -> Taint:
    """From a DeviceTaint."""
    return text(item, "key"), text(item, "value"), text(item, "effect")


def tolerated(wanted: Wanted, taint: Taint) -> bool:
    """As the scheduler sees it. A taint of another effect (`None`) keeps nobody off."""
    if taint[2] not in ("NoSchedule", "NoExecute"):
        return True
    return any(
        effect in ("", taint[2])
        and key in ("", taint[0])
        and (operator == "Exists" or (operator in ("", "Equal") and value == taint[1]))
        for key, operator, value, effect in wanted.tolerations
    )
