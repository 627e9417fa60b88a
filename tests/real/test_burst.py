# SPDX-License-Identifier: Apache-2.0
"""Members that are created many at a time come without the gate, and are placed like all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster import Cluster
from tests.real.lab import GATE, Lab
from tests.real.muster import NAMESPACE
from tests.real.workloads import Object, group, pod, template

pytestmark = pytest.mark.real

GANGS, MEMBERS = 40, 4
PATH = f"/api/v1/namespaces/{NAMESPACE}"
BURST_WRITES = 'muster_api_writes_total{kind="burst"}'


@pytest.fixture
def lab(plane: Cluster) -> Iterator[Lab]:
    """With a Muster that calls ten members a second a burst."""
    with Lab(plane, log_name="burst", settings={"burst_pods_per_second": "10"}) as fresh:
        yield fresh


def lasts(lab: Lab) -> bool:
    """What the API server has been told."""
    return "muster.dev/burst" in lab.cluster.get(PATH)["metadata"]["labels"]


def create_at_once(lab: Lab, names: list[str]) -> None:
    """Gangs of one GPU per member, the members on several connections."""
    lab.create(*(group("gangs", name, MEMBERS) for name in names))
    lab.minimums.update(dict.fromkeys(names, MEMBERS))
    shapes = [(f"{name}-{n}", template(gang=name, gpus=1)) for name in names for n in range(MEMBERS)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda shape: lab.create(pod("gangs", *shape)), shapes))


def ungated_at_birth(pods: Iterable[Object]) -> list[Object]:
    """Those that the policy has left the gate off."""
    return [p for p in pods if p["metadata"].get("annotations", {}).get("muster.dev/gate") == "none"]


def test_a_burst_goes_without_gates_and_ends_whole(lab: Lab) -> None:
    lab.nodes(120, gpus=8)
    lab.wait(lambda: lab.rig.metric(BURST_WRITES) == 1, 10, "the first word of this life: gates")
    names = [f"b{number:02}" for number in range(GANGS)]
    create_at_once(lab, names)
    lab.wait(lambda: sum(map(lab.bound, names)) == GANGS * MEMBERS, 90, "all are bound")

    ungated = ungated_at_birth(lab.pods())
    assert ungated, "nobody came without the gate"
    assert lab.rig.metric('muster_api_writes_total{kind="gate"}') <= GANGS * MEMBERS - len(ungated)
    lab.wait(lambda: not lasts(lab), 10, "the burst is over")
    lab.gang("calm", 2, gpus=1)
    lab.wait(lambda: lab.bound("calm") == 2, 30, "and gangs come and go as ever")
    assert not ungated_at_birth(lab.of("calm"))


def test_members_that_find_no_room_are_gated_however_many_they_are(lab: Lab) -> None:
    lab.nodes(2, gpus=8)
    names = [f"f{number:02}" for number in range(GANGS)]
    create_at_once(lab, names)
    lab.wait(lambda: sum(map(lab.bound, names)) == 16, 60, "the cluster is full of whole gangs")
    assert not ungated_at_birth(lab.pods())
    waiting = [p for p in lab.pods() if not p["spec"].get("nodeName")]
    assert all(p["spec"]["schedulingGates"] == [{"name": GATE}] for p in waiting)
