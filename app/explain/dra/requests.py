# SPDX-License-Identifier: Apache-2.0
"""What a claim asks for: its requests, and the alternatives of each. Reads the forms of v1 and v1beta1."""

from __future__ import annotations

import msgspec

from app.codec.snapshot import JsonObject
from app.explain.objects import dig, maps, name_of, number, text


class Wanted(msgspec.Struct, frozen=True):
    """Devices of one class, as one request or one alternative of a request has it.

    `selectors` are those of the request alone. `count` is None for allocationMode All. `tolerations` are
    (key, operator, value, effect). `share` says that a part of a device's capacity is asked for.
    """

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int | None = 1
    admin: bool = False
    tolerations: tuple[tuple[str, str, str, str], ...] = ()
    share: bool = False

    @property
    def amount(self) -> str:
        """`2`, or `all`."""
        return "all" if self.count is None else str(self.count)

    def __str__(self) -> str:
        admin = " (admin access)" if self.admin else ""
        return f"{self.amount} of class {self.device_class}{admin}"


class Request(msgspec.Struct, frozen=True):
    """One request; the first of its alternatives that can be had is taken, a plain request has just one."""

    name: str
    alternatives: tuple[Wanted, ...]

    def __str__(self) -> str:
        return " or else ".join(map(str, self.alternatives)) or f"something not known here ({self.name})"


def requests_of(spec: object) -> tuple[Request, ...]:
    """The requests of a ResourceClaimSpec. One of a form that is not known has no alternatives."""
    return tuple(_request(item) for item in maps(spec, "devices", "requests"))


def selectors_of(holder: object) -> tuple[str, ...]:
    """CEL expressions of a request, or of a DeviceClass' spec; empty where it is of another kind."""
    return tuple(text(item, "cel", "expression") for item in maps(holder, "selectors"))


def _request(item: JsonObject) -> Request:
    name = text(item, "name")
    alternatives = maps(item, "firstAvailable")
    if alternatives:
        return Request(name, tuple(_wanted(f"{name}/{text(one, 'name')}", one) for one in alternatives))
    exactly = dig(item, "exactly")
    plain = exactly if isinstance(exactly, dict) else item
    return Request(name, (_wanted(name, plain),) if text(plain, "deviceClassName") else ())


def _wanted(name: str, item: JsonObject) -> Wanted:
    return Wanted(
        name=name,
        device_class=text(item, "deviceClassName"),
        selectors=selectors_of(item),
        count=None if text(item, "allocationMode") == "All" else number(item, "count") or 1,
        admin=dig(item, "adminAccess") is True,
        tolerations=tuple(_toleration(one) for one in maps(item, "tolerations")),
        share=bool(dig(item, "capacity", "requests")),
    )


def _toleration(item: JsonObject) -> tuple[str, str, str, str]:
    return text(item, "key"), text(item, "operator"), text(item, "value"), text(item, "effect")


def spec_of(obj: JsonObject | None) -> object:
    """The ResourceClaimSpec of a claim, or the one that a template gives its claims."""
    return dig(obj, "spec", "spec") if text(obj, "kind") == "ResourceClaimTemplate" else dig(obj, "spec")


def labelled(obj: JsonObject | None) -> str:
    """`claim train-gpu` or `template gpus`."""
    kind = "template" if text(obj, "kind") == "ResourceClaimTemplate" else "claim"
    return f"{kind} {name_of(obj or {})}"
