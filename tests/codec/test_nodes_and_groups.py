# SPDX-License-Identifier: Apache-2.0
"""Nodes and the PodGroups of both APIs from JSON."""

from __future__ import annotations

import pytest

from app.codec.objects import ObjectDecoder
from app.domain.errors import InputError
from app.domain.ids import GangApi
from app.domain.node import NOT_READY, UNSCHEDULABLE
from app.domain.placement import Taint
from tests.builders import GPU, GroupBuilder, Json, NodeBuilder, group_of, key, make_group, make_node, node_of

GPU_TAINT = Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("node", "want"),
    [
        pytest.param(make_node("n"), (), id="a healthy node has none"),
        pytest.param(make_node("n").taint("gpu", "yes"), (GPU_TAINT,), id="its own"),
        pytest.param(make_node("n").cordoned(), (UNSCHEDULABLE,), id="a cordon is a taint"),
        pytest.param(
            make_node("n").cordoned().taint("node.kubernetes.io/unschedulable"),
            (UNSCHEDULABLE,),
            id="which the node controller adds as well",
        ),
        pytest.param(make_node("n").not_ready(), (NOT_READY,), id="not ready is a taint"),
        pytest.param(make_node("n").not_ready("Unknown"), (NOT_READY,), id="so is a silent kubelet"),
        pytest.param(
            make_node("n").set("status.conditions", [{"type": "DiskPressure", "status": "False"}]),
            (),
            id="other conditions are not",
        ),
        pytest.param(make_node("n").set("status.conditions", None), (), id="no conditions: assumed ready"),
        pytest.param(
            make_node("n").taint("b").cordoned().taint("a"),
            (Taint("a", "NoSchedule"), Taint("b", "NoSchedule"), UNSCHEDULABLE),
            id="in a fixed order",
        ),
    ],
)
def test_taints(node: NodeBuilder, want: tuple[Taint, ...]) -> None:
    assert node_of(node).taints == want


def test_allocatable_and_capacity_are_kept_apart() -> None:
    node = node_of(make_node("n").gpus(8).allocatable({GPU: "6"}))
    assert node.allocatable[GPU] == 6
    assert node.capacity[GPU] == 8
    assert node.allocatable["cpu"] == 64_000
    assert node.allocatable["memory"] == 512 << 30


def test_null_counts_as_absent_in_a_node() -> None:
    node = node_of(make_node("n").set("spec", None).set("status", None).set("metadata.labels", None))
    assert (node.allocatable, node.capacity, node.labels, node.taints) == ({}, {}, {}, ())


def test_the_shape_of_a_node_is_all_but_its_amounts() -> None:
    node = node_of(make_node("n").gpus(8))
    assert node.shape == node_of(make_node("n").gpus(4)).shape
    for other in (
        make_node("n").zone("a"),
        make_node("n").taint("t"),
        make_node("n").uid("reborn"),
        make_node("n").cordoned(),
    ):
        assert node.shape != node_of(other).shape


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{}", "metadata"),
        (b'{"metadata":{}}', r"Node: metadata\.name: is missing"),
        (make_node("n").set("status.allocatable", []).json(), r"\$\.status\.allocatable"),
        (make_node("n").set("spec.taints", [{"key": 3}]).json(), r"\$\.spec\.taints\[0\]\.key"),
        (make_node("n").allocatable({"cpu": None}).json(), r"node n: status\.allocatable\[cpu\]"),
    ],
)
def test_json_that_is_no_node_says_where(raw: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ObjectDecoder().node(raw)


# -- PodGroups


@pytest.mark.parametrize(
    ("group", "declared", "minimum", "suspicious"),
    [
        pytest.param(make_group("g", 4), 4, 4, False, id="label API"),
        pytest.param(make_group("g", 4).native(), 4, 4, False, id="native API"),
        pytest.param(make_group("g", 0), 0, 1, True, id="zero counts as one"),
        pytest.param(make_group("g", -3), -3, 1, True, id="negative counts as one"),
        pytest.param(make_group("g", None), None, 1, True, id="absent counts as one"),
        pytest.param(make_group("g").minimum(None), None, 1, True, id="null counts as absent"),
        pytest.param(make_group("g").set("spec", None), None, 1, True, id="no spec at all"),
        pytest.param(make_group("g", None).native(), None, 1, False, id="native without a count"),
        pytest.param(
            make_group("g").native().set("spec.schedulingPolicy", {"basic": {}}),
            None,
            1,
            False,
            id="native with the basic policy, which is no mistake",
        ),
        pytest.param(
            make_group("g", 4).native().set("spec.minMember", 9), 4, 4, False, id="native ignores minMember"
        ),
        pytest.param(
            make_group("g", 4).set("spec.schedulingPolicy", {"gang": {"minCount": 9}}),
            4,
            4,
            False,
            id="the label API ignores minCount",
        ),
    ],
)
def test_minimum(group: GroupBuilder, declared: int | None, minimum: int, suspicious: bool) -> None:
    decoded = group_of(group)
    assert (decoded.declared, decoded.minimum, decoded.suspicious) == (declared, minimum, suspicious)


def test_the_api_is_part_of_the_key() -> None:
    label, native = make_group("g", 2, "team"), make_group("g", 2, "team").native()
    assert group_of(label).key == key("g", "team")
    assert group_of(native).key == key("g", "team", native=True)
    assert group_of(native).key.api is GangApi.NATIVE
    assert group_of(native.set("apiVersion", "scheduling.k8s.io/v1alpha2")).key == group_of(native).key


def test_the_rest_of_a_group() -> None:
    group = group_of(
        make_group("g").created("1970-01-01T00:01:00Z").timeout(90).status(scheduled=2, running=1)
    )
    assert (group.uid, group.created, group.timeout_seconds) == ("uid-g", 60, 90)
    assert group.status == (("scheduled", 2), ("running", 1))
    assert group.status_owner == ""


def test_another_writer_of_the_status_counts_is_named() -> None:
    counts: Json = {"f:status": {"f:scheduled": {}}}
    assert group_of(make_group("g").managed("muster", counts)).status_owner == ""
    assert group_of(make_group("g").managed("other", {"f:spec": {}})).status_owner == ""
    both = make_group("g").managed("muster", counts).managed("scheduler-plugins", counts)
    assert group_of(both).status_owner == "scheduler-plugins"


@pytest.mark.parametrize("junk", ["3", 3.5, [], True, {}])
def test_a_minimum_that_is_no_number_is_named(junk: object) -> None:
    with pytest.raises(InputError, match=r"PodGroup: .*\$\.spec\.minMember"):
        group_of(make_group("g", junk))
    with pytest.raises(InputError, match=r"PodGroup: .*\$\.spec\.schedulingPolicy\.gang\.minCount"):
        group_of(make_group("g", junk).native())


def test_a_group_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"PodGroup: metadata\.name: is missing"):
        group_of(make_group(""))
