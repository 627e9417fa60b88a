# SPDX-License-Identifier: Apache-2.0
"""Read 3, packing: what could ever fit, and devices that are free but scattered."""

from __future__ import annotations

from app.explain.finding import Evidence, Weight
from app.explain.reads.devices import fragmentation
from app.explain.reads.packing import free_but_scattered, minimum_above_cluster
from app.explain.reads.shortages import another_resource_runs_out
from tests.builders import GPU, make_group, make_node, make_pod
from tests.explain.looking import found

NODES = [make_node(f"n{i}").gpus(8) for i in range(3)]
MEMBERS = [make_pod(f"w{i}").gpus(8).gang("train").gated() for i in range(4)]
OTHERS = [make_pod(f"x{i}").gpus(4).on(f"n{i}") for i in range(3)]


def test_a_minimum_that_no_empty_cluster_would_hold() -> None:
    (finding,) = found(
        minimum_above_cluster, "podgroup/train", make_group("train", 4), *NODES, *MEMBERS, *OTHERS
    )
    assert finding.text == "at most 3 of 4 members would have seats at once, even if the cluster were empty"
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (
        Evidence(
            "cluster",
            f"sum of .status.allocatable['{GPU}']",
            "24 on the nodes that admit a member, at most 8 on one",
        ),
    )


def test_unlike_members_have_no_proof() -> None:
    unlike = [MEMBERS[0].cpu("1"), *MEMBERS[1:]]
    (finding,) = found(minimum_above_cluster, "podgroup/train", make_group("train", 4), *NODES, *unlike)
    assert finding.weight is Weight.WARNS


def test_a_minimum_that_an_empty_cluster_would_hold_is_not_too_large() -> None:
    assert not found(
        minimum_above_cluster, "podgroup/train", make_group("train", 3), *NODES, *MEMBERS, *OTHERS
    )
    assert not found(minimum_above_cluster, "pod/w0", *NODES, make_pod("w0").gpus(16))


def test_the_best_part_of_a_gang_is_shown_with_its_nodes() -> None:
    whole, *half = NODES
    objects = (make_group("train", 2), whole, *half, *MEMBERS[:2], *OTHERS[1:])
    (finding,) = found(free_but_scattered, "podgroup/train", *objects)
    assert finding.text == (
        "16 nvidia.com/gpu are free on nodes that it may use and 16 are needed, but not together:"
        " seats for 1 of 2, 1 on n0"
    )
    assert finding.evidence == (
        Evidence("node/n0", f"free {GPU}", "8"),
        Evidence("node/n1", f"free {GPU}", "4"),
        Evidence("node/n2", f"free {GPU}", "4"),
    )


def test_one_pod_that_no_node_has_room_for_is_told_with_the_devices_alone() -> None:
    objects = (*NODES, *OTHERS, make_pod("w").gpus(8))
    assert len(found(fragmentation, "pod/w", *objects)) == 1
    assert not found(free_but_scattered, "pod/w", *objects)


def test_devices_lie_together_where_another_resource_runs_out() -> None:
    full = [other.gpus(1).cpu("60") for other in OTHERS]
    objects = (make_group("train", 2), *NODES, *full, *(member.gpus(4).cpu("32") for member in MEMBERS[:2]))
    assert not found(free_but_scattered, "podgroup/train", *objects)
    assert found(another_resource_runs_out, "podgroup/train", *objects)


def test_nothing_is_scattered_where_it_fits_is_too_little_or_never_could() -> None:
    pod = make_pod("w").gpus(8)
    assert not found(free_but_scattered, "pod/w", *NODES, *OTHERS[1:], pod)
    full = [other.gpus(7) for other in OTHERS]
    assert not found(free_but_scattered, "pod/w", *NODES, *full, pod)
    assert not found(free_but_scattered, "pod/w", *NODES, pod.gpus(16))
    assert not found(free_but_scattered, "pod/w", *NODES, *OTHERS, make_pod("w").cpu("100"))


def test_nodes_that_may_not_be_used_do_not_count_as_free() -> None:
    reserved = [node.taint("team", "b") for node in NODES[:2]]
    assert not found(free_but_scattered, "pod/w", *reserved, NODES[2], *OTHERS, make_pod("w").gpus(8))


def test_many_nodes_are_counted_and_not_all_shown() -> None:
    nodes = [make_node(f"m{i:03}").gpus(4) for i in range(150)]
    big = make_node("big").gpus(8)
    objects = (*nodes, big, NODES[0], make_pod("x").gpus(8).on("big"), make_group("train", 2), *MEMBERS[:2])
    (finding,) = found(free_but_scattered, "podgroup/train", *objects)
    assert len(finding.evidence) == 100
    assert finding.evidence[-1] == Evidence("", f"free {GPU}", "on 52 more nodes")
