# SPDX-License-Identifier: Apache-2.0
"""The admission policy as the simulation knows it; tests/deploy has what the real one does."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.pod import GATE
from app.simulate.policy import admit, enabled
from tests.builders import Builder, PodBuilder, make_pod

PLAIN = make_pod("p").set("spec.schedulerName", None)
DAEMON: dict[str, Any] = {"kind": "DaemonSet", "apiVersion": "apps/v1"}


def admitted(pod: Builder, value: str) -> tuple[Any, list[str]]:
    """schedulerName and gates of the pod once it is created."""
    raw = pod.build()
    admit(raw, value)
    return raw["spec"].get("schedulerName"), [g["name"] for g in raw["spec"].get("schedulingGates") or []]


@pytest.mark.parametrize(
    ("pod", "value"),
    [
        pytest.param(PLAIN.gang("train"), "gangs", id="a member by label"),
        pytest.param(PLAIN.native("train"), "gangs", id="a member by field"),
        pytest.param(
            PLAIN.gang("train").scheduler("default-scheduler"), "gangs", id="default scheduler named"
        ),
        pytest.param(PLAIN.gang("train").scheduler("muster"), "gangs", id="Muster named"),
        pytest.param(PLAIN.gpus(1), "gpus", id="a single pod with a device"),
        pytest.param(
            PLAIN.init({}, limits={"nvidia.com/gpu": 1}), "gpus", id="a device in an init container"
        ),
        pytest.param(PLAIN.resource_claim(), "gpus", id="a claim"),
    ],
)
def test_who_is_covered_gets_the_scheduler_and_the_gate(pod: PodBuilder, value: str) -> None:
    assert admitted(pod, value) == ("muster", [GATE])


@pytest.mark.parametrize(
    ("pod", "value"),
    [
        pytest.param(PLAIN.gang("train"), "", id="namespace not labelled"),
        pytest.param(PLAIN.gpus(1), "gangs", id="no member, gangs alone"),
        pytest.param(PLAIN.cpu("1"), "gpus", id="no device"),
        pytest.param(PLAIN.gpus(0), "gpus", id="zero devices"),
        pytest.param(PLAIN.gpus("many"), "gpus", id="no number of devices"),
        pytest.param(PLAIN.gpus(1, "requests.nvidia.com/gpu"), "gpus", id="a quota name"),
        pytest.param(PLAIN.gang("t").set("spec.nodeName", "n1"), "gangs", id="placed already"),
        pytest.param(PLAIN.gang("t").set("metadata.ownerReferences", [DAEMON]), "gangs", id="of a DaemonSet"),
        pytest.param(
            PLAIN.gang("t").set("spec.priorityClassName", "system-node-critical"), "gangs", id="of the system"
        ),
    ],
)
def test_who_is_not_covered_stays_as_it_is(pod: PodBuilder, value: str) -> None:
    before = pod.build()
    admit(raw := pod.build(), value)
    assert raw == before


def test_a_choice_of_another_scheduler_stands() -> None:
    assert admitted(PLAIN.gang("train").scheduler("volcano"), "gangs") == ("volcano", [])


def test_gates_of_others_stay_and_ours_is_set_once() -> None:
    assert admitted(PLAIN.gang("train").gate("other"), "gangs") == ("muster", ["other", GATE])
    assert admitted(PLAIN.gang("train").gated(), "gangs") == ("muster", [GATE])


def test_a_member_may_ask_for_no_gate_and_a_single_pod_may_not() -> None:
    none = {"muster.dev/gate": "none"}
    assert admitted(PLAIN.gang("train").set("metadata.annotations", none), "gangs") == ("muster", [])
    gated = PLAIN.gang("train").gate("other").gated().set("metadata.annotations", none)
    assert admitted(gated, "gangs") == ("muster", ["other"])
    assert admitted(PLAIN.gpus(1).set("metadata.annotations", none), "gpus") == ("muster", [GATE])


@pytest.mark.parametrize(
    ("labels", "value"),
    [({"muster.dev/enabled": "gangs"}, "gangs"), ({"muster.dev/enabled": "yes"}, ""), (None, "")],
)
def test_what_a_namespace_switches_on(labels: dict[str, str] | None, value: str) -> None:
    assert enabled({"metadata": {"labels": labels}}) == value
    assert enabled(None) == ""
