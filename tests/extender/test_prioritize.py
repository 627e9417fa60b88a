# SPDX-License-Identifier: Apache-2.0
"""Prioritize calls: pack devices, keep large nodes whole, keep other pods off device nodes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.builders import PodBuilder, filter_body, full_filter_body, make_group, make_node, make_pod
from tests.extender.conftest import Make
from tests.extender.world import World


def scores(world: World, pod: PodBuilder, names: list[str]) -> dict[str, int]:
    answer: list[dict[str, Any]] = orjson.loads(world.run(world.service.prioritize(filter_body(pod, names))))
    for entry in answer:
        assert set(entry) == {"Host", "Score"}
        assert isinstance(entry["Score"], int) and 0 < entry["Score"] <= 10
    hosts = [entry["Host"] for entry in answer]
    assert len(set(hosts)) == len(hosts) and set(hosts) <= set(names)
    return {entry["Host"]: entry["Score"] for entry in answer}


def nodes_with_free(*free: int) -> list[Any]:
    """Nodes n0, n1 … of 8 GPUs of which so many are free."""
    pods = [make_pod(f"r{n}").gpus(8 - count).on(f"n{n}") for n, count in enumerate(free) if count < 8]
    return [*(make_node(f"n{n}").gpus(8) for n in range(len(free))), *pods]


ONE = make_pod("p").gpus(1)


def test_the_node_with_least_left_comes_first_and_a_whole_one_last(make: Make) -> None:
    names = ["n0", "n1", "n2", "n3"]
    given = scores(make(*nodes_with_free(8, 7, 4, 1)), ONE, names)
    assert sorted(names, key=given.__getitem__, reverse=True) == ["n3", "n2", "n1", "n0"]
    assert given["n0"] == 1


def test_a_small_node_that_is_whole_goes_before_a_large_one(make: Make) -> None:
    given = scores(make(make_node("large").gpus(8), make_node("small").gpus(4)), ONE, ["large", "small"])
    assert given["small"] > given["large"] > 0


def test_what_is_reserved_counts_as_taken(make: Make) -> None:
    gang = [
        make_pod(name).gpus(3).gang("g").gated().selector({"kubernetes.io/hostname": "n1"}) for name in "ab"
    ]
    world = make(make_node("n0").gpus(8), make_node("n1").gpus(8), make_group("g", 2), *gang)
    given = scores(world, ONE, ["n0", "n1"])
    assert given["n1"] > given["n0"] == 1


def test_devices_of_another_name_do_not_matter(make: Make) -> None:
    mig = "nvidia.com/mig-1g.10gb"
    world = make(
        make_node("n0").gpus(8).gpus(7, mig), make_node("n1").gpus(8).gpus(7, mig),
        make_pod("r").gpus(6, mig).on("n0"), make_pod("q").gpus(7).on("n1"),
    )  # fmt: skip
    assert scores(world, make_pod("p").gpus(1, mig), ["n0", "n1"])["n0"] > 2
    given = scores(world, ONE, ["n0", "n1"])
    assert given["n1"] > given["n0"] == 1


def test_pods_without_devices_are_steered_off_device_nodes(make: Make) -> None:
    world = make(make_node("n0").gpus(8), make_node("n1"), make_node("n2").gpus(0), make_node("n3").gpus(1))
    assert scores(world, make_pod("p").cpu("1"), ["n0", "n1", "n2", "n3"]) == {"n1": 10, "n2": 10}


@pytest.mark.parametrize(("failures", "scored"), [(2, True), (3, False)])
@pytest.mark.parametrize(
    "pod", [pytest.param(ONE, id="with devices"), pytest.param(make_pod("p"), id="without")]
)
def test_a_node_that_keeps_failing_pods_at_admission_is_left_out(
    make: Make, failures: int, scored: bool, pod: PodBuilder
) -> None:
    failed = [
        make_pod(f"f{n}").on("n0").phase("Failed", reason="UnexpectedAdmissionError") for n in range(failures)
    ]
    node = make_node("n0").gpus(4) if pod is ONE else make_node("n0")
    world = make(node, *failed, make_pod("oom").on("n0").phase("Failed", reason="OOMKilled"))
    assert ("n0" in scores(world, pod, ["n0"])) is scored


def test_unknown_nodes_and_an_empty_offer_score_nothing(make: Make) -> None:
    world = make(make_node("n0").gpus(8))
    assert scores(world, ONE, ["n8", "n0", "n9"]) == {"n0": 1}
    assert scores(world, ONE, []) == {}


def test_full_nodes_are_scored_by_their_names(make: Make) -> None:
    world = make(make_node("n0").gpus(8))
    body = full_filter_body(ONE, [make_node("n0").gpus(8)])
    assert orjson.loads(world.run(world.service.prioritize(body))) == [{"Host": "n0", "Score": 1}]


def test_a_node_used_beyond_what_it_has_scores_like_a_full_one(make: Make) -> None:
    over = make_pod("over").gpus(9).on("n0")
    assert scores(make(make_node("n0").gpus(8), over), ONE, ["n0"]) == {"n0": 9}
