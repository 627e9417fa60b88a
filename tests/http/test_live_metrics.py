# SPDX-License-Identifier: Apache-2.0
"""Metrics that only a service on a real API has, and how stalls of the event loop are told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from app.http.metrics import Metrics
from app.http.stalls import Stalls
from tests.http.door import Door

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_writes_and_events_are_counted_elsewhere_and_exported_as_they_are(door: Door) -> None:
    writes, events = Counter({"binding": 3, "gate": 2}), {"pods": 7}
    metrics = Metrics(door.world.service)
    metrics.live(writes=lambda: writes, events=lambda: events)
    writes["binding"] += 1
    text = metrics.render().decode()
    assert 'muster_api_writes_total{kind="binding"} 4.0' in text
    assert 'muster_api_writes_total{kind="gate"} 2.0' in text
    assert 'muster_watch_events_total{resource="pods"} 7.0' in text
    documented = (DOCS / "metrics.md").read_text()
    assert "`muster_api_writes_total`" in documented
    assert "`muster_watch_events_total`" in documented


@pytest.mark.parametrize(
    ("late", "worked", "wall", "cpu"),
    [
        pytest.param(0.001, 0.001, [], [], id="the timer's own grain is no stall"),
        pytest.param(0.018, 0.030, [0.02], [0.02], id="own work, of which the sleep hid a part"),
        pytest.param(0.400, 0.004, [0.5], [0.005], id="the process did not run"),
    ],
)
def test_a_stall_is_told_by_both_clocks(
    late: float, worked: float, wall: list[float], cpu: list[float]
) -> None:
    registry = CollectorRegistry()
    Stalls(registry).record(late, worked)
    assert (_buckets(registry, "wall"), _buckets(registry, "cpu")) == (wall, cpu)


async def test_a_delay_is_seen() -> None:
    registry, now = CollectorRegistry(), iter([0.0, 0.12, 0.12])
    stalls = Stalls(registry, clock=lambda: next(now), busy=lambda: 0.0)
    with pytest.raises(RuntimeError):  # the clock has run out
        await stalls.run()
    assert _buckets(registry, "wall") == [0.1], "0.12 s have passed in a sleep of 0.05 s"


def _buckets(registry: CollectorRegistry, clock: str) -> list[float]:
    """The lowest bucket of the one stall that was seen; empty when none was."""
    bounds = [
        (float(sample.labels["le"]), sample.value)
        for family in registry.collect()
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["clock"] == clock
    ]
    return [min(bound for bound, count in bounds if count)] if any(count for _, count in bounds) else []
