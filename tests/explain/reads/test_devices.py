# SPDX-License-Identifier: Apache-2.0
"""Read 1, devices: what is free where the pods may go, and whether it lies scattered."""

from __future__ import annotations

from app.explain.finding import Evidence, Weight
from app.explain.reads.devices import fragmentation, free_devices
from tests.builders import GPU, make_node, make_pod
from tests.explain.looking import found, texts

POD = make_pod("w0").gpus(4)
OTHER = make_pod("other").gpus(5)
N1, N2 = make_node("n1").gpus(8), make_node("n2").gpus(8)


def test_what_is_free_is_told_in_sum_and_for_one_node_with_the_numbers_of_each() -> None:
    findings = found(free_devices, "pod/w0", POD, N1, N2, OTHER.on("n1"))
    assert texts(findings) == [
        "nvidia.com/gpu: 11 of 16 free where the pods may go, at most 8 on one node;"
        " a pod asks for 4; nodes with as many free: 1 of 2"
    ]
    assert findings[0].weight is Weight.NOTE
    assert findings[0].evidence == (
        Evidence("2 nodes", GPU, "11 free, 16 allocatable, 5 used, 0 reserved, 16 capacity"),
        Evidence("node/n2", GPU, "8 free, 8 allocatable, 0 used, 0 reserved, 8 capacity"),
        Evidence("node/n1", GPU, "3 free, 8 allocatable, 5 used, 0 reserved, 8 capacity"),
    )
    assert findings[0].steps[0].command == "kubectl describe node n2"


def test_nodes_that_do_not_admit_the_pod_and_pods_that_have_ended_do_not_count() -> None:
    ended = OTHER.on("n1", phase="Succeeded")
    findings = found(free_devices, "pod/w0", POD, N1, N2.cordoned(), ended)
    assert texts(findings) == [
        "nvidia.com/gpu: 8 of 8 free where the pods may go, at most 8 on one node;"
        " a pod asks for 4; nodes with as many free: 1 of 1"
    ]


def test_a_pod_without_devices_is_told_of_cpu_in_cores() -> None:
    findings = found(free_devices, "pod/c", make_pod("c").cpu("1500m"), make_node("n1"))
    assert texts(findings) == [
        "cpu: 64 of 64 free where the pods may go, at most 64 on one node;"
        " a pod asks for 1.5; nodes with as many free: 1 of 1"
    ]


def test_nothing_is_told_where_nothing_waits_or_no_node_would_do() -> None:
    assert not found(free_devices, "pod/w0", POD.on("n1"), N1)
    assert not found(free_devices, "pod/w0", POD, N1.cordoned())


def test_devices_that_lie_scattered_are_told_so_and_not_told_twice() -> None:
    objects = (POD, N1, N2, OTHER.on("n1"), OTHER.named("x").on("n2"))
    assert texts(found(fragmentation, "pod/w0", *objects)) == [
        "nvidia.com/gpu: 6 of 16 free where the pods may go, but they lie scattered: at most 3 on one node,"
        " and a pod asks for 4"
    ]
    assert not found(free_devices, "pod/w0", *objects)


def test_too_few_in_sum_or_enough_on_one_node_or_nodes_too_small_is_no_fragmentation() -> None:
    assert not found(fragmentation, "pod/w0", POD, N1, OTHER.on("n1"))
    assert not found(fragmentation, "pod/w0", POD, N1, N2, OTHER.on("n1"))
    assert not found(fragmentation, "pod/w0", POD.gpus(16), N1, N2)


def test_room_for_pods_is_told_only_where_it_runs_out() -> None:
    pod, node = make_pod("w"), make_node("n1").pods(1)
    assert not found(free_devices, "pod/w", pod, node)
    assert found(free_devices, "pod/w", pod, node, make_pod("x").on("n1"))
