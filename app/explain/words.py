# SPDX-License-Identifier: Apache-2.0
"""Phrases for sentences: counts that read well for one and for many, short lists, times and spans.

Pure text: decides nothing and knows no object.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.codec.objects import stamp
from app.domain.resources import CPU


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 pod`, `3 pods`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Iterable[object], *, most: int = 3) -> str:
    """`a, b and c`; of many the first few: `a, b, c and 4 more`."""
    shown = [str(name) for name in names]
    if len(shown) > most:
        return f"{', '.join(shown[:most])} and {len(shown) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def span(seconds: int) -> str:
    """`45s`, `12m`, `3h`, `5d`: one unit, rounded down."""
    for unit, size, below in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172800)):
        if seconds < below:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def moment(at: int, now: int) -> str:
    """When something was or will be; with the distance where the present is known (`now` above 0)."""
    if not now:
        return f"at {stamp(at)}"
    return f"at {stamp(at)} ({f'in {span(at - now)}' if at > now else f'{span(now - at)} ago'})"


def in_units(name: str, number: int) -> str:
    """An amount of a resource in the unit that people write: cores, Gi, devices."""
    if name == CPU:
        return f"{number / 1000:g}"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        return f"{number / 2**30:.4g}Gi"
    return str(number)
