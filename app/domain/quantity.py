# SPDX-License-Identifier: Apache-2.0
"""Kubernetes quantities to integers, strictly.

Grammar and rounding follow apimachinery `pkg/api/resource/quantity.go`: a signed decimal with a binary
suffix (Ki … Ei), a decimal suffix (n, u, m, k … E) or an exponent. Both conversions round away from
zero, as `Value()` and `MilliValue()` do. Digits grouped by `_`, blanks, `NaN` and `Infinity` are errors.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from app.domain.errors import QuantityError

LIMIT: Final = 1 << 53
"""Amounts are clamped to ±LIMIT (8 PiB): the sum of a thousand pods on one node stays inside int64."""

_GRAMMAR: Final = re.compile(
    r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,4})|(Ki|Mi|Gi|Ti|Pi|Ei)|([numkMGTPE]?))"
)
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LONGEST: Final = 64


@lru_cache(maxsize=65536)
def _scaled(text: str, power: int) -> tuple[int, bool]:
    """`text` × 10^power rounded away from zero, and whether it was a whole number before rounding."""
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(f"{text[:40]!r} is not a Kubernetes quantity")
    sign, whole, fraction, bare, exponent, binary, decimal = match.groups()
    digits = (whole or "") + (fraction or bare or "")
    power -= len(fraction or bare or "")
    power += int(exponent) if exponent else _DECIMAL[decimal or ""]
    numerator = int(digits) << _BINARY.get(binary or "", 0)
    if numerator and power > 40:
        return (-LIMIT if sign == "-" else LIMIT), True
    if power >= 0:
        amount, exact = numerator * 10**power, True
    else:
        amount, rest = divmod(numerator, 10 ** min(-power, 200))
        exact = rest == 0
        amount += not exact
    amount = min(amount, LIMIT)
    return (-amount if sign == "-" else amount), exact


def to_units(value: object) -> int:
    """Whole units (bytes, devices, pods), rounded away from zero."""
    return _scaled(_text(value), 0)[0]


def to_milli(value: object) -> int:
    """Thousandths (CPU in millicores), rounded away from zero."""
    return _scaled(_text(value), 3)[0]


def to_count(value: object) -> int:
    """Whole devices; a fraction is an error, as the API server's validation has it for extended resources."""
    amount, exact = _scaled(_text(value), 0)
    if not exact:
        raise QuantityError(f"{value!r} must be a whole number: devices cannot be split by quantity")
    return amount


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)  # manifests that were never stored may carry bare numbers
    raise QuantityError(f"{str(value)[:40]!r} is not a Kubernetes quantity")
