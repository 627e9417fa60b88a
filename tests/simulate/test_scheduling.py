# SPDX-License-Identifier: Apache-2.0
"""What the stand-in for kube-scheduler does around an extender."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.ids import NodeName
from app.simulate.scheduling import Cache, Call, Verdict, attempt, order, with_failure
from tests.builders import GPU, PodBuilder, gone, make_node, make_pod, pod_of, seen

NODES = (make_node("n1").gpus(8), make_node("n2").gpus(8), make_node("tainted").gpus(8).taint("gpu"))


def cache_of(*pods: PodBuilder) -> Cache:
    cache = Cache()
    cache.observe(map(seen, (*NODES, *pods)))
    return cache


def played(cache: Cache, builder: PodBuilder, *answers: Any) -> tuple[list[Call], Verdict]:
    """The calls of an attempt that is answered like this, and its verdict."""
    steps, calls = attempt(cache, pod_of(builder), builder.build()), []
    try:
        for answer in (None, *answers):
            calls.append(steps.send(answer))  # noqa: PERF401
    except StopIteration as end:
        return calls, end.value
    pytest.fail(f"asked {calls[-1].verb} once more")


def names(*nodes: str, failed: dict[str, str] | None = None, error: str = "") -> dict[str, Any]:
    return {
        "NodeNames": list(nodes), "FailedNodes": failed, "FailedAndUnresolvableNodes": None, "Error": error,
    }  # fmt: skip


def test_turns_go_by_priority_then_age_then_name() -> None:
    old = make_pod("old").created("2025-01-01T00:00:00Z")
    pods = [make_pod("b"), make_pod("a"), old, make_pod("first").priority(5)]
    ordered = sorted(map(pod_of, pods), key=order)
    assert [pod.name for pod in ordered] == ["first", "old", "a", "b"]


@pytest.mark.parametrize(
    ("pod", "pending"),
    [
        pytest.param(make_pod("p"), True, id="one that waits"),
        pytest.param(make_pod("p").gated(), False, id="gated"),
        pytest.param(make_pod("p").scheduler("default-scheduler"), False, id="of another scheduler"),
        pytest.param(make_pod("p").deleting(), False, id="being deleted"),
        pytest.param(make_pod("p").on("n1"), False, id="bound"),
    ],
)
def test_who_is_in_the_queue(pod: PodBuilder, pending: bool) -> None:
    assert cache_of(pod).pending(pod_of(pod)) is pending


def test_who_is_assumed_holds_its_place_and_has_no_turn_until_forgotten() -> None:
    pod, other = make_pod("p").gpus(8), make_pod("other").gpus(8)
    cache = cache_of(pod, other)
    cache.assume(pod_of(pod), NodeName("n1"))
    assert not cache.pending(pod_of(pod))
    assert cache.fit(pod_of(other)) == ["n2"]
    cache.forget(pod_of(pod).uid)
    assert cache.pending(pod_of(pod))
    assert cache.fit(pod_of(other)) == ["n1", "n2"]


def test_the_place_of_an_assumed_pod_that_is_deleted_is_free() -> None:
    pod, other = make_pod("p").gpus(8), make_pod("other").gpus(8)
    cache = cache_of(pod, other)
    cache.assume(pod_of(pod), NodeName("n1"))
    cache.observe([gone(pod)])
    assert cache.fit(pod_of(other)) == ["n1", "n2"]


def test_only_nominations_of_equal_or_higher_priority_are_in_the_way() -> None:
    cache = cache_of(make_pod("nominated").gpus(8).priority(1).nominated("n1"))
    assert cache.fit(pod_of(make_pod("equal").gpus(8).priority(1))) == ["n2"]
    assert cache.fit(pod_of(make_pod("higher").gpus(8).priority(2))) == ["n1", "n2"]


def test_one_node_left_is_taken_without_asking_for_scores() -> None:
    pod = make_pod("p").gpus(1)
    calls, verdict = played(cache_of(pod), pod, names("n2"))
    assert [(call.verb, call.body["NodeNames"]) for call in calls] == [("filter", ["n1", "n2"])]
    assert verdict == Verdict(NodeName("n2"))


def test_of_several_nodes_the_best_scored_is_taken() -> None:
    pod = make_pod("p").gpus(1)
    calls, verdict = played(cache_of(pod), pod, names("n1", "n2"), [{"Host": "n2", "Score": 3}])
    assert [call.verb for call in calls] == ["filter", "prioritize"]
    assert verdict.node == "n2"


def test_a_nominated_node_is_offered_alone_and_then_all() -> None:
    pod = make_pod("p").gpus(1).nominated("n2")
    calls, verdict = played(cache_of(pod), pod, names(failed={"n2": "no"}), names("n1"))
    assert [call.body["NodeNames"] for call in calls] == [["n2"], ["n1", "n2"]]
    assert verdict.node == "n1"


def test_a_refusal_counts_the_nodes_of_each_reason_its_own_among_them() -> None:
    pod = make_pod("p").gpus(4)
    cache = cache_of(pod, make_pod("full").gpus(8).on("n1"))
    calls, verdict = played(cache, pod, names(failed={"n2": "node is reserved"}))
    assert [call.body["NodeNames"] for call in calls] == [["n2"]]
    assert verdict == Verdict(
        None,
        "0/3 nodes are available: "
        f"1 Insufficient {GPU}, 1 node is reserved, "
        "1 node(s) did not match the pod's node selector, affinity or tolerations",
    )


def test_an_error_of_the_extender_is_the_reason() -> None:
    pod = make_pod("p").gpus(4)
    assert played(cache_of(pod), pod, names(error="not ready"))[1] == Verdict(None, "not ready")


def test_where_no_node_passes_nobody_is_asked() -> None:
    pod = make_pod("p").gpus(9, "example.com/unknown")
    calls, verdict = played(cache_of(pod), pod)
    assert calls == []
    assert verdict.why.startswith("0/3 nodes are available: 1 node(s) did not") is False
    assert "2 Insufficient example.com/unknown" in verdict.why


def test_a_recorded_failure_replaces_the_last_one_and_takes_the_nomination() -> None:
    raw = make_pod("p").nominated("n1").attempted("before").build()
    changed = with_failure(raw, "after")
    assert [c["message"] for c in changed["status"]["conditions"]] == ["after"]
    assert "nominatedNodeName" not in changed["status"]
    assert raw["status"]["nominatedNodeName"] == "n1"
