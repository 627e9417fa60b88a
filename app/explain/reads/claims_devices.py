# SPDX-License-Identifier: Apache-2.0
"""Read 4, devices: what drivers publish for the requests of open claims, and whether it can be enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.explain.case import Case
from app.explain.dra.needs import Need, most
from app.explain.dra.pools import Supply
from app.explain.dra.requests import Wanted
from app.explain.dra.selectors import driver_of, parse
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.reads.claims_words import weight_of, who

SLICES: Final = "kubectl get resourceslices --sort-by .spec.driver"


@finding(
    "NoResourceSlices",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="driver {driver} publishes no devices; {what} is asked for, for {who}",
    meaning=(
        "Drivers publish their devices as ResourceSlices. The class or the request selects devices of one"
        " driver by name, and no slice of that driver is there: the driver is not installed, does not run on"
        " any node, or has another name."
    ),
    confirm=(SLICES, "kubectl get deviceclass {device_class} -o yaml"),
    decide=("install or repair the driver, or correct the selector",),
)
def no_slices(case: Case) -> Iterable[Hit]:
    """Per request all alternatives of which name drivers that publish nothing."""
    for need in case.needs:
        drivers = _absent(case, need)
        if drivers:
            yield hit(
                *(Evidence("resourceslices", ".spec.driver", f"none is {one}") for one in drivers),
                weight=weight_of(case, need.pods.values()),
                driver=" and ".join(drivers),
                who=who(need.pods.values()),
                what=need.request,
                device_class=need.request.alternatives[0].device_class,
            )


def _absent(case: Case, need: Need) -> list[str]:
    """The drivers a request needs, if none of them publishes anything."""
    there = {pool.driver for pool in case.dra.pools}
    named = [driver_of(case.dra.selectors(one)) for one in need.request.alternatives]
    return list(dict.fromkeys(named)) if all(one and one not in there for one in named) else []


@finding(
    "TooFewMatchingDevices",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="even with all devices free there are too few for {who}: {what} is asked for, {most}",
    meaning=(
        "Even with every device free the request could not be met: too few exist that its selectors may"
        " match, too few on one node, or too few for the minimum of the gang. Devices of pools that are not"
        " complete count for nothing, nor do those with a taint that is not tolerated, where the scheduler"
        " is known to respect device taints."
    ),
    confirm=("kubectl get deviceclass {device_class} -o yaml", SLICES),
    decide=("ask for fewer or for other devices, or add nodes that have them",),
)
def too_few(case: Case) -> Iterable[Hit]:
    """Per request that could not be met if nobody held any device."""
    for need in case.needs:
        if need.short(when_empty=True) and not _absent(case, need):
            yield hit(
                *shown(case, need),
                weight=weight_of(case, need.pods.values()),
                who=who(need.pods.values()),
                what=need.request,
                most="; ".join(dict.fromkeys(map(_at_most, need.supplies))),
                device_class=need.request.alternatives[0].device_class,
            )


def _at_most(supply: Supply) -> str:
    return f"{sum(supply.usable.values())} at most exist, {most(supply.usable)} on one node"


@finding(
    "MatchingDevicesFree",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence="for '{what}' at most {free} of {all} devices are free, at most {most} on one node",
    meaning=(
        "How many devices there are for a request, not counting those held by claims. It is an upper bound:"
        " selectors that take CEL to evaluate are taken to match, and constraints between requests are not"
        " looked at."
    ),
    confirm=(SLICES, "kubectl get resourceclaims -A"),
)
def free(case: Case) -> Iterable[Hit]:
    """Per alternative of each request, where there are any devices, and would be enough if all were free."""
    for need in case.needs:
        if need.short(when_empty=True):
            continue  # a finding of its own, with the same numbers
        for wanted, supply in need.options:
            if supply.usable:
                everything = sum(supply.usable.values())
                yield hit(
                    *shown(case, need),
                    what=wanted,
                    free=sum(supply.free.values()),
                    all=everything,
                    most=most(supply.free),
                )


@finding(
    "SelectorNotJudged",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence=(
        "a selector of '{what}' could not be judged here for {count} devices:"
        " kube-scheduler's DynamicResources plugin decides"
    ),
    meaning=(
        "Selectors are expressions in CEL. Only comparisons of the driver, of attributes and of capacities,"
        " joined by &&, are evaluated here; devices for which an expression holds anything else, or which"
        " lack the attribute, are counted as if they matched. To the scheduler a selector that fails, for"
        " example by an attribute that is not there, is an error and no 'no match'."
    ),
    confirm=("kubectl get deviceclass {device_class} -o yaml",),
)
def not_judged(case: Case) -> Iterable[Hit]:
    """Per alternative of each request: devices that may or may not match."""
    for need in case.needs:
        for wanted, supply in need.options:
            if supply.unjudged:
                yield hit(
                    *_unclear(case, wanted),
                    what=wanted,
                    count=supply.unjudged,
                    device_class=wanted.device_class,
                )


def _unclear(case: Case, wanted: Wanted) -> list[Evidence]:
    """The selectors that are not understood; all of them if it is the devices that lack something."""
    every = case.dra.selectors(wanted)
    texts = [text for text in every if parse(text) is None] or every
    return [Evidence(f"request {wanted.name}", ".selectors", text) for text in texts]


@finding(
    "DevicesInParts",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence=(
        "some devices for '{what}' are parts of others or serve several claims:"
        " how many fit could not be judged here"
    ),
    meaning=(
        "Devices that consume shared counters are parts of a larger one, and taking one may use up another;"
        " devices with allowMultipleAllocations serve several claims until their capacity is used up. What"
        " is free of them is worked out by the scheduler alone; the counts here are upper bounds."
    ),
    confirm=("kubectl get resourceslices -o yaml",),
)
def in_parts(case: Case) -> Iterable[Hit]:
    """Per alternative of each request: devices that are not counted one by one."""
    for need in case.needs:
        for wanted, supply in need.options:
            fields = (("consumesCounters", supply.parts), ("allowMultipleAllocations", supply.shared))
            found = [
                Evidence("resourceslices", f".spec.devices[].{field}", f"on {count} devices")
                for field, count in fields
                if count
            ]
            if found:
                yield hit(*found, what=wanted)


def shown(case: Case, need: Need) -> list[Evidence]:
    """The selectors of each alternative, as they are, and what was counted."""
    found = []
    for wanted, supply in need.options:
        where = f"request {wanted.name}"
        found += [Evidence(where, ".selectors", text) for text in case.dra.selectors(wanted)]
        found.append(Evidence(where, "devices", _counts(supply)))
    return found


def _counts(supply: Supply) -> str:
    return (
        f"{supply.matching} matching, {supply.unjudged} not judged,"
        f" {len(supply.tainted)} kept off by a taint, {supply.in_use} held"
    )


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    no_slices,
    too_few,
    free,
    not_judged,
    in_parts,
)
