# SPDX-License-Identifier: Apache-2.0
"""Nothing else happens in the cluster, and nothing is gated: Muster must wake the members it has refused.

kube-scheduler tries a refused pod again when something changes, else only after five minutes. The creation
of a sibling, or of a PodGroup, is no change to it.
"""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.real.lab import Lab, refused

pytestmark = pytest.mark.real

WOKEN_SECONDS = 15.0


def test_members_created_one_per_second_are_all_bound_soon_after_the_last(shared: Lab) -> None:
    shared.nodes(2, gpus=8)
    shared.group("slow", 5, namespace="plain")
    for index in range(5):
        began = time.monotonic()
        shared.members("slow", 1, namespace="plain", first=index, gpus=2)
        if index < 4:
            shared.wait(
                partial(_a_second_after_refusal, shared, index, began), 10, "a second after its refusal"
            )
    assert "gang plain/slow has" in refused(shared.pod("slow-0", "plain"))
    shared.wait(lambda: shared.bound("slow", "plain") == 5, WOKEN_SECONDS, "all five are bound")


def test_members_that_wait_for_their_pod_group_are_bound_soon_after_it_comes(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.members("early", 2, namespace="plain", gpus=4)
    shared.wait(lambda: all(map(refused, shared.of("early", "plain"))), 10, "both are refused")
    assert "has no PodGroup yet" in refused(shared.pod("early-0", "plain"))

    shared.group("early", 2, namespace="plain")
    shared.wait(lambda: shared.bound("early", "plain") == 2, WOKEN_SECONDS, "both are bound")


def test_members_that_wait_for_devices_are_bound_soon_after_these_come_free(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.gang("first", 2, namespace="plain", gpus=4)
    shared.wait(lambda: shared.bound("first", "plain") == 2, WOKEN_SECONDS, "the first gang runs")
    shared.gang("second", 2, namespace="plain", gpus=4)
    shared.wait(lambda: all(map(refused, shared.of("second", "plain"))), 10, "the second is refused")

    for member in shared.of("first", "plain"):
        shared.delete("pods", member["metadata"]["name"], "plain")
    shared.wait(lambda: shared.bound("second", "plain") == 2, WOKEN_SECONDS, "the second gang runs")


def _a_second_after_refusal(lab: Lab, index: int, began: float) -> bool:
    return bool(refused(lab.pod(f"slow-{index}", "plain"))) and time.monotonic() - began >= 1
