# SPDX-License-Identifier: Apache-2.0
"""Whether a device satisfies a selector, for the few shapes of CEL that need no CEL to decide.

Understood are these terms, joined by `&&`, and nothing else:

    device.driver == "gpu.example.com"
    device.attributes["gpu.example.com"].model == "H100"       (or an integer, true, false)
    device.attributes["gpu.example.com"].healthy               (a boolean by itself)
    device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0

Everything else is None, "could not judge": kube-scheduler's DynamicResources plugin decides. So is a device
that lacks the attribute or has it in another type: there CEL fails, which is not the same as "no match".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from app.codec.snapshot import JsonObject
from app.domain.errors import QuantityError
from app.domain.quantity import to_milli

Test: TypeAlias = Callable[[JsonObject], bool | None]
"""device → whether it matches; None when that cannot be judged here."""

Term: TypeAlias = Callable[[str], Test | bool]
"""driver → what remains to be tested of its devices, or the answer for all of them."""

Stages: TypeAlias = tuple[tuple[Test, ...], ...]
"""One for each expression that does not hold for all devices of a driver, in order."""

_STRING: Final = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_TERM: Final = re.compile(
    rf"""\s*(?:
      device\.driver\s*==\s*(?P<driver>{_STRING})
    | device\.attributes\[(?P<domain>{_STRING})\]\.(?P<name>\w+)
      (?:\s*==\s*(?P<literal>{_STRING}|true|false|-?[0-9]+))?
    | device\.capacity\[(?P<of>{_STRING})\]\.(?P<capacity>\w+)
      \.compareTo\(\s*quantity\((?P<bound>{_STRING})\)\s*\)\s*(?P<compare>[<>]=?|==|!=)\s*0
    )\s*(?P<next>&&|$)""",
    re.VERBOSE,
)
_COMPARE: Final = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def bind(expressions: Iterable[str], driver: str) -> Stages | None:
    """What decides about devices of a driver; None when the expressions take none of them."""
    stages: list[tuple[Test, ...]] = []
    for expression in expressions:
        parsed = parse(expression)
        if parsed is None:
            return (*stages, (_unknown,))
        bound = [term(driver) for term in parsed[1]]
        if any(one is False for one in bound):
            return (*stages, (_never,)) if stages else None
        tests = tuple(one for one in bound if not isinstance(one, bool))
        if tests:
            stages.append(tests)
    return tuple(stages)


def judge(stages: Stages, device: JsonObject) -> bool | None:
    """Whether a device satisfies all expressions, read one after the other as the scheduler does."""
    for tests in stages:
        unknown = False
        for test in tests:  # CEL's `&&`: one false decides, whatever the others come to
            verdict = test(device)
            if verdict is False:
                return False
            unknown = unknown or verdict is None
        if unknown:
            return None
    return True


def driver_of(expressions: Iterable[str]) -> str:
    """The one driver whose devices can satisfy the expressions; empty when they name none."""
    for expression in expressions:
        parsed = parse(expression)
        if parsed is not None and parsed[0]:
            return parsed[0]
    return ""


@lru_cache(maxsize=256)
def parse(expression: str) -> tuple[str, tuple[Term, ...]] | None:
    """The driver an expression names, if any, and its terms; None when it is not understood."""
    terms: list[Term] = []
    driver, at, more = "", 0, True
    while more:
        found = _TERM.match(expression, at)
        if found is None:
            return None
        term = _term(found)
        if term is None:
            return None
        terms.append(term)
        driver = driver or (found["driver"] or "")[1:-1]
        at, more = found.end(), found["next"] == "&&"
    return driver, tuple(terms)


def _unknown(_: JsonObject) -> None:
    return None


def _never(_: JsonObject) -> bool:
    return False


def _term(found: re.Match[str]) -> Term | None:
    if found["driver"]:
        wanted = found["driver"][1:-1]
        return lambda driver: driver == wanted
    if found["name"]:
        return _attribute(found["domain"][1:-1], found["name"], found["literal"] or "true")
    return _capacity(found["of"][1:-1], found["capacity"], found["bound"][1:-1], _COMPARE[found["compare"]])


def _attribute(domain: str, name: str, literal: str) -> Term:
    kind, wanted = _literal(literal)

    def term(driver: str) -> Test:
        names = _names(domain, name, driver)

        def test(device: JsonObject) -> bool | None:
            value = _value(device, "attributes", names).get(kind)
            return value == wanted if type(value) is type(wanted) else None

        return test

    return term


def _literal(text: str) -> tuple[str, str | bool | int]:
    """The field of a DeviceAttribute that has to hold a literal, and the literal."""
    if text[0] in "\"'":
        return "string", text[1:-1]
    return ("bool", text == "true") if text in ("true", "false") else ("int", int(text))


def _capacity(domain: str, name: str, bound: str, compare: Callable[[int, int], bool]) -> Term | None:
    limit = _milli(bound)
    if limit is None:
        return None
    least = limit

    def term(driver: str) -> Test:
        names = _names(domain, name, driver)

        def test(device: JsonObject) -> bool | None:
            amount = _milli(_value(device, "capacity", names).get("value"))
            return None if amount is None else compare(amount, least)

        return test

    return term


def _names(domain: str, name: str, driver: str) -> tuple[str, ...]:
    """Where a device has a value. A name without a domain is in that of the driver."""
    return (name, f"{domain}/{name}") if domain == driver else (f"{domain}/{name}",)


def _value(device: JsonObject, field: str, names: tuple[str, ...]) -> JsonObject:
    values = device.get(field)
    if isinstance(values, dict):
        for name in names:
            found = values.get(name)
            if isinstance(found, dict):
                return found
    return {}


def _milli(value: object) -> int | None:
    try:
        return to_milli(value)
    except QuantityError:
        return None
