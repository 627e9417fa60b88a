# SPDX-License-Identifier: Apache-2.0
"""How long to wait after a failure: exponential, jittered, bounded. Never sleeps itself."""

from __future__ import annotations

from random import Random


class Backoff:
    """`next()` gives half to all of `first_seconds`, which doubles per failure up to `most_seconds`."""

    def __init__(self, rng: Random, *, first_seconds: float = 0.25, most_seconds: float = 8.0) -> None:
        self._rng = rng
        self._first = first_seconds
        self._most = most_seconds
        self.failures = 0

    def next(self) -> float:
        """Count one failure and say how long to wait."""
        ceiling = min(self._most, self._first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return ceiling * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It works again."""
        self.failures = 0
