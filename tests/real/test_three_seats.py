# SPDX-License-Identifier: Apache-2.0
"""The known demo: room for three, six pods."""

from __future__ import annotations

import pytest

from tests.real.lab import Lab, phase
from tests.real.workloads import replica_set, template

pytestmark = pytest.mark.real


def test_with_minimum_three_three_run_and_three_wait(lab: Lab) -> None:
    lab.nodes(1, gpus=3)
    lab.group("seats", 3)
    lab.create(replica_set("gangs", "seats", 6, template(gang="seats")))

    lab.wait(lambda: lab.bound("seats") == 3, 15, "three of six run")
    lab.wait(lambda: sum(phase(p) == "Running" for p in lab.pods()) == 3, 15, "kwok runs them")
    waiting = [p["metadata"]["name"] for p in lab.pods() if phase(p) == "Pending"]
    assert len(waiting) == 3
    lab.wait(lambda: "gang gangs/seats" in lab.describe("pod", waiting[0]), 5, "the pod says why it waits")
    assert lab.bound("seats") == 3


def test_with_minimum_four_none_runs(lab: Lab) -> None:
    lab.nodes(1, gpus=3)
    lab.group("seats", 4)
    lab.create(replica_set("gangs", "seats", 6, template(gang="seats")))

    lab.wait(lambda: len(lab.of("seats")) == 6, 15, "six pods exist")
    lab.wait(
        lambda: "can never fit" in lab.describe("podgroups.scheduling.x-k8s.io", "seats"),
        5,
        "the group says why",
    )
    assert lab.bound("seats") == 0
    assert lab.gated("seats") == 6
