# SPDX-License-Identifier: Apache-2.0
"""Constraints that only kube-scheduler judges: the plan is a guess, corrected inside what it offers.

Muster packs both members on one node; each of these constraints forbids just that.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.lab import Lab
from tests.real.workloads import apart, spread

pytestmark = pytest.mark.real

CONSTRAINTS: dict[str, dict[str, Any]] = {
    "a hard topology spread": {"more": spread(app="train")},
    "inter-pod anti-affinity": {"more": apart(app="train")},
    "a host port": {"host_port": 9000},
}


@pytest.mark.parametrize("namespace", ["gangs", "plain"])
@pytest.mark.parametrize("constraint", list(CONSTRAINTS))
def test_members_that_must_be_on_two_nodes_are_seated_anew(
    shared: Lab, constraint: str, namespace: str
) -> None:
    shared.nodes(2, gpus=8)
    shared.gang("train", 2, namespace=namespace, gpus=2, labels={"app": "train"}, **CONSTRAINTS[constraint])
    shared.wait(lambda: shared.bound("train", namespace) == 2, 30, "both are bound")
    assert len({p["spec"]["nodeName"] for p in shared.of("train", namespace)}) == 2
    shared.wait(lambda: shared.rig.metric("muster_reserved_seats") == 0, 5, "no seat is left over")
