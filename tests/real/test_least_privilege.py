# SPDX-License-Identifier: Apache-2.0
"""Muster and kube-scheduler with no more rights than deploy/extender.yaml gives them."""

from __future__ import annotations

import pytest
import yaml

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.muster import NAMESPACE, ROOT
from tests.real.workloads import replica_set, template

pytestmark = pytest.mark.real

RIGHTS = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def test_the_three_seats_are_filled_and_nothing_is_forbidden(plane: Cluster) -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "extender.yaml").read_text())
    plane.apply([one for one in documents if one["kind"] in RIGHTS])
    plane.wait_for_service_account(NAMESPACE, "muster")
    kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, "muster")
    with Lab(
        plane,
        log_name="least-privilege",
        hostname="muster-rights",
        leader_elect=True,
        kubeconfig=kubeconfig,
        settings={"nominate_from_nodes": "0"},
    ) as lab:
        lab.wait(lambda: lab.rig.metric("muster_active") == 1, 30, "its scheduler leads")
        lab.nodes(1, gpus=3)
        lab.group("seats", 3)
        lab.create(replica_set("gangs", "seats", 6, template(gang="seats")))
        lab.wait(lambda: lab.bound("seats") == 3, 20, "three of six are bound")
        waiting = next(p["metadata"]["name"] for p in lab.pods() if not p["spec"].get("nodeName"))
        lab.wait(lambda: "gang gangs/seats" in lab.describe("pod", waiting), 10, "the pod says why it waits")
        lab.wait(lambda: _counted(lab) == 3, 10, "the group's status counts them")

        assert lab.rig.process is not None
        assert lab.rig.scheduler is not None
        for log in (lab.rig.process.log, lab.rig.scheduler.log):
            refused = [line for line in log.read_text().splitlines() if "forbidden" in line.lower()]
            assert not refused, refused[:5]


def _counted(lab: Lab) -> int:
    group = lab.cluster.get("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/gangs/podgroups/seats")
    return int((group.get("status") or {}).get("scheduled") or 0)
