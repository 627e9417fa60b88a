# SPDX-License-Identifier: Apache-2.0
"""Measures how long the event loop is held up: a filter call that arrives meanwhile waits as long.

Decides nothing. A sleep that ends late says that something else ran, or that the process did not: the two
clocks tell the one from the other. What it sees is what a call would see that arrives at that moment; only
what exceeds the timer's own grain is counted. Work is only known from one look to the next: what was done
just before a delay counts as if it were in it, so that `cpu` is never too little, and too much where the
process also waits for a processor.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Histogram

PERIOD_SECONDS: Final = 0.05
"""How often it looks. Ten times as often would cost an idle Muster more than all else it does."""

GRAIN_SECONDS: Final = 0.002
BUCKETS: Final = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Stalls:
    """A histogram of delays by clock: `wall` is all of a delay, `cpu` the most that was our own work."""

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        clock: Callable[[], float] = time.monotonic,
        busy: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock, self._busy = clock, busy
        histogram = Histogram(
            "muster_loop_stall_seconds",
            "Delays of the event loop above 2 ms; cpu: at most this much was work of this process.",
            ["clock"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._wall, self._cpu = histogram.labels("wall"), histogram.labels("cpu")

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due, worked = self._clock() + PERIOD_SECONDS, self._busy()
            await asyncio.sleep(PERIOD_SECONDS)
            self.record(self._clock() - due, self._busy() - worked)

    def record(self, late: float, worked: float) -> None:
        """One look: by how much it came late, and how much work was done since the one before; seconds."""
        if late > GRAIN_SECONDS:
            self._wall.observe(late)
            self._cpu.observe(min(late, worked))
