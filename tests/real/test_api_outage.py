# SPDX-License-Identifier: Apache-2.0
"""The API server is gone for twenty seconds in the middle of scheduling."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.real import workloads
from tests.real.lab import Lab, phase
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real

OUTAGE_SECONDS = 20.0
STALE_SECONDS = 6.0
"""Far below the default, so that it passes within the outage. Only a busy cluster may have it so low: on a
quiet one the API server speaks once a minute."""


def test_after_an_outage_muster_goes_on_by_itself_and_no_gang_is_bound_in_part(plane: Cluster) -> None:
    settings = {"stale_seconds": f"{STALE_SECONDS:g}"}
    with (
        Lab(plane, log_name="outage", hostname="muster-outage", leader_elect=True, settings=settings) as lab,
        _busy(lab),
    ):
        lab.wait(lambda: lab.rig.metric("muster_active") == 1, 30, "its scheduler leads")
        lab.nodes(2)
        gangs = [f"gang-{index}" for index in range(5)]
        for name in gangs:  # each fills the cluster, so most of them wait when the outage begins
            lab.gang(name, members=4, gpus=4, runs_for="1s")
        lab.wait(lambda: lab.bound("gang-0") == 4, 30, "the first is bound")
        assert lab.rig.process is not None
        assert lab.rig.scheduler is not None
        muster, lives = lab.rig.process.pid, lab.rig.scheduler.restarts

        lab.witness.excuse(True)
        plane.apiserver.stop()
        stopped = time.monotonic()
        try:
            lab.wait(lambda: lab.rig.get("/readyz")[0] == 503, OUTAGE_SECONDS, "Muster says it is stale")
            assert "stale" in lab.rig.get("/readyz")[1]
            lab.wait(lambda: time.monotonic() - stopped >= OUTAGE_SECONDS, 30, "the outage lasts")
        finally:
            plane.apiserver.start()
        lab.wait(lab.rig.ready, 30, "Muster is fresh again")
        lab.wait(lambda: lab.rig.metric("muster_active") == 1, 60, "a scheduler of its host leads again")
        lab.witness.excuse(False)

        assert lab.rig.process.running
        assert lab.rig.process.pid == muster
        assert lab.rig.scheduler.restarts > lives, "kube-scheduler ends itself when it cannot renew its Lease"
        members = len(gangs) * 4
        lab.wait(lambda: sum(phase(p) == "Succeeded" for p in lab.pods()) == members, 60, "all have run")


@contextlib.contextmanager
def _busy(lab: Lab) -> Iterator[None]:
    """Twice a second something of each kind that Muster follows is touched."""
    node = lab.cluster.add_nodes(1, "busy", gpus=0)[0]
    idle = pod("plain", "busy", template(gpus=0))
    idle["spec"]["nodeName"] = node
    lab.create(idle)
    for native in (False, True):
        lab.create(workloads.group("plain", "busy", 1, native=native))
    paths = [f"/api/v1/nodes/{node}", "/api/v1/namespaces/plain/pods/busy"] + [
        f"/apis/{api}/namespaces/plain/podgroups/busy" for api in (workloads.LABEL_API, workloads.NATIVE_API)
    ]
    done = threading.Event()

    def touch() -> None:
        while not done.wait(0.5):
            for path in paths:
                with contextlib.suppress(Exception):  # down on purpose for a while
                    note = {"metadata": {"annotations": {"touched": str(time.monotonic())}}}
                    lab.cluster.patch(path, note)

    toucher = threading.Thread(target=touch, daemon=True)
    toucher.start()
    try:
        yield
    finally:
        done.set()
        toucher.join(30)
