# SPDX-License-Identifier: Apache-2.0
"""Many timings as the figures of a record. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def timing(what: str, milliseconds: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile, of at least one."""
    mid, high = np.percentile(milliseconds, [50, 99])
    return {f"{what}_p50_ms": float(mid), f"{what}_p99_ms": float(high)}
