# SPDX-License-Identifier: Apache-2.0
"""Small questions asked of the domain values, and the texts that people see."""

from __future__ import annotations

import pytest

from app.domain.errors import ApiError, InputError
from app.domain.ids import GangApi, GangKey, single_key
from app.domain.plan import Outcome
from app.domain.reasons import Reason, Refusal
from tests.builders import PodBuilder, make_pod, pod_of


@pytest.mark.parametrize(
    ("pod", "alive", "ready"),
    [
        pytest.param(make_pod("p"), True, True, id="pending"),
        pytest.param(make_pod("p").gated(), True, True, id="held by our own gate alone"),
        pytest.param(make_pod("p").gated().gate("other/gate"), True, False, id="also held by a foreign gate"),
        pytest.param(make_pod("p").on("n1"), True, False, id="bound"),
        pytest.param(make_pod("p").deleting(), False, False, id="being deleted"),
        pytest.param(make_pod("p").phase("Succeeded"), False, False, id="succeeded"),
        pytest.param(make_pod("p").phase("Failed"), False, False, id="failed"),
    ],
)
def test_alive_and_ready(pod: PodBuilder, alive: bool, ready: bool) -> None:
    decoded = pod_of(pod)
    assert (decoded.alive, decoded.ready) == (alive, ready)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("p").cpu("4"), False, id="cpu only"),
        pytest.param(make_pod("p").gpus(1), True, id="a GPU"),
        pytest.param(make_pod("p").gpus(0), False, id="zero GPUs"),
        pytest.param(make_pod("p").gpus(1, "nvidia.com/mig-1g.10gb"), True, id="a MIG instance"),
        pytest.param(make_pod("p").resource_claim(), True, id="a DRA claim"),
    ],
)
def test_wants_devices(pod: PodBuilder, want: bool) -> None:
    assert pod_of(pod).wants_devices is want


def test_our_gate_and_those_of_others() -> None:
    pod = pod_of(make_pod("p").gate("a/b").gated().gate("c/d"))
    assert pod.gated
    assert pod.foreign_gates == ("a/b", "c/d")


def test_a_gang_of_one_is_shown_by_the_name_of_its_pod() -> None:
    key = single_key("team", "solo", "uid-1")
    assert str(key) == "team/solo"
    assert key != single_key("team", "solo", "uid-2")
    assert str(GangKey(GangApi.LABEL, "team", "train")) == "team/train"


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_its_own_code_and_fills_its_sentence(reason: Reason) -> None:
    text = Refusal(reason, gang=GangKey(GangApi.LABEL, "ns", "g"), have=3, need=4, subject="the subject").text
    assert "{" not in text
    assert reason.code.isalpha()
    assert [other.code for other in Reason].count(reason.code) == 1


@pytest.mark.parametrize("reason", [Reason.FULL, Reason.RESERVED, Reason.TOO_SMALL, Reason.UNKNOWN_NODE])
def test_what_is_said_of_a_node_is_the_same_for_every_node(reason: Reason) -> None:
    assert "{" not in reason.sentence
    assert not any(letter.isdigit() for letter in reason.sentence)


@pytest.mark.parametrize(("status", "retry"), [(0, True), (408, True), (429, True), (500, True), (503, True)])
def test_errors_worth_another_try(status: int, retry: bool) -> None:
    assert ApiError("x", status=status).retry is retry


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422])
def test_errors_that_stay(status: int) -> None:
    assert not ApiError("x", status=status).retry


def test_an_input_error_leads_with_its_field() -> None:
    assert str(InputError("is empty", field="Node")) == "Node: is empty"
    assert InputError("is empty", field="Node").field == "Node"


def test_an_outcome_without_an_error_is_a_success() -> None:
    assert Outcome().ok
    assert not Outcome(error="409").ok
