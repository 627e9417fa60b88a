# SPDX-License-Identifier: Apache-2.0
"""Where gangs are seated: cases that a person can check by eye."""

from __future__ import annotations

from collections import Counter

import pytest

from app.domain.plan import Demand, Plan
from app.domain.reasons import Reason, Refusal
from app.planner import search as searching
from app.planner.plan import plan
from tests.builders import GPU, NodeBuilder, PodBuilder, demand, inventory_of, key, make_node, make_pod
from tests.planner.judge import Cluster

MIG = "nvidia.com/mig-1g.10gb"


def workers(count: int, pod: PodBuilder) -> list[PodBuilder]:
    return [pod.named(f"w{i}") for i in range(count)]


def node(name: str, *, free: int, of: int = 8) -> list[NodeBuilder | PodBuilder]:
    """A node with `free` of its GPUs left."""
    used = make_pod(f"on-{name}").gpus(of - free).on(name)
    return [make_node(name).gpus(of), *([used] if free < of else [])]


def seated(cluster: list[NodeBuilder | PodBuilder], asked: Demand) -> dict[str, int]:
    """Seats per node."""
    nodes = [builder for builder in cluster if isinstance(builder, NodeBuilder)]
    pods = [builder for builder in cluster if isinstance(builder, PodBuilder)]
    verdict = plan(inventory_of(*cluster).view(), asked)
    assert isinstance(verdict, Plan), verdict
    Cluster(nodes, pods).check(asked, verdict)
    return dict(Counter(seat.node for seat in verdict.seats))


ONE, TWO, EIGHT = make_pod("w").gpus(1), make_pod("w").gpus(2), make_pod("w").gpus(8)


@pytest.mark.parametrize(
    ("cluster", "asked", "want"),
    [
        pytest.param(
            [*node("n1", free=4), *node("n2", free=4), *node("n3", free=8)],
            demand(*workers(8, ONE)),
            {"n3": 8},
            id="fewest nodes: eight go where eight fit",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=4)],
            demand(*workers(4, ONE)),
            {"n2": 4},
            id="an empty 8-GPU node stays whole when a broken one has room",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=5), *node("n3", free=4), *node("n4", free=6)],
            demand(*workers(4, ONE)),
            {"n3": 4},
            id="of broken nodes the tightest",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=8), *node("n3", free=4)],
            demand(*workers(12, ONE)),
            {"n1": 8, "n3": 4},
            id="the rest of a large gang goes into a broken node too",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=3)],
            demand(*workers(4, ONE)),
            {"n1": 4},
            id="rather one whole node than two",
        ),
        pytest.param(
            [*node("n1", free=7), *node("n2", free=7), *node("n3", free=8)],
            demand(*workers(2, EIGHT.gpus(7))),
            {"n1": 1, "n2": 1},
            id="large members also leave the empty node alone",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=8)],
            demand(*workers(2, EIGHT)),
            {"n1": 1, "n2": 1},
            id="whole nodes when whole nodes are asked for",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=8)],
            demand(*workers(3, ONE)),
            {"n1": 3},
            id="ties go to the first node",
        ),
        pytest.param(
            [*node("n1", free=8), *node("n2", free=6), *node("n3", free=7)],
            demand(*workers(4, ONE.gpus(3))),
            {"n2": 2, "n3": 2},
            id="of nodes that take equally many, those with least to spare are filled",
        ),
        pytest.param(
            [make_node("n1").gpus(5), make_node("n2").gpus(4).gpus(7, MIG)],
            demand(*workers(4, ONE)),
            {"n2": 4},
            id="devices of another kind are nothing to spare",
        ),
        pytest.param(
            [make_node("n1").gpus(8).zone("a"), make_node("n2").gpus(12).zone("b")],
            demand(
                EIGHT.named("large"),
                *(make_pod(f"picky{i}").gpus(4).in_zone("a") for i in range(2)),
                *workers(4, ONE),
                *(make_pod(f"c{i}").cpu("1").in_zone("b") for i in range(10)),
            ),
            {"n1": 2, "n2": 15},
            id="in a gang too large to search, the picky ones choose first when that helps",
        ),
        pytest.param(
            [*node("n1", free=2), *node("n2", free=3)],
            demand(*workers(9, ONE), need=4),
            {"n1": 2, "n2": 3},
            id="as many as fit, when that is enough",
        ),
        pytest.param(
            [*node("n1", free=8), make_node("n2")],
            demand(*workers(3, TWO), make_pod("launcher").cpu("1")),
            {"n1": 3, "n2": 1},
            id="a launcher without devices stays off the GPU node",
        ),
        pytest.param(
            [*node("n1", free=8)],
            demand(*workers(4, TWO), make_pod("launcher").cpu("1")),
            {"n1": 5},
            id="unless there is no other",
        ),
        pytest.param(
            [*node("n1", free=8), make_node("n2").gpus(7, MIG)],
            demand(make_pod("whole").gpus(8), make_pod("slice").gpus(2, MIG)),
            {"n1": 1, "n2": 1},
            id="whole GPUs and MIG instances are different things",
        ),
        pytest.param(
            [make_node("n1").gpus(8).zone("a"), make_node("n2").gpus(4).zone("b")],
            demand(*workers(4, ONE.in_zone("a"))),
            {"n1": 4},
            id="only where the affinity allows",
        ),
        pytest.param(
            [
                make_node("n1").gpus(8).taint("gpu"),
                make_node("n2").gpus(8).cordoned(),
                make_node("n3").gpus(8),
            ],
            demand(*workers(8, ONE)),
            {"n3": 8},
            id="not on tainted or cordoned nodes",
        ),
        pytest.param(
            [make_node("n1").gpus(8).cpu("8"), make_node("n2").gpus(8).cpu("64")],
            demand(*workers(2, ONE.cpu("5"))),
            {"n2": 2},
            id="every resource counts: one node is short of CPU",
        ),
        pytest.param(
            [make_node("n1").gpus(8).pods(2), make_node("n2").gpus(8).pods(3)],
            demand(*workers(3, ONE)),
            {"n2": 3},
            id="so do pod slots",
        ),
        pytest.param(
            [make_node("n1").gpus(8).zone("a"), make_node("n2").gpus(8).zone("b")],
            demand(*workers(1, EIGHT), make_pod("picky").gpus(8).in_zone("a")),
            {"n1": 1, "n2": 1},
            id="the picky member gets the only node it may use",
        ),
        pytest.param(
            [*node("n1", free=1), *node("n2", free=8)],
            demand(*workers(1, EIGHT), make_pod("small").gpus(1), need=1),
            {"n1": 1, "n2": 1},
            id="the large member first, or the small one would break its node",
        ),
        pytest.param(
            [*node("n1", free=8)],
            demand(EIGHT.named("large"), *workers(5, ONE), need=5),
            {"n1": 5},
            id="the small ones when the large one would keep too many out",
        ),
    ],
)
def test_seats(cluster: list[NodeBuilder | PodBuilder], asked: Demand, want: dict[str, int]) -> None:
    assert seated(cluster, asked) == want


@pytest.mark.parametrize(
    ("cluster", "asked", "have"),
    [
        pytest.param([], demand(ONE), 0, id="no nodes"),
        pytest.param([make_node("n1")], demand(ONE), 0, id="no devices of that name anywhere"),
        pytest.param([*node("n1", free=3)], demand(*workers(4, ONE)), 3, id="one too few"),
        pytest.param([*node("n1", free=7)], demand(*workers(1, EIGHT)), 0, id="too few on any one node"),
        pytest.param(
            [*node("n1", free=4), *node("n2", free=4)],
            demand(EIGHT),
            0,
            id="enough in all, but not in one place",
        ),
        pytest.param([*node("n1", free=-2)], demand(ONE), 0, id="a node that is overdrawn"),
        pytest.param(
            [make_node("n1").gpus(8)],
            demand(EIGHT.named("a"), make_pod("b").gpus(1)),
            1,
            id="either, not both",
        ),
        pytest.param(
            [make_node("n1").gpus(8)],
            demand(EIGHT.named("a"), *workers(3, TWO)),
            3,
            id="the most that fit together",
        ),
    ],
)
def test_no_seats(cluster: list[NodeBuilder | PodBuilder], asked: Demand, have: int) -> None:
    verdict = plan(inventory_of(*cluster).view(), asked)
    assert verdict == Refusal(Reason.BUSY, gang=key("train"), have=have, need=asked.need)


def test_what_is_reserved_is_not_given_twice() -> None:
    inventory = inventory_of(make_node("n1").gpus(8))
    first = plan(inventory.view(), demand(EIGHT, gang="first"))
    assert isinstance(first, Plan)
    inventory.reserve(first)
    second = demand(EIGHT.named("x"), gang="second")
    assert isinstance(plan(inventory.view(), second), Refusal)
    inventory.release(first.seats[0].uid)
    assert isinstance(plan(inventory.view(), second), Plan)


def test_constraints_that_only_the_scheduler_can_judge_do_not_keep_a_gang_from_its_seats() -> None:
    assert seated([make_node("n1").gpus(8)], demand(*workers(2, ONE.volume_claim().host_port(80)))) == {
        "n1": 2
    }


def test_planning_changes_nothing() -> None:
    inventory = inventory_of(make_node("n1").gpus(4), make_node("n2").gpus(4))
    view = inventory.view()
    before = view.free.copy()
    plan(view, demand(*workers(3, TWO), make_pod("x").gpus(1), make_pod("y").gpus(3)))
    assert (view.free == before).all()
    assert len(inventory.book) == 0


def test_a_large_gang() -> None:
    cluster = [make_node(f"n{i}").gpus(8) for i in range(100)]
    seats = seated([*cluster], demand(*workers(512, ONE)))
    assert sorted(seats.values()) == [8] * 64


# -- the search


TIGHT = [make_node("n1").gpus(8).cpu("8"), make_node("n2").gpus(7).cpu("5")]
CROSSED = [
    make_pod("a").gpus(2).cpu("3"),
    make_pod("b").gpus(4).cpu("2"),
    make_pod("c").gpus(1).cpu("4"),
    make_pod("d").gpus(4).cpu("3"),
]


def test_the_search_finds_what_packing_one_template_after_another_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = inventory_of(*TIGHT).view()
    found = plan(view, demand(*CROSSED))
    assert isinstance(found, Plan)
    Cluster(TIGHT).check(demand(*CROSSED), found)
    monkeypatch.setattr("app.planner.plan.search", lambda view, members, *, need: [])
    assert isinstance(plan(view, demand(*CROSSED)), Refusal), "or this case shows nothing"


def test_the_search_also_finds_enough_when_not_all_can_be_seated() -> None:
    asked = demand(*CROSSED, make_pod("huge").gpus(16), need=4)
    found = plan(inventory_of(*TIGHT).view(), asked)
    assert isinstance(found, Plan)
    Cluster(TIGHT).check(asked, found)


def test_the_search_gives_up_rather_than_run_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "STEPS", 1)
    assert isinstance(plan(inventory_of(*TIGHT).view(), demand(*CROSSED)), Refusal)


def test_the_search_is_not_begun_for_large_gangs() -> None:
    count = searching.MOST_MEMBERS + 1
    members = demand(*(make_pod(f"p{i}").requests({GPU: str(i + 1)}) for i in range(count))).members
    assert searching.search(inventory_of(make_node("n1").gpus(500)).view(), list(members), need=1) == []
