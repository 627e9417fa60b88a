# SPDX-License-Identifier: Apache-2.0
"""Two pairs of kube-scheduler and Muster, one Lease: one acts, the other keeps warm and keeps still."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.muster import Rig
from tests.real.proxy import Proxy, is_binding
from tests.real.volumes import late_member, provide

pytestmark = pytest.mark.real


def test_one_of_two_acts_and_when_its_scheduler_dies_the_other_completes_the_gang(plane: Cluster) -> None:
    with (
        Proxy(plane, "first") as first,
        Proxy(plane, "second") as second,
        Lab(
            plane,
            log_name="first",
            hostname="muster-first",
            leader_elect=True,
            supervise=False,
            muster_kubeconfig=first.kubeconfig,
        ) as lab,
        _second(plane, second) as other,
        _both_active(lab.rig, other) as both,
    ):
        lab.wait(lambda: _active(lab.rig), 30, "the first leads")
        lab.nodes(2)
        lab.gang("before", members=4, gpus=2)
        lab.wait(lambda: lab.bound("before") == 4, 20, "a gang is bound")
        lab.group("train", 4)
        lab.members("train", 3)
        late_member(lab, "train")
        lab.wait(lambda: lab.held() == 3, 20, "three of the next are held")
        assert not _active(other)
        assert other.ready(), "a passive replica is ready: its cache is warm"
        assert second.writes == [], "and it writes nothing"

        assert lab.rig.scheduler is not None
        lab.rig.scheduler.kill()
        lab.wait(lambda: _active(other), 45, "the second takes over")
        assert not _active(lab.rig)
        written = len(first.writes)
        lab.wait(lambda: other.metric("muster_held_binds") == 3, 20, "the three are held by the second")
        provide(lab, "train")
        lab.wait(lambda: lab.bound("train") == 4, 20, "which completes the gang")

        assert len(second.forwarded(is_binding)) == 4
        assert len(first.writes) == written, "the first, passive now, has written nothing more"
        assert both == [], "at no time were both active"


def _active(rig: Rig) -> bool:
    return rig.metric("muster_active") == 1


@contextlib.contextmanager
def _second(plane: Cluster, proxy: Proxy) -> Iterator[Rig]:
    rig = Rig(
        plane,
        name="second",
        hostname="muster-second",
        leader_elect=True,
        muster_kubeconfig=proxy.kubeconfig,
    )
    try:
        rig.start()
        yield rig
    finally:
        rig.stop()


@contextlib.contextmanager
def _both_active(one: Rig, other: Rig) -> Iterator[list[str]]:
    """Moments at which one was active before and after the other was."""
    found: list[str] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.05):
            if _active(one) and _active(other) and _active(one):
                found.append("both active")

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield found
    finally:
        done.set()
        sampler.join(30)
