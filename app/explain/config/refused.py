# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler would not start with: fields it does not know, types and values that it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from app.explain.config.configuration import Configuration, shown
from app.explain.config.duration import seconds
from app.explain.config.schema import odd
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, maps, number


@finding(
    "UnknownField",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} is no field that kube-scheduler knows, so it does not start; {near}",
    meaning=(
        "kube-scheduler decodes its configuration strictly. A field that it does not know, or one in other"
        " letters (names are case-sensitive), ends it with an error. Were it lenient, the misspelled"
        " setting would just not be there."
    ),
    decide=("{write}",),
)
def unknown_field(config: Configuration) -> Iterable[Hit]:
    """Each field outside the schema."""
    for one in odd(config.raw):
        if not one.wanted:
            near = f"it may stand for {one.near}" if one.near else "no known field is like it"
            write = f"{one.near}: {one.value}" if one.near else f"nothing: take {one.where} out"
            seen = config.cite(Evidence("", one.where, one.value))
            yield hit(seen, where=one.where, near=near, write=write)


@finding(
    "WrongType",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} is not of type {wanted}, so kube-scheduler does not start",
    meaning=(
        "kube-scheduler decodes its configuration strictly: a quoted true is no boolean, and a duration is"
        " a string with a unit (5s, 10m)."
    ),
    decide=("a value of type {wanted} for {where}",),
)
def wrong_type(config: Configuration) -> Iterable[Hit]:
    """Each field of another type than the schema's."""
    for one in odd(config.raw):
        if one.wanted:
            yield hit(config.cite(Evidence("", one.where, one.value)), where=one.where, wanted=one.wanted)


@finding(
    "ValueRefused",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} {rule}, so kube-scheduler does not start",
    meaning=(
        "kube-scheduler validates its configuration and ends with an error when a value is outside its"
        " range or contradicts another one."
    ),
    decide=("{write}",),
)
def value_refused(config: Configuration) -> Iterable[Hit]:
    """Each value that kube-scheduler's own validation refuses."""
    for where, value, rule, write in _refused(config):
        yield hit(config.cite(Evidence("", where, shown(value))), where=where, rule=rule, write=write)


Refused = tuple[str, object, str, str]
"""Where, the value there, the rule that it breaks, and what to write instead."""


def _refused(config: Configuration) -> Iterator[Refused]:
    yield from _of_numbers(config)
    yield from _of_election(config)
    yield from _of_profiles(config)
    yield from _of_extenders(config)


def _of_numbers(config: Configuration) -> Iterator[Refused]:
    if (workers := config.value("parallelism", default=16)) <= 0:
        yield "parallelism", workers, "must be above 0", "parallelism: 16"
    if (burst := config.value("clientConnection", "burst", default=100)) < 0:
        yield "clientConnection.burst", burst, "must not be negative", "burst: 1000"
    first = config.value("podInitialBackoffSeconds", default=1)
    most = config.value("podMaxBackoffSeconds", default=10)
    if first <= 0:
        yield "podInitialBackoffSeconds", first, "must be above 0", "podInitialBackoffSeconds: 1"
    elif most < first:
        rule = f"must not be below podInitialBackoffSeconds, which is {first}"
        yield "podMaxBackoffSeconds", most, rule, "1 for both"
    shares = [("", dig(config.raw, "percentageOfNodesToScore"))]
    shares += [(f"{one.where}.", one.raw.get("percentageOfNodesToScore")) for one in config.profiles]
    for prefix, share in shares:
        if isinstance(share, int) and not 0 <= share <= 100:
            yield f"{prefix}percentageOfNodesToScore", share, "must be from 0 to 100", "nothing: take it out"


def _of_election(config: Configuration) -> Iterator[Refused]:
    if not config.value("leaderElection", "leaderElect", default=True):
        return
    lock = config.value("leaderElection", "resourceLock", default="leases") or "leases"
    if lock != "leases":
        yield "leaderElection.resourceLock", lock, "must be leases", "resourceLock: leases"
    lasts = seconds(dig(config.raw, "leaderElection", "leaseDuration")) or 15.0
    renews = seconds(dig(config.raw, "leaderElection", "renewDeadline")) or 10.0
    if lasts <= renews:
        rule = f"must be above renewDeadline, which is {renews:g} s"
        yield "leaderElection.leaseDuration", f"{lasts:g} s", rule, "leaseDuration: 15s, renewDeadline: 10s"


def _of_profiles(config: Configuration) -> Iterator[Refused]:
    seen: set[str] = set()
    for one in config.profiles:
        field = f"{one.where}.schedulerName"
        if not one.name:
            yield field, "not set", "must be set where there are several profiles", "a name of its own"
        elif one.name in seen:
            yield field, one.name, "must differ from that of every other profile", "a name of its own"
        seen.add(one.name)


def _of_extenders(config: Configuration) -> Iterator[Refused]:
    for one in config.extenders:
        weight = number(one.raw, "weight") or 0
        if "prioritize" in one.verbs and weight <= 0:
            yield f"{one.where}.weight", weight, "must be above 0 beside a prioritizeVerb", "weight: 5"
    binders = [one.where for one in config.extenders if "bind" in one.verbs]
    if len(binders) > 1:
        rule = "must hold one bindVerb, in all stanzas together"
        write = "bindVerb in the stanza with the long httpTimeout alone"
        yield "extenders", f"bindVerb in {' and '.join(binders)}", rule, write
    managed = (
        str(dig(item, "name")) for one in config.extenders for item in maps(one.raw, "managedResources")
    )
    for name, times in Counter(managed).items():
        if times > 1:
            yield "extenders", name, f"must not name {name} twice in managedResources", "no managedResources"


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (unknown_field, wrong_type, value_refused)
