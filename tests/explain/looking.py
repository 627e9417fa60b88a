# SPDX-License-Identifier: Apache-2.0
"""Facts and cases for tests of explanations, made from raw objects as every input of Muster is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.codec.objects import ObjectDecoder
from app.codec.snapshot import JsonObject, value_of
from app.domain.changes import Change
from app.domain.gang import GangState
from app.domain.ids import GangKey
from app.domain.reasons import Reason, Refusal
from app.explain.case import Case
from app.explain.facts import Facts
from app.explain.finding import Finding, Topic
from app.explain.objects import Objects
from app.explain.report import Subject
from app.explain.resolve import resolve
from app.inventory.inventory import Inventory
from tests.builders import Builder


def facts(*objects: Builder | JsonObject, **more: Any) -> Facts:
    """Facts from objects. Muster says of every gang that it is about to be planned, unless told otherwise."""
    items = [one.build() if isinstance(one, Builder) else one for one in objects]
    decoder, inventory = ObjectDecoder(), Inventory()
    inventory.apply(Change(value=value) for value in (value_of(decoder, item) for item in items) if value)
    given: dict[str, Any] = {"state": lambda gang: GangState.WAITING, "refusal": pending, **more}
    return Facts(inventory=inventory, objects=Objects(items), **given)


def pending(key: GangKey) -> Refusal:
    return Refusal(reason=Reason.PENDING, gang=key)


def case(what: str, *objects: Builder | JsonObject, **more: Any) -> Case:
    """The case of `kind/name` in the namespace default."""
    kind, _, name = what.partition("/")
    return resolve(facts(*objects, **more), Subject(kind, "default", name))


def found(topic: Topic[Case], what: str, *objects: Builder | JsonObject, **more: Any) -> list[Finding]:
    """What one topic finds."""
    return topic(case(what, *objects, **more))


def texts(findings: Iterable[Finding]) -> list[str]:
    """Their sentences."""
    return [finding.text for finding in findings]
