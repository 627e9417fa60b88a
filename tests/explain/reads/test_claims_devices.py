# SPDX-License-Identifier: Apache-2.0
"""Read 4, devices: what is published for a request, and when that is proven to be too little."""

from __future__ import annotations

from typing import Any

import pytest

from app.explain.explain import explain
from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.claims_devices import free, in_parts, no_slices, not_judged, too_few
from app.explain.reads.claims_pools import incomplete, tainted
from app.explain.report import Outcome, Subject
from tests.builders import Builder, Json, make_group, make_node, make_pod
from tests.explain.dra_objects import (
    DRIVER,
    exact,
    make_claim,
    make_class,
    make_rule,
    make_slice,
    make_template,
    uses_template,
)
from tests.explain.looking import case, facts, found, texts

POD = make_pod("w0").scheduler("default-scheduler").resource_claim("mine")
NODES = (make_node("n1"), make_node("n2"))
CLASS = make_class("gpu").selector(f'device.driver == "{DRIVER}"')
ONE = make_claim("mine").request()
TWO = (make_slice("n1").gpus(2), make_slice("n2").gpus(2))
BROKEN = {"key": "gpu.example.com/unhealthy", "value": "xid", "effect": "NoSchedule"}


def asking(count: int = 1, selector: str = "", **fields: Any) -> Builder:
    return make_claim("mine").first_of(exact("gpu", selector=selector, name="any", count=count, **fields))


# -- no slices


def test_a_driver_that_publishes_nothing() -> None:
    other = make_slice("n1").set("spec.driver", "nic.example.com").gpus(1)
    findings = found(no_slices, "pod/w0", POD, *NODES, CLASS, ONE, other)
    assert texts(findings) == [
        f"driver {DRIVER} publishes no devices; 1 of class gpu is asked for, for pod w0"
    ]
    assert findings[0].weight is Weight.BLOCKS
    assert findings[0].evidence == (Evidence("resourceslices", ".spec.driver", f"none is {DRIVER}"),)
    assert not found(no_slices, "pod/w0", POD, *NODES, CLASS, ONE, TWO[0])
    assert not found(too_few, "pod/w0", POD, *NODES, CLASS, ONE, other)


def test_a_class_that_names_no_driver_does_not_tell_who_is_missing() -> None:
    objects = (POD, *NODES, make_class("gpu"), ONE)
    assert not found(no_slices, "pod/w0", *objects)
    assert texts(found(too_few, "pod/w0", *objects)) == [
        "even with all devices free there are too few for pod w0: 1 of class gpu is asked for,"
        " 0 at most exist, 0 on one node"
    ]


def test_an_alternative_that_is_there_will_do() -> None:
    claim = make_claim("mine").first_of(exact("nic", name="a"), exact("gpu", name="b"))
    nic = make_class("nic").selector('device.driver == "nic.example.com"')
    assert not found(no_slices, "pod/w0", POD, *NODES, CLASS, nic, claim, *TWO)
    assert not found(too_few, "pod/w0", POD, *NODES, CLASS, nic, claim, *TWO)
    assert found(no_slices, "pod/w0", POD, *NODES, CLASS, nic, claim)


@pytest.mark.parametrize("kind", ["ResourceSlice.resource.k8s.io", "DeviceClass.resource.k8s.io"])
def test_nothing_is_counted_that_was_not_read(kind: str) -> None:
    unseen = (Unseen(kind, "forbidden"),)
    for topic in (no_slices, too_few, free):
        assert not found(topic, "pod/w0", POD, *NODES, CLASS, ONE, unseen=unseen)


# -- too few


@pytest.mark.parametrize(
    ("claim", "short"),
    [
        pytest.param(asking(2), False, id="a node has two"),
        pytest.param(asking(3), True, id="no node has three, though four exist"),
        pytest.param(asking(1, f'device.attributes["{DRIVER}"].model == "A100"'), True, id="none is an A100"),
        pytest.param(
            asking(1, f'device.attributes["{DRIVER}"].gone == "x"'), False, id="an error, no mismatch"
        ),
        pytest.param(asking(1, "f(device)"), False, id="not understood: may match"),
        pytest.param(asking(9, allocationMode="All"), False, id="all of a node are asked for"),
    ],
)
def test_too_few_devices_for_one_pod(claim: Builder, short: bool) -> None:
    assert bool(found(too_few, "pod/w0", POD, *NODES, CLASS, claim, *TWO)) is short


def test_too_few_devices_show_what_was_counted() -> None:
    selector = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("100Gi")) >= 0'
    slices = (*TWO, make_slice("n3").device("gpu-0", memory="141Gi"))
    objects = (POD, *NODES, CLASS, asking(2, selector), *slices)
    findings = found(too_few, "pod/w0", *objects)
    assert texts(findings) == [
        "even with all devices free there are too few for pod w0: 2 of class gpu is asked for,"
        " 1 at most exist, 1 on one node"
    ]
    assert findings[0].evidence == (
        Evidence("request gpu/any", ".selectors", f'device.driver == "{DRIVER}"'),
        Evidence("request gpu/any", ".selectors", selector),
        Evidence("request gpu/any", "devices", "1 matching, 0 not judged, 0 kept off by a taint, 0 held"),
    )
    verdict = explain(facts(*objects), Subject("pod", "default", "w0")).verdict
    assert verdict.code is Outcome.BLOCKED


def test_devices_of_no_single_node_count_for_each() -> None:
    fabric = make_slice("").set("spec.allNodes", True).pool("fabric").gpus(1)
    assert not found(too_few, "pod/w0", POD, *NODES, CLASS, asking(3), *TWO, fabric)
    assert found(too_few, "pod/w0", POD, *NODES, CLASS, asking(4), *TWO, fabric)


def test_devices_that_serve_several_claims_prove_nothing() -> None:
    shared = make_slice("n1").gpus(1, allowMultipleAllocations=True)
    assert not found(too_few, "pod/w0", POD, *NODES, CLASS, asking(2), shared)


@pytest.mark.parametrize(("size", "short"), [(4, False), (5, True)])
def test_too_few_devices_for_the_minimum_of_a_gang(size: int, short: bool) -> None:
    names = [f"w{n}" for n in range(size)]
    pods = [uses_template(make_pod(name).gang("train"), "gpus", claim=f"{name}-gpu") for name in names]
    claims = [make_claim(f"{name}-gpu").request().made_for(name) for name in names]
    objects = (make_group("train", size), *pods, *claims, *NODES, CLASS, *TWO)
    assert bool(found(too_few, "podgroup/train", *objects)) is short


def test_claims_that_are_shared_or_not_made_yet_are_not_added_up() -> None:
    group = make_group("train", 5)
    shared = [make_pod(f"w{n}").gang("train").resource_claim("mine") for n in range(5)]
    assert not found(too_few, "podgroup/train", group, *shared, *NODES, CLASS, ONE, *TWO)
    template = make_template("gpus").request()
    unmade = [uses_template(make_pod(f"w{n}").gang("train"), "gpus") for n in range(5)]
    assert not found(too_few, "podgroup/train", group, *unmade, *NODES, CLASS, template, *TWO)


def test_what_is_allocated_is_no_need() -> None:
    claim = asking(3).set("status.allocation", {"devices": {"results": []}})
    assert not case("pod/w0", POD, *NODES, CLASS, claim, *TWO).needs


# -- free


def test_how_many_are_free() -> None:
    holder = make_claim("theirs").request().allocated("n1", "gpu-0", "gpu-1")
    admin = make_claim("probe").request().allocated("n2", "gpu-0", adminAccess=True)
    findings = found(free, "pod/w0", POD, *NODES, CLASS, ONE, *TWO, holder, admin)
    assert texts(findings) == ["for '1 of class gpu' at most 2 of 4 devices are free, at most 2 on one node"]
    assert findings[0].weight is Weight.NOTE


def test_admin_access_does_not_mind_who_holds_them() -> None:
    holder = make_claim("theirs").request().allocated("n1", "gpu-0", "gpu-1")
    findings = found(free, "pod/w0", POD, *NODES, CLASS, asking(adminAccess=True), *TWO, holder)
    assert "at most 4 of 4 devices are free" in findings[0].text


def test_slices_of_v1beta1_are_read_too() -> None:
    selector = f'device.attributes["{DRIVER}"].model == "H100"'
    findings = found(free, "pod/w0", POD, *NODES, CLASS, asking(1, selector), TWO[0].beta(), TWO[1])
    assert texts(findings) == ["for '1 of class gpu' at most 4 of 4 devices are free, at most 2 on one node"]


# -- pools


def test_a_pool_of_which_slices_are_missing_gives_nothing() -> None:
    half = make_slice("n1").gpus(2).pool("n1", generation=7, slices=2)
    old = make_slice("n1", name="old").gpus(2).pool("n1", generation=6)
    objects = (POD, *NODES, CLASS, ONE, half, old)
    findings = found(incomplete, "pod/w0", *objects)
    assert texts(findings) == [f"incomplete pools of driver {DRIVER}: 1, none of their devices is given out"]
    value = "1 of 2 slices of generation 7, 1 of older generations"
    assert findings[0].evidence == (Evidence("pool n1", ".spec.pool.resourceSliceCount", value),)
    assert found(too_few, "pod/w0", *objects)
    rest = make_slice("n1", name="rest").gpus(1).pool("n1", generation=7, slices=2)
    assert not found(incomplete, "pod/w0", *objects, rest)


def test_newer_slices_take_the_place_of_older_ones_in_any_order() -> None:
    old = make_slice("n1", name="old").gpus(8).pool("n1", generation=1)
    new = make_slice("n1", name="new").gpus(1).pool("n1", generation=2)
    for slices in ((old, new), (new, old)):
        assert "of 1 devices" in found(free, "pod/w0", POD, *NODES, CLASS, ONE, *slices)[0].text


def test_pools_of_drivers_that_are_not_asked_for_are_not_told() -> None:
    other = make_slice("n1").set("spec.driver", "nic.example.com").pool("n1", slices=2)
    assert not found(incomplete, "pod/w0", POD, *NODES, CLASS, ONE, *TWO, other)
    assert found(incomplete, "pod/w0", POD, *NODES, make_class("gpu"), ONE, *TWO, other)
    assert not found(incomplete, "pod/w0", make_pod("w0"), *NODES, other)


# -- taints


def test_devices_with_a_taint_that_is_not_tolerated() -> None:
    sick = make_slice("n1").gpus(1, taints=[BROKEN])
    findings = found(tainted, "pod/w0", POD, *NODES, CLASS, ONE, sick, TWO[1])
    assert texts(findings) == [
        "devices with a taint that '1 of class gpu' does not tolerate: 1,"
        " gpu.example.com/unhealthy=xid:NoSchedule"
    ]
    where = f"{DRIVER}/n1/gpu-0"
    assert findings[0].evidence == (Evidence(where, ".taints", "gpu.example.com/unhealthy=xid:NoSchedule"),)
    tolerating = asking(tolerate="gpu.example.com/unhealthy")
    assert not found(tainted, "pod/w0", POD, *NODES, CLASS, tolerating, sick)


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        ({"key": "k", "effect": "None"}, {}, True),
        ({"key": "k", "effect": "NoExecute"}, {"operator": "Exists"}, True),
        (
            {"key": "k", "effect": "NoExecute"},
            {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
            False,
        ),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "k", "operator": "Equal"}, False),
        ({"key": "k", "effect": "NoSchedule"}, {"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "effect": "NoSchedule"}, {"key": "k", "operator": "Newer"}, False),
    ],
)
def test_tolerations(taint: Json, toleration: Json, tolerated: bool) -> None:
    sick = make_slice("n1").gpus(1, taints=[taint])
    claim = asking(tolerations=[toleration] if toleration else [])
    assert bool(found(tainted, "pod/w0", POD, *NODES, CLASS, claim, sick)) is not tolerated


def test_rules_taint_what_they_select() -> None:
    objects = (POD, *NODES, CLASS, ONE, *TWO)
    pool = make_rule("drain", {"key": "drain", "effect": "NoExecute"}, driver=DRIVER, pool="n1")
    assert "does not tolerate: 2, drain:NoExecute" in found(tainted, "pod/w0", *objects, pool)[0].text
    other = make_rule("drain", {"key": "drain", "effect": "NoExecute"}, driver="nic.example.com")
    assert not found(tainted, "pod/w0", *objects, other)
    nothing = pool.set("spec.deviceSelector", None)
    assert not found(tainted, "pod/w0", *objects, nothing)
    assert not found(tainted, "pod/w0", *objects, pool, gates={"DRADeviceTaintRules": False})


def test_taints_prove_something_only_where_the_scheduler_is_known_to_respect_them() -> None:
    objects = (POD, *NODES, CLASS, ONE, make_slice("n1").gpus(1, taints=[BROKEN]))
    assert not found(too_few, "pod/w0", *objects)
    assert not found(too_few, "pod/w0", *objects, gates={"DRADeviceTaints": False})
    assert found(too_few, "pod/w0", *objects, gates={"DRADeviceTaints": True})


# -- what cannot be judged


def test_selectors_that_take_cel_are_left_to_the_scheduler() -> None:
    selector = f'device.attributes["{DRIVER}"].model.matches("^H.*$")'
    findings = found(not_judged, "pod/w0", POD, *NODES, CLASS, asking(1, selector), *TWO)
    assert texts(findings) == [
        "a selector of '1 of class gpu' could not be judged here for 4 devices:"
        " kube-scheduler's DynamicResources plugin decides"
    ]
    assert findings[0].evidence == (Evidence("request gpu/any", ".selectors", selector),)
    assert not found(not_judged, "pod/w0", POD, *NODES, CLASS, ONE, *TWO)


def test_parts_and_shares_of_devices_are_left_to_the_scheduler() -> None:
    parts = make_slice("n1").gpus(2, consumesCounters=[{"counterSet": "gpu-0", "counters": {}}])
    shared = make_slice("n2").gpus(1, allowMultipleAllocations=True)
    findings = found(in_parts, "pod/w0", POD, *NODES, CLASS, ONE, parts, shared)
    assert texts(findings) == [
        "some devices for '1 of class gpu' are parts of others or serve several claims:"
        " how many fit could not be judged here"
    ]
    assert findings[0].evidence == (
        Evidence("resourceslices", ".spec.devices[].consumesCounters", "on 2 devices"),
        Evidence("resourceslices", ".spec.devices[].allowMultipleAllocations", "on 1 devices"),
    )
    assert not found(in_parts, "pod/w0", POD, *NODES, CLASS, ONE, *TWO)
