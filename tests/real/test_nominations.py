# SPDX-License-Identifier: Apache-2.0
"""Nominations: made before the gate goes, spent by the binding, never left behind nor taken from others."""

from __future__ import annotations

import threading

import pytest

from tests.cluster import Cluster
from tests.real.lab import GATE, Lab, gates, nomination
from tests.real.proxy import Proxy, is_gate_lift
from tests.real.volumes import mounts, provide, slow_claim
from tests.real.workloads import Object, pod, template

pytestmark = pytest.mark.real

ALWAYS = {"nominate_from_nodes": "0"}


def test_gated_members_are_nominated_first_and_then_cost_one_filter_call_each(plane: Cluster) -> None:
    with Lab(plane, log_name="nominated", settings=ALWAYS) as lab:
        lab.nodes(3)
        seen: list[Object] = []
        with lab.cluster.watch("/api/v1/namespaces/gangs/pods") as watch:
            reader = threading.Thread(target=lambda: seen.extend(event["object"] for event in watch))
            reader.start()
            lab.gang("train", members=6, gpus=4)
            lab.wait(lambda: lab.bound("train") == 6, 20, "the gang is bound")
        reader.join(10)

        for member in lab.of("train"):
            states = [p for p in seen if p["metadata"]["uid"] == member["metadata"]["uid"]]
            nominated = next(p for p in states if nomination(p))
            assert GATE in gates(nominated), "the gate was still on"
            assert nomination(nominated) == member["spec"]["nodeName"]
            assert nomination(member) is None
        assert lab.calls("filter") == 6


def test_what_a_killed_muster_had_nominated_is_cleared_and_what_kube_scheduler_nominated_is_not(
    plane: Cluster,
) -> None:
    with (
        Proxy(plane, "leftovers") as proxy,
        Lab(plane, log_name="leftovers", settings=ALWAYS, muster_kubeconfig=proxy.kubeconfig) as lab,
    ):
        lab.nodes(2)
        slow_claim(lab, "volume", "plain")
        lab.create(pod("plain", "slow", template(scheduler="muster", more=mounts("volume"))))
        own = lab.wait(
            lambda: nomination(lab.pod("slow", "plain")),
            15,
            "kube-scheduler nominates what waits in PreBind",
        )
        proxy.hold(is_gate_lift)
        lab.gang("train", members=4)
        lab.wait(lambda: len(lab.nominated("train", by="muster")) == 4, 15, "nominated, their gates still on")

        assert lab.rig.process is not None
        lab.rig.process.kill()
        lab.delete("podgroups", "train")
        proxy.release()
        lab.rig.start_muster()
        lab.wait(lambda: not lab.nominated("train"), 10, "the leftovers are cleared")
        assert lab.gated("train") == 4
        assert nomination(lab.pod("slow", "plain")) == own

        provide(lab, "volume", "plain")
        lab.wait(lambda: lab.pod("slow", "plain")["spec"].get("nodeName") == own, 15, "and it is bound there")
