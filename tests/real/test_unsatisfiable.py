# SPDX-License-Identifier: Apache-2.0
"""A gang that the planner thinks possible and kube-scheduler does not tries now and then, not always."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.workloads import apart

pytestmark = pytest.mark.real

HOLD_SECONDS = 1.0
BACKOFF_SECONDS = 2.0
TRIES = 3
CALLS_PER_TRY = 12
"""For two members: a probe of the nominated node, the full offer after it, and what the writes of a failure
wake. kube-scheduler tries a refused pod once more when it has written down the refusal."""
CALM_SECONDS = 3.0
FILTER_CALLS = 'muster_verb_duration_seconds_count{verb="filter"}'
HOLDS = 'muster_verb_duration_seconds_count{verb="bind"}'


@pytest.fixture
def hasty(plane: Cluster) -> Iterator[Lab]:
    """Muster with shorter patience, so that a few tries fit into a test."""
    settings = {"hold_seconds": str(HOLD_SECONDS), "backoff_seconds": str(BACKOFF_SECONDS)}
    with Lab(plane, log_name="hasty", settings=settings) as fresh:
        yield fresh


def test_it_backs_off_lets_others_through_and_binds_once_it_can(hasty: Lab) -> None:
    hasty.nodes(1, gpus=8)
    hasty.gang("apart", 2, gpus=4, labels={"app": "apart"}, more=apart(app="apart"))
    tries = [_next_try(hasty, number) for number in range(1, TRIES + 1)]

    first, second = [after[0] - before[0] for before, after in pairwise(tries)]
    assert first >= BACKOFF_SECONDS
    assert second >= 2 * BACKOFF_SECONDS
    for before, after in pairwise([(0.0, 0.0), *tries]):
        assert after[1] - before[1] <= CALLS_PER_TRY, f"it asks again and again: {tries}"
    rest = Rest(hasty)
    hasty.wait(lambda: rest.seconds() >= CALM_SECONDS, 4 * BACKOFF_SECONDS, "in the pause nothing is asked")
    hasty.wait(lambda: hasty.rig.metric("muster_reserved_seats") == 0, 10, "it keeps nothing while it pauses")
    hasty.gang("other", 1, gpus=8)
    hasty.wait(lambda: hasty.bound("other") == 1, 15, "another gang takes all of the node")

    hasty.delete("pods", "other-0")
    hasty.nodes(1, gpus=8, first=1)
    hasty.wait(lambda: hasty.bound("apart") == 2, 30, "with a second node it is bound")


def _next_try(lab: Lab, number: int) -> tuple[float, float]:
    """When the member that can be placed was sent back for the n-th time, and filter calls so far."""
    lab.wait(lambda: lab.rig.metric(HOLDS) >= number, 60, f"try {number} has ended")
    return time.monotonic(), lab.rig.metric(FILTER_CALLS)


class Rest:
    """For how long kube-scheduler has not asked."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._seen = (-1.0, 0.0)

    def seconds(self) -> float:
        calls, now = self._lab.rig.metric(FILTER_CALLS), time.monotonic()
        if calls != self._seen[0]:
            self._seen = (calls, now)
        return now - self._seen[1]
