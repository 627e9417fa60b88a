# SPDX-License-Identifier: Apache-2.0
"""kube-scheduler sends whole nodes instead of names (`nodeCacheCapable: false`): Muster answers in kind."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab, phase
from tests.real.muster import CONFIG
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real


def test_gangs_and_other_pods_are_placed_in_full_node_mode(plane: Cluster) -> None:
    config = plane.runtime_dir / "full-nodes.yaml"
    config.write_text(CONFIG.read_text().replace("nodeCacheCapable: true", "nodeCacheCapable: false"))
    with Lab(plane, log_name="full-nodes", config=config) as lab:
        lab.nodes(3, gpus=4)
        lab.create(pod("plain", "single", template(gpus=2, scheduler="muster")))
        lab.wait(lambda: phase(lab.pod("single", "plain")) == "Running", 15, "an ordinary pod is placed")
        lab.gang("large", members=2, gpus=4)
        lab.gang("larger", members=2, gpus=4)
        lab.wait(lambda: lab.bound("large") == 2, 15, "a gang is placed")
        lab.create(pod("plain", "second", template(gpus=2, scheduler="muster")))
        lab.wait(lambda: phase(lab.pod("second", "plain")) == "Running", 15, "packed beside the first")
        assert lab.bound("larger") == 0
        assert lab.calls("prioritize") > 0
