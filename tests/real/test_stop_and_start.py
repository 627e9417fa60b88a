# SPDX-License-Identifier: Apache-2.0
"""Muster is stopped and comes back: what it says goodbye with, and who waits for it."""

from __future__ import annotations

import signal
import time

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.proxy import Proxy, is_binding, is_gate_lift
from tests.real.volumes import late_member
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real

ALWAYS = {"nominate_from_nodes": "0"}


def test_sigterm_answers_held_binds_clears_nominations_and_ends_within_five_seconds(plane: Cluster) -> None:
    with Lab(plane, log_name="sigterm", settings=ALWAYS) as lab:
        lab.nodes(2)
        lab.group("train", 4)
        lab.members("train", 3)
        late_member(lab, "train")
        lab.wait(lambda: lab.held() == 3, 20, "three members are held")
        _end(lab)
        assert not lab.nominated("train", by="muster")
        assert lab.bound("train") == 0

        def told() -> bool:
            return all(
                any("shutting down" in e.get("message", "") for e in lab.events(f"train-{index}"))
                for index in range(3)
            )

        lab.wait(told, 5, "kube-scheduler was told why, for each of the three")


def test_pods_of_no_gang_are_placed_while_muster_is_there_and_wait_while_it_is_not(lab: Lab) -> None:
    lab.namespace = "plain"
    lab.nodes(1)
    plain = template(gpus=0, scheduler="muster")
    with_gpu = template(gpus=1, scheduler="muster")
    lab.create(pod("plain", "cpu-before", plain), pod("plain", "gpu-before", with_gpu))
    lab.wait(lambda: _bound(lab, "before") == 2, 10, "both are placed")

    assert lab.rig.process is not None
    lab.rig.process.stop()
    lab.create(pod("plain", "cpu-meanwhile", plain), pod("plain", "gpu-meanwhile", with_gpu))
    names = ("cpu-meanwhile", "gpu-meanwhile")
    lab.wait(lambda: all(lab.events(name) for name in names), 15, "kube-scheduler has tried both")
    assert _bound(lab, "meanwhile") == 0

    lab.rig.start_muster()
    lab.wait(lambda: _bound(lab, "meanwhile") == 2, 20, "both are placed when it is back")


def test_sigterm_in_the_middle_of_admission_leaves_no_nomination(plane: Cluster) -> None:
    with (
        Proxy(plane, "admission") as proxy,
        Lab(plane, log_name="admission", settings=ALWAYS, muster_kubeconfig=proxy.kubeconfig) as lab,
    ):
        lab.nodes(1)
        proxy.hold(is_gate_lift)
        lab.gang("train", members=4)
        lab.wait(lambda: len(lab.nominated("train", by="muster")) == 4, 15, "nominated, their gates still on")
        _end(lab)
        assert not lab.nominated("train")
        assert lab.gated("train") == 4


def test_sigterm_while_the_api_does_not_answer_still_ends_within_five_seconds(
    plane: Cluster,
) -> None:
    with (
        Proxy(plane, "hanging") as proxy,
        Lab(plane, log_name="hanging", settings=ALWAYS, muster_kubeconfig=proxy.kubeconfig) as lab,
    ):
        lab.nodes(1)
        proxy.hold(is_binding)
        lab.gang("train", members=4)
        lab.wait(
            lambda: lab.rig.metric('muster_gangs{state="binding"}') == 1, 15, "bindings are on their way"
        )
        proxy.hold(lambda method, path: method != "GET")
        _end(lab)
        assert lab.bound("train") == 0


def _end(lab: Lab) -> None:
    muster = lab.rig.process
    assert muster is not None
    began = time.monotonic()
    muster.send_signal(signal.SIGTERM)
    assert muster.wait_exit(seconds=10) == 0
    assert time.monotonic() - began < 5


def _bound(lab: Lab, suffix: str) -> int:
    return sum(
        bool(p["spec"].get("nodeName")) for p in lab.pods("plain") if p["metadata"]["name"].endswith(suffix)
    )
