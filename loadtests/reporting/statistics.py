# SPDX-License-Identifier: Apache-2.0
"""Few runs, and what can be said about them: median, spread, and how far the median may be off.

Pure and seeded: the same values give the same interval on every day and every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np

RESAMPLES = 4000
SEED = 20260101


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What runs have in common. `spread` is their standard deviation; `low` and `high` enclose the median
    in 95 of 100 bootstrap resamples, and are None for a single run, about which nothing is known."""

    runs: int
    median: float
    mean: float
    spread: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of one value per run, at least one."""
        several = len(values) > 1
        low, high = interval(values) if several else (None, None)
        return cls(
            runs=len(values), median=float(np.median(values)), mean=float(np.mean(values)),
            spread=float(np.std(values, ddof=1)) if several else 0.0, low=low, high=high,
        )  # fmt: skip


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the median."""
    drawn = np.random.default_rng(SEED).choice(values, (RESAMPLES, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(low), float(high)
