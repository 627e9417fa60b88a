# SPDX-License-Identifier: Apache-2.0
"""The workloads are what the load tests say they are, and the same every time."""

from __future__ import annotations

from collections import Counter

import pytest

from loadtests.workload import SIZES, GangSpec, Workload, contended, deadlock


def test_the_same_seed_gives_the_same_workload_and_another_seed_another() -> None:
    assert contended(1) == contended(1)
    assert contended(1) != contended(2)
    assert deadlock(1) == deadlock(1)
    assert deadlock(1) != deadlock(2)


@pytest.mark.parametrize("seed", range(1, 6))
def test_contended_gangs_have_the_shapes_run_times_and_load_that_were_asked_for(seed: int) -> None:
    work = contended(seed)
    assert (work.nodes, work.gpus_per_node, work.gpus, len(work.gangs)) == (32, 8, 256, 400)
    for gang in work.gangs:
        assert gang.members * gang.gpus in SIZES
        assert gang.gpus == 8 if gang.members > 1 else gang.gpus <= 8
        assert 3.0 <= gang.run_seconds <= 40.0
    arrivals = [gang.arrival_seconds for gang in work.gangs]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0.0
    offered = sum(gang.gpu_seconds for gang in work.gangs) / (work.gpus * arrivals[-1])
    assert offered == pytest.approx(1.3, rel=0.25)


def test_contended_sizes_come_in_the_weights_that_were_asked_for() -> None:
    sizes = Counter(gang.members * gang.gpus for gang in contended(7, gangs=20_000).gangs)
    assert {size: round(count / 200) for size, count in sizes.items()} == pytest.approx(SIZES, abs=1)


def test_a_gang_never_asks_for_more_than_the_cluster_has() -> None:
    assert max(gang.members for gang in contended(1, nodes=2).gangs) == 2


@pytest.mark.parametrize("nodes", [2, 16])
def test_deadlock_gangs_arrive_at_once_and_need_more_than_one_node(nodes: int) -> None:
    work = deadlock(3, nodes=nodes)
    assert len(work.gangs) == 60
    assert {gang.arrival_seconds for gang in work.gangs} == {0.0}
    assert {gang.members for gang in work.gangs} <= set(range(2, nodes + 1))
    assert {gang.gpus for gang in work.gangs} == {4, 5, 6, 7, 8}


def test_pods_of_gangs_that_arrive_together_are_created_interleaved() -> None:
    first, second = GangSpec("a", 0.0, 2, 4, 1.0), GangSpec("b", 0.0, 3, 4, 1.0)
    later = GangSpec("c", 1.5, 2, 4, 1.0)
    order = [(at, gang.name, i) for at, gang, i in Workload(2, 8, (first, second, later)).pods()]
    assert order == [
        (0.0, "a", 0), (0.0, "b", 0), (0.0, "a", 1), (0.0, "b", 1), (0.0, "b", 2),
        (1.5, "c", 0), (1.5, "c", 1),
    ]  # fmt: skip
