# SPDX-License-Identifier: Apache-2.0
"""Read 4, holders: who has the devices that are asked for, and who has them in vain."""

from __future__ import annotations

import pytest

from app.explain.explain import explain
from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.claims_holders import held, in_vain
from app.explain.report import Outcome, Subject
from tests.builders import make_node, make_pod
from tests.explain.dra_objects import DRIVER, exact, make_claim, make_class, make_slice
from tests.explain.looking import facts, found, texts

POD = make_pod("w0").scheduler("default-scheduler").priority(1000).resource_claim("mine")
CLASS = make_class("gpu").selector(f'device.driver == "{DRIVER}"')
ONE = make_claim("mine").request()
HERE = (make_node("n1"), make_slice("n1").gpus(2), CLASS)
TRAIN = make_claim("train", "team").request().allocated("n1", "gpu-0", "gpu-1").reserved("x")
USER = make_pod("x", "team").priority(5).resource_claim("train").on("n1")
NOW = 1767229200
"""An hour after the objects of the tests were created."""


def test_who_holds_the_devices_and_that_priority_does_not_free_them() -> None:
    findings = found(held, "pod/w0", POD, *HERE, ONE, TRAIN, USER)
    assert texts(findings) == [
        "2 of 2 devices for '1 of class gpu' are held by claims (1),"
        " 2 by claim team/train for pod team/x (priority 5);"
        " priority does not free them: allocated devices are never preempted"
    ]
    value = "devices: 2, for pod team/x (priority 5)"
    assert findings[0].evidence == (Evidence("resourceclaim/team/train", ".status.allocation", value),)
    assert findings[0].steps[1].command == "kubectl get resourceclaim train -n team -o yaml"
    assert findings[0].weight is Weight.BLOCKS
    verdict = explain(facts(POD, *HERE, ONE, TRAIN, USER), Subject("pod", "default", "w0")).verdict
    assert verdict.code is Outcome.BLOCKED


def test_where_enough_are_left_the_holders_are_a_note() -> None:
    half = make_claim("train", "team").request().allocated("n1", "gpu-0").reserved("x")
    assert [one.weight for one in found(held, "pod/w0", POD, *HERE, ONE, half, USER)] == [Weight.NOTE]
    claim = make_claim("mine").first_of(exact("gpu", name="two", count=2), exact("gpu", name="one"))
    assert {one.weight for one in found(held, "pod/w0", POD, *HERE, claim, half, USER)} == {Weight.NOTE}


def test_the_largest_holder_is_named_first() -> None:
    many = (make_node("n1"), make_slice("n1").gpus(4), CLASS)
    small = make_claim("a", "team").request().allocated("n1", "gpu-3")
    findings = found(held, "pod/w0", POD, *many, ONE, small, TRAIN, USER.deleting())
    assert "2 by claim team/train for pod team/x (priority 5, terminating);" in findings[0].text
    assert [one.object for one in findings[0].evidence] == [
        "resourceclaim/team/train",
        "resourceclaim/team/a",
    ]


def test_devices_that_nobody_holds_or_that_are_not_asked_for() -> None:
    assert not found(held, "pod/w0", POD, *HERE, ONE)
    elsewhere = TRAIN.allocated("n9", "gpu-0")
    assert not found(held, "pod/w0", POD, *HERE, ONE, elsewhere)
    admin = make_claim("mine").request(adminAccess=True)
    assert not found(held, "pod/w0", POD, *HERE, admin, TRAIN, USER)
    unseen = (Unseen("ResourceClaim.resource.k8s.io", "forbidden"),)
    assert not found(held, "pod/w0", POD, *HERE, ONE, TRAIN, USER, unseen=unseen)


def test_a_share_of_a_device_is_not_the_device() -> None:
    share = make_claim("a", "team").request().allocated("n1", "gpu-0", shareID="s1")
    assert not found(held, "pod/w0", POD, *HERE, ONE, share)


# -- in vain


def test_devices_of_pods_that_have_finished_or_are_gone() -> None:
    done = USER.phase("Succeeded")
    claim = TRAIN.reserved("vanished")
    findings = found(in_vain, "pod/w0", POD, *HERE, ONE, claim, done, now=NOW)
    assert texts(findings) == [
        "devices for '1 of class gpu' are held for nobody who runs: 2, by claim team/train"
        " (made 60m ago) for pod team/x (finished) and pod team/vanished (gone)"
    ]
    value = "pod team/x (finished) and pod team/vanished (gone)"
    assert findings[0].evidence == (Evidence("resourceclaim/team/train", ".status.reservedFor", value),)
    assert findings[0].weight is Weight.WARNS


def test_a_claim_that_is_reserved_for_nobody() -> None:
    claim = make_claim("old", "team").request().allocated("n1", "gpu-0", at="2025-12-30T01:00:00Z")
    findings = found(in_vain, "pod/w0", POD, *HERE, ONE, claim, now=NOW)
    assert texts(findings) == [
        "devices for '1 of class gpu' are held for nobody who runs: 1, by claim team/old"
        " (allocated 2d ago) for nobody"
    ]


@pytest.mark.parametrize(
    ("now", "age"),
    [(0, ""), (NOW - 3600 - 60, ""), (NOW - 3590, " (made 10s ago)"), (NOW - 3000, " (made 10m ago)")],
)
def test_an_age_is_told_where_it_is_known(now: int, age: str) -> None:
    claim = make_claim("old", "team").request().allocated("n1", "gpu-0")
    assert (
        f"by claim team/old{age} for nobody"
        in found(in_vain, "pod/w0", POD, *HERE, ONE, claim, now=now)[0].text
    )


def test_a_pod_that_runs_or_that_nobody_has_seen_holds_nothing_in_vain() -> None:
    assert not found(in_vain, "pod/w0", POD, *HERE, ONE, TRAIN, USER)
    assert not found(in_vain, "pod/w0", POD, *HERE, ONE, TRAIN, USER.deleting())
    assert not found(in_vain, "pod/w0", POD, *HERE, ONE, TRAIN, namespaces=("default",))
    assert not found(in_vain, "pod/w0", POD, *HERE, ONE, TRAIN, unseen=(Unseen("Pod", "forbidden"),))
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    grouped = TRAIN.set("status.reservedFor", [group])
    assert not found(in_vain, "pod/w0", POD, *HERE, ONE, grouped)
