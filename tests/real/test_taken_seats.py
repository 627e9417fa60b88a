# SPDX-License-Identifier: Apache-2.0
"""Another scheduler places a pod on GPUs that a plan has set aside: a plan is no lock on the cluster."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab, nomination
from tests.real.volumes import late_member, provide
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real


def test_a_planned_gpu_taken_in_between_makes_a_new_plan_and_never_an_overcommitted_node(
    plane: Cluster,
) -> None:
    with Lab(plane, log_name="taken", settings={"nominate_from_nodes": "0"}) as lab:
        lab.nodes(2)
        lab.group("train", 2)
        lab.members("train", 1, gpus=4)
        late_member(lab, "train", gpus=4)
        lab.wait(lambda: lab.held() == 1, 20, "one member is held, the other waits for its volume")
        planned = nomination(lab.pod("train-0"))
        assert planned is not None
        assert {nomination(p) for p in lab.of("train")} == {planned}, "packed on one node"

        stranger = pod("plain", "stranger", template(gpus=6))
        stranger["spec"]["nodeName"] = planned
        lab.create(stranger)
        lab.wait(lambda: lab.held() == 0, 2, "the held call is answered: its seat is gone")
        provide(lab, "train")
        lab.wait(lambda: lab.bound("train") == 2, 30, "the gang is bound elsewhere")
        assert planned not in {p["spec"]["nodeName"] for p in lab.of("train")}
