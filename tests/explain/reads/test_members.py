# SPDX-License-Identifier: Apache-2.0
"""Read 3, members: those that exist, those that will never, and what keeps them from counting."""

from __future__ import annotations

from app.explain.finding import Evidence, Weight
from app.explain.reads.members import (
    foreign_gate,
    members_missing,
    members_succeeded,
    more_than_minimum,
    ordered_ready,
    priorities_mixed,
)  # fmt: skip
from tests.builders import make_group, make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import ended, job, of, stateful_set

GROUP = make_group("train", 4)
JOB = job("train", 2, gang="train")
W0, W1, W2, W3 = (of(JOB, make_pod(f"w{i}").gang("train").gated()) for i in range(4))


def test_a_job_that_will_never_create_enough() -> None:
    (finding,) = found(members_missing, "podgroup/train", GROUP, JOB, W0, W1)
    assert finding.text == (
        "the gang needs 4 members and has 2:"
        " job train (parallelism 2, completions 2) will never create enough"
    )
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (
        Evidence("job/default/train", ".spec", "parallelism 2, completions 2; 2 there"),
    )


def test_completions_bound_a_job_too() -> None:
    few = job("train", 8, gang="train", completions=3)
    assert texts(found(members_missing, "podgroup/train", GROUP, few)) == [
        "the gang needs 4 members and has 0: job train (parallelism 8, completions 3) will never create"
        " enough"
    ]


def test_members_that_are_still_to_come() -> None:
    enough = job("train", 4, gang="train")
    assert texts(found(members_missing, "job/train", GROUP, enough, W0)) == [
        "the gang needs 4 members and has 1:"
        " job train (parallelism 4, completions 4) has not created them yet"
    ]


def test_an_ended_or_suspended_job_is_told_so() -> None:
    assert texts(found(members_missing, "podgroup/train", GROUP, ended(JOB, "Complete"))) == [
        "the gang needs 4 members and has 0: job train (has ended) will never create enough"
    ]
    assert texts(found(members_missing, "podgroup/train", GROUP, JOB.set("spec.suspend", True))) == [
        "the gang needs 4 members and has 0: job train (is suspended) will never create enough"
    ]


def test_nobody_creates_members() -> None:
    (finding,) = found(members_missing, "podgroup/train", GROUP, make_pod("w0").gang("train").gated())
    assert finding.text == "the gang needs 4 members and has 1: nothing was found that would create more"
    assert finding.evidence == ()


def test_a_complete_gang_misses_nobody() -> None:
    assert not found(members_missing, "podgroup/train", GROUP, W0, W1, W2, W3)
    assert not found(members_missing, "podgroup/train", GROUP, W0.gate("a.b/c"), W1, W2, W3.on("n1"))
    assert not found(members_missing, "pod/w0", W0), "without a PodGroup there is no minimum"


def test_where_nobody_waits_for_the_whole_missing_members_do_not_block() -> None:
    (finding,) = found(members_missing, "podgroup/train", GROUP, W0.scheduler("default-scheduler"))
    assert finding.weight is Weight.WARNS


def test_an_ordered_stateful_set_waits_for_its_first_pod() -> None:
    owner = stateful_set("ps", 4, gang="train")
    first = of(owner, make_pod("ps-0").gang("train").gated())
    (finding,) = found(ordered_ready, "podgroup/train", GROUP, owner, first)
    assert finding.text == (
        "statefulset ps creates one pod after the other, each once the one before is Ready:"
        " the gang can never have 4 members that wait together"
    )
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence == (
        Evidence("statefulset/default/ps", ".spec.podManagementPolicy", "OrderedReady"),
    )
    parallel = owner.set("spec.podManagementPolicy", "Parallel")
    assert not found(ordered_ready, "podgroup/train", GROUP, parallel, first)
    assert not found(ordered_ready, "podgroup/train", make_group("train", 1), owner, first)
    assert not found(ordered_ready, "podgroup/train", GROUP, JOB, W0)
    small = owner.set("spec.replicas", 1)
    assert not found(ordered_ready, "podgroup/train", GROUP, small, first), "it has all it is to create"


def test_gates_of_others() -> None:
    held = [pod.gate("kueue.x-k8s.io/admission") for pod in (W0, W1)]
    (finding,) = found(foreign_gate, "podgroup/train", GROUP, *held, W2, W3)
    assert finding.text == "gate kueue.x-k8s.io/admission (Kueue) holds 2 of 4 waiting pods"
    assert finding.weight is Weight.BLOCKS
    assert finding.evidence[0] == Evidence(
        "pod/default/w0", ".spec.schedulingGates", "kueue.x-k8s.io/admission"
    )
    assert texts(found(foreign_gate, "pod/x", make_pod("x").gate("example.com/q"))) == [
        "gate example.com/q holds pod x"
    ]
    assert not found(foreign_gate, "podgroup/train", GROUP, W0, W1, W2, W3)


def test_a_gate_on_a_member_that_is_not_needed_only_warns() -> None:
    objects = (make_group("train", 3), W0.gate("a.b/c"), W1, W2, W3)
    assert found(foreign_gate, "podgroup/train", *objects)[0].weight is Weight.WARNS
    assert found(foreign_gate, "pod/w1", *objects)[0].weight is Weight.WARNS
    assert found(foreign_gate, "pod/w0", *objects)[0].weight is Weight.BLOCKS


def test_mixed_priorities() -> None:
    (finding,) = found(priorities_mixed, "podgroup/train", GROUP, W0, W1, W2.priority(100))
    assert finding.text == (
        "members have the priorities 0 (2 members) and 100 (1 member): the lowest counts for the whole gang"
    )
    assert [one.value for one in finding.evidence] == ["0", "100"]
    assert not found(priorities_mixed, "podgroup/train", GROUP, W0, W1)


def test_succeeded_members_of_an_earlier_run() -> None:
    old = W0.phase("Succeeded")
    assert texts(found(members_succeeded, "podgroup/train", GROUP, old, W1)) == [
        "1 member of this gang ended well and no member runs: they belong to an earlier run and do not count"
    ]
    assert not found(members_succeeded, "podgroup/train", GROUP, old, W1, W2.on("n1"))
    assert not found(members_succeeded, "podgroup/train", GROUP, old)


def test_members_beyond_the_minimum() -> None:
    (finding,) = found(
        more_than_minimum, "podgroup/train", make_group("train", 2), W0.on("n1"), W1.on("n1"), W2
    )
    assert finding.text == "the minimum is 2 of 3 members: 1 more may wait while the gang runs"
    assert not found(more_than_minimum, "podgroup/train", make_group("train", 3), W0, W1, W2)
    assert not found(
        more_than_minimum, "podgroup/train", make_group("train", 2), W0.on("n"), W1.on("n"), W2.on("n")
    )
