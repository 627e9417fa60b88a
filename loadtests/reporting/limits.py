# SPDX-License-Identifier: Apache-2.0
"""What the calls of the verbs took: percentiles by name, and which exceed their limit. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from loadtests.reporting.thresholds import Verbs
from loadtests.shared.timing import timing


def figures(taken: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Figures of a record from milliseconds by call: `filter planned 500` → `filter_planned_500_p50_ms`."""
    found: dict[str, float] = {}
    for call, values in sorted(taken.items(), key=lambda item: _by_size(item[0])):
        name = call.replace(" ", "_")
        found |= {**timing(name, values), f"{name}_calls": len(values)}
    return found


def exceeded(taken: Mapping[str, Sequence[float]], verbs: Verbs) -> list[str]:
    """One sentence for each percentile beyond `factor` × its limit; calls that were not made are fine."""
    return list(_exceeded(figures(taken), verbs))


def _exceeded(found: Mapping[str, float], verbs: Verbs) -> Iterable[str]:
    for limit in verbs.limits:
        for which, milliseconds in (("p50", limit.p50_ms), ("p99", limit.p99_ms)):
            value = found.get(f"{limit.call.replace(' ', '_')}_{which}_ms", 0.0)
            if value > milliseconds * verbs.factor:
                yield f"{limit.call}: {which} {value:.2f} ms exceeds {verbs.factor:g} x {milliseconds:g} ms"


def _by_size(call: str) -> tuple[int, str]:
    return int(call.rpartition(" ")[2]), call
