# SPDX-License-Identifier: Apache-2.0
"""A cluster whose API server does not know the native PodGroup API, which is the usual one."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab, prepare
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real


def test_gangs_of_the_label_api_work_where_the_native_api_is_absent() -> None:
    with Cluster(native_groups=False) as cluster:
        prepare(cluster)
        with Lab(cluster, log_name="without-native") as lab:
            assert lab.rig.get("/readyz") == (200, "ok")
            lab.nodes(1, gpus=8)
            lab.gang("label", 2, gpus=5)
            lab.gang("fits", 2, gpus=4)
            lab.wait(lambda: lab.bound("fits") == 2, 15, "the gang that fits runs")
            assert lab.bound("label") == 0

            # The API server has dropped the field: Muster sees a gated pod of no group.
            lab.create(pod("gangs", "lost", template(native="unknown", gpus=0)))
            lab.wait(lambda: lab.pod("lost")["spec"].get("nodeName"), 15, "it is let go and runs")
            assert lab.rig.get("/readyz") == (200, "ok")
