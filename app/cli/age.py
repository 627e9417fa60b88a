# SPDX-License-Identifier: Apache-2.0
"""How long ago, as kubectl says it in the AGE column: two units at most, one where the second says little."""

from __future__ import annotations

from typing import Final

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
YEAR: Final = 365 * DAY

_STEPS: Final = (
    (2 * MINUTE, 1, "s", 0, ""),
    (10 * MINUTE, MINUTE, "m", 1, "s"),
    (3 * HOUR, MINUTE, "m", 0, ""),
    (8 * HOUR, HOUR, "h", MINUTE, "m"),
    (2 * DAY, HOUR, "h", 0, ""),
    (8 * DAY, DAY, "d", HOUR, "h"),
    (2 * YEAR, DAY, "d", 0, ""),
    (8 * YEAR, YEAR, "y", DAY, "d"),
)
"""Below so many seconds: the unit, and that of the rest. Source: apimachinery `duration.HumanDuration`."""


def age(seconds: float) -> str:
    """Such as 45s, 3m20s, 5h, 7d4h. A negative time is that of clocks which differ, and reads 0s."""
    whole = max(0, int(seconds))
    for below, unit, letter, small, small_letter in _STEPS:
        if whole < below:
            rest = whole % unit // small if small else 0
            return f"{whole // unit}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{whole // YEAR}y"
