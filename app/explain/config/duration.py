# SPDX-License-Identifier: Apache-2.0
"""Durations as Go writes them: `5s`, `1m30s`, `1.5h`. A number without a unit is none, except 0."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")


def seconds(value: object) -> float | None:
    """In seconds; None for what is no duration."""
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        return None
    total = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(value))
    return -total if value.startswith("-") else total
