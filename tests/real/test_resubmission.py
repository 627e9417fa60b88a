# SPDX-License-Identifier: Apache-2.0
"""One PodGroup, one Job after the other: each run starts from nothing."""

from __future__ import annotations

import pytest

from tests.real.lab import Lab, gates, phase
from tests.real.workloads import Object, job, template

pytestmark = pytest.mark.real


def test_a_job_deleted_and_submitted_again_onto_the_same_pod_group_runs_again(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.group("train", 3)
    first = _submit(shared, "train")
    shared.wait(lambda: shared.bound("train") == 3, 20, "the first run is bound")

    shared.cluster.kubectl("delete", "job", "train", "-n", "gangs", "--cascade=foreground", "--timeout=60s")
    assert not shared.of("train")
    second = _submit(shared, "train")
    shared.wait(lambda: shared.bound("train") == 3, 20, "the second run is bound")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_run_that_has_finished_does_not_count_for_the_next(shared: Lab) -> None:
    shared.nodes(1, gpus=6)
    shared.group("train", 3)
    _submit(shared, "one", runs_for="100ms")
    shared.wait(lambda: len(_in(shared, "Succeeded")) == 3, 30, "the first run has finished")

    shared.gang("holder", 1, gpus=2)
    shared.wait(lambda: shared.bound("holder") == 1, 15, "two of six GPUs are taken")
    _submit(shared, "two")
    shared.wait(lambda: len(_in(shared, "Pending")) == 3, 15, "the pods of the second run exist")
    why = "has seats for 2 of 3 members"
    shared.wait(lambda: why in shared.describe("podgroups.scheduling.x-k8s.io", "train"), 5, "it waits whole")
    assert all(gates(p) for p in _in(shared, "Pending"))

    shared.delete("pods", "holder-0")
    shared.wait(lambda: len(_in(shared, "Running")) == 3, 20, "the second run runs")


def _submit(lab: Lab, name: str, runs_for: str | None = None) -> Object:
    return lab.create(job("gangs", name, 3, template(gang="train", gpus=2, runs_for=runs_for)))[0]


def _in(lab: Lab, wanted: str) -> list[Object]:
    return [p for p in lab.of("train") if phase(p) == wanted]
