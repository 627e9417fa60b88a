# SPDX-License-Identifier: Apache-2.0
"""Muster or kube-scheduler is killed in the middle of a gang: the next life completes it, once."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.proxy import Proxy, is_binding
from tests.real.volumes import late_member, provide

pytestmark = pytest.mark.real


def test_muster_killed_between_the_bindings_of_sixteen_members_completes_them_after_its_restart(
    plane: Cluster,
) -> None:
    with (
        Proxy(plane, "half-bound") as proxy,
        Lab(plane, log_name="half-bound", muster_kubeconfig=proxy.kubeconfig) as lab,
    ):
        lab.nodes(2)
        proxy.hold(is_binding, after=6)
        lab.gang("train", members=16)
        lab.wait(lambda: lab.bound("train") == 6, 30, "six are bound, the bindings of ten are on their way")
        assert lab.rig.process is not None
        lab.witness.excuse(True)
        lab.rig.process.kill()
        proxy.release()
        # Meant for the same GPUs, earlier in the queue than the ten: they must not get them.
        lab.members("rival", 8, gpus=1)
        lab.group("rival", 8)
        lab.rig.start_muster()
        lab.witness.excuse(False)

        lab.wait(lambda: lab.bound("train") == 16, 20, "the gang is complete")
        bindings = proxy.forwarded(is_binding)
        assert len(bindings) == len(set(bindings)) == 16, "every member was bound once"
        assert lab.bound("rival") == 0


def test_kube_scheduler_killed_while_members_are_held_is_followed_by_one_that_binds_them(
    plane: Cluster,
) -> None:
    with (
        Proxy(plane, "held") as proxy,
        Lab(plane, log_name="held", muster_kubeconfig=proxy.kubeconfig) as lab,
    ):
        lab.nodes(2)
        lab.group("train", 16)
        lab.members("train", 15)
        late_member(lab, "train")
        lab.wait(lambda: lab.held() == 15, 30, "fifteen members are held")
        scheduler = lab.rig.scheduler
        assert scheduler is not None

        scheduler.kill()
        lab.wait(lambda: lab.held() == 0, 5, "nobody is held for a dead scheduler")
        lab.wait(lambda: scheduler.restarts == 1 and lab.held() == 15, 30, "its next life brought them back")
        assert lab.bound("train") == 0
        provide(lab, "train")

        lab.wait(lambda: lab.bound("train") == 16, 20, "the gang is complete")
        bindings = proxy.forwarded(is_binding)
        assert len(bindings) == len(set(bindings)) == 16, "every member was bound once"
