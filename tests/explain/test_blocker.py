# SPDX-License-Identifier: Apache-2.0
"""The sentence that a waiting gang shows: each reason, reached the way a user would reach it."""

from __future__ import annotations

import pytest

from app.domain.plan import Demand, Member, Plan
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import blocker, unplannable
from app.inventory.inventory import Inventory
from app.planner.plan import plan
from tests.builders import (
    GPU,
    Builder,
    GroupBuilder,
    NodeBuilder,
    PodBuilder,
    demand,
    inventory_of,
    key,
    make_group,
    make_node,
    make_pod,
    pod_of,
)

GROUP = make_group("train", 3)


def member(name: str) -> PodBuilder:
    return make_pod(name).gpus(8).gang("train").gated()


A, B, C = (member(name) for name in "abc")


def why_unplannable(*builders: Builder) -> Refusal | None:
    gang = inventory_of(*builders).gangs.get(key("train"))
    assert gang is not None
    return unplannable(gang)


def why(inventory: Inventory, asked: Demand) -> Refusal:
    found = plan(inventory.view(priority=asked.priority, gang=asked.gang), asked)
    assert isinstance(found, Refusal), "a gang that fits has no blocker"
    return blocker(inventory, asked, found)


def reserve(inventory: Inventory, asked: Demand) -> None:
    found = plan(inventory.view(), asked)
    assert isinstance(found, Plan)
    inventory.reserve(found)


# -- the gang itself


@pytest.mark.parametrize(
    ("builders", "reason", "text"),
    [
        pytest.param(
            [A, B, C],
            Reason.NO_POD_GROUP,
            "gang default/train has no PodGroup yet: create it in the same namespace",
            id="no PodGroup",
        ),
        pytest.param(
            [A, B, C, make_group("train", 3, "elsewhere"), make_group("train", 3).native()],
            Reason.NO_POD_GROUP,
            "gang default/train has no PodGroup yet: create it in the same namespace",
            id="a PodGroup of another namespace or of the other API does not help",
        ),
        pytest.param(
            [GROUP, A, B],
            Reason.INCOMPLETE,
            "gang default/train has 2 of 3 members",
            id="a member is missing",
        ),
        pytest.param(
            [GROUP, A, B, C.deleting()],
            Reason.INCOMPLETE,
            "gang default/train has 2 of 3 members",
            id="a member is being deleted",
        ),
        pytest.param(
            [GROUP, A, B, C.scheduler("default-scheduler")],
            Reason.INCOMPLETE,
            "gang default/train has 2 of 3 members",
            id="a member is for another scheduler",
        ),
        pytest.param(
            [GROUP, A, B, C.gate("example.com/quota")],
            Reason.FOREIGN_GATE,
            "gang default/train has 2 of 3 members ready: pod c is held by gate example.com/quota",
            id="a member is held by a foreign gate",
        ),
        pytest.param(
            [GROUP, A, C.gate("example.com/quota"), B.gate("example.com/other")],
            Reason.FOREIGN_GATE,
            "gang default/train has 1 of 3 members ready: pod b is held by gate example.com/other",
            id="two are: the first is named",
        ),
        pytest.param(
            [GROUP, A, B.gate("example.com/quota")],
            Reason.INCOMPLETE,
            "gang default/train has 1 of 3 members",
            id="a foreign gate is not the trouble as long as members are missing anyway",
        ),
    ],
)
def test_a_gang_that_cannot_start(builders: list[Builder], reason: Reason, text: str) -> None:
    refusal = why_unplannable(*builders)
    assert refusal is not None
    assert (refusal.reason, refusal.text) == (reason, text)


@pytest.mark.parametrize(
    "builders",
    [
        pytest.param([GROUP, A, B, C], id="complete"),
        pytest.param([GROUP, A, B, C, member("d").gate("x/y")], id="complete without the one that is gated"),
        pytest.param([GROUP, A.on("n1"), B.on("n1"), C], id="two are running already"),
    ],
)
def test_a_gang_that_can_start_has_no_such_reason(builders: list[Builder]) -> None:
    assert why_unplannable(*builders) is None


# -- never fits


EIGHT = [make_node("n1").gpus(8), make_node("n2").gpus(8)]
WORKER = make_pod("w")


@pytest.mark.parametrize(
    ("nodes", "asked", "subject"),
    [
        pytest.param(
            EIGHT,
            demand(A, B, C),
            "an empty cluster would have seats for 2 of 3 members",
            id="the cluster is too small for the gang",
        ),
        pytest.param(
            EIGHT,
            demand(WORKER.gpus(16)),
            "a member requests 16 nvidia.com/gpu and the largest node has 8",
            id="no node is large enough for a member",
        ),
        pytest.param(
            [node.cpu("96").memory("1Ti") for node in EIGHT],
            demand(WORKER.gpus(1).requests({"memory": "2Ti"})),
            "a member requests 2048Gi memory and the largest node has 1024Gi",
            id="memory is told in Gi",
        ),
        pytest.param(
            EIGHT,
            demand(WORKER.gpus(1).cpu("64500m")),
            "a member requests 64.5 cpu and the largest node has 64",
            id="cpu is told in cores",
        ),
        pytest.param(
            EIGHT,
            demand(WORKER.gpus(1, "nvidia.com/mig-1g.10gb")),
            "a member requests 1 nvidia.com/mig-1g.10gb and no node has any",
            id="nobody has such a device",
        ),
        pytest.param(
            EIGHT,
            demand(WORKER.gpus(1).selector({"disk": "ssd"})),
            "no node matches the selector and affinity of a member",
            id="no node is allowed",
        ),
        pytest.param(
            [node.taint("team") for node in EIGHT],
            demand(WORKER.gpus(1)),
            "every node that a member may choose is tainted, cordoned or not ready",
            id="all nodes are tainted",
        ),
        pytest.param(
            [EIGHT[0].cordoned(), EIGHT[1].not_ready()],
            demand(WORKER.gpus(1)),
            "every node that a member may choose is tainted, cordoned or not ready",
            id="no node is in order",
        ),
        pytest.param(
            [make_node("n1").gpus(8).cpu("8"), make_node("n2").gpus(1).cpu("64")],
            demand(WORKER.gpus(8).cpu("32")),
            "no node that a member may use could hold it even when empty",
            id="one node has the devices, another the CPU",
        ),
        pytest.param(
            [make_node("n1").gpus(8).zone("a"), make_node("n2").gpus(1).zone("b")],
            demand(WORKER.gpus(8).in_zone("b")),
            "a member requests 8 nvidia.com/gpu and the largest node it may use has 1",
            id="the large node is in the other zone",
        ),
    ],
)
def test_never_fits(nodes: list[NodeBuilder], asked: Demand, subject: str) -> None:
    refusal = why(inventory_of(*nodes), asked)
    assert refusal.reason is Reason.NEVER_FITS
    assert refusal.text == f"gang default/train can never fit: {subject}"


def test_never_fits_comes_before_who_is_in_the_way() -> None:
    inventory = inventory_of(*EIGHT, make_pod("q").gpus(8).on("n1"))
    reserve(inventory, demand(WORKER.gpus(8), gang="first"))
    assert why(inventory, demand(A, B, C)).reason is Reason.NEVER_FITS


@pytest.mark.parametrize(
    ("nodes", "asked"),
    [
        pytest.param([make_node("n1").gpus(8)], (5, 6), id="more in all than there is"),
        pytest.param([make_node("n1").gpus(8), make_node("n2").gpus(4)], (3, 3, 6), id="every way was tried"),
    ],
)
def test_unlike_members_never_fit_only_with_a_proof(nodes: list[NodeBuilder], asked: tuple[int, ...]) -> None:
    inventory = inventory_of(*nodes)
    refusal = why(inventory, demand(*(make_pod(f"p{n}").gpus(a) for n, a in enumerate(asked))))
    assert refusal.reason is Reason.NEVER_FITS


def test_without_a_proof_no_packing_was_found() -> None:
    """Unlike members, more than are searched for: 17 take 6 of 8 GPUs each, but only 16 nodes are there."""
    nodes = [make_node(f"n{n}").gpus(8) for n in range(16)]
    pods = [make_pod(f"p{n}").gpus(6).cpu("1" if n % 2 else "2") for n in range(17)]
    refusal = why(inventory_of(*nodes), demand(*pods))
    assert refusal.reason is Reason.NO_PACKING
    assert refusal.text == (
        "gang default/train found no packing, not even on an empty cluster, which is no proof:"
        " an empty cluster would have seats for 16 of 17 members"
    )


# -- behind


def test_behind_the_gang_whose_seats_make_the_difference() -> None:
    inventory = inventory_of(*EIGHT)
    reserve(inventory, demand(WORKER.gpus(8), gang="first"))
    refusal = why(inventory, demand(A, B))
    assert (refusal.reason, refusal.have, refusal.need) == (Reason.BEHIND, 1, 2)
    assert refusal.text == "gang default/train waits behind gang default/first"


def test_behind_the_earliest_of_several() -> None:
    inventory = inventory_of(*EIGHT)
    for name in ("zebra", "ant"):
        reserve(inventory, demand(WORKER.named(name).gpus(8), gang=name))
    assert why(inventory, demand(A, B)).subject == "default/zebra"


def test_not_behind_a_gang_that_makes_no_difference() -> None:
    inventory = inventory_of(*EIGHT, make_pod("q").gpus(8).on("n1"), make_pod("launcher").cpu("1"))
    reserve(inventory, demand(make_pod("launcher").cpu("1"), gang="first"))
    assert why(inventory, demand(A, B)).reason is Reason.BUSY


def test_an_ordinary_pod_being_bound_is_no_gang_to_wait_behind() -> None:
    inventory = inventory_of(*EIGHT)
    found = plan(inventory.view(), demand(WORKER.gpus(8)))
    assert isinstance(found, Plan)
    inventory.hold(found.seats[0])
    assert why(inventory, demand(A, B)).reason is Reason.BUSY


def test_a_gang_does_not_wait_behind_itself() -> None:
    inventory = inventory_of(*EIGHT, make_pod("q").gpus(8).on("n1"))
    reserve(inventory, demand(A))
    assert why(inventory, demand(B)).reason is Reason.BUSY


# -- busy


def test_busy_names_what_is_short_and_who_holds_most() -> None:
    holders = [
        make_pod("h1").gpus(4).gang("eval").on("n1"),
        make_pod("h2").gpus(4).gang("eval").on("n2"),
        make_pod("solo", "team").gpus(3).on("n2"),
        make_pod("small").gpus(1).on("n1"),
        make_pod("done").gpus(8).on("n1").phase("Succeeded"),
        make_pod("cpu").cpu("1").on("n1"),
    ]
    refusal = why(inventory_of(*EIGHT, *holders), demand(A, B))
    assert (refusal.reason, refusal.have, refusal.need) == (Reason.BUSY, 0, 2)
    assert refusal.text == (
        "gang default/train has seats for 0 of 2 members: "
        "4 of 16 nvidia.com/gpu free; gang default/eval holds 8, pod team/solo holds 3"
    )


def test_a_gang_of_one_that_holds_something_is_called_a_pod() -> None:
    solo = make_pod("solo", "team").gpus(8).gated()
    bound = solo.set("spec.nodeName", "n1").phase("Running")
    assert pod_of(bound).single
    assert "pod team/solo holds 8" in why(inventory_of(*EIGHT, bound), demand(A, B)).text


def test_equal_holders_come_in_the_order_of_their_names() -> None:
    holders = [make_pod(name).gpus(5).on(node) for name, node in (("z", "n1"), ("y", "n2"))]
    assert (
        "pod default/y holds 5, pod default/z holds 5" in why(inventory_of(*EIGHT, *holders), demand(A)).text
    )


def test_busy_with_nobody_holding_it_for_the_nominations_of_others() -> None:
    nominated = [make_pod(f"x{i}").gpus(8).priority(9).nominated(f"n{i}") for i in (1, 2)]
    refusal = why(inventory_of(*EIGHT, *nominated), demand(A))
    assert (refusal.reason, refusal.subject) == (
        Reason.BUSY,
        "16 of 16 nvidia.com/gpu free, 16 of them for nominated pods",
    )


@pytest.mark.parametrize(
    ("holder", "asked", "said"),
    [
        pytest.param(
            make_pod("h").requests({"memory": "500Gi"}).on("n1"),
            demand(WORKER.cpu("1").requests({"memory": "100Gi"})),
            "12Gi of 512Gi memory free; pod default/h holds 500Gi",
            id="a gang without devices, short of memory",
        ),
        pytest.param(
            make_pod("h").cpu("63500m").on("n1"),
            demand(WORKER.cpu("1").requests({"memory": "1Gi"})),
            "0.5 of 64 cpu free; pod default/h holds 63.5",
            id="a gang without devices, short of CPU",
        ),
        pytest.param(
            make_pod("h").cpu("60").on("n1"),
            demand(WORKER.gpus(1).cpu("8")),
            "4 of 64 cpu free; pod default/h holds 60",
            id="devices are free, but not the CPU to go with them",
        ),
        pytest.param(
            make_pod("h").gpus(8).cpu("60").on("n1"),
            demand(WORKER.gpus(1).cpu("8")),
            "0 of 8 nvidia.com/gpu free; pod default/h holds 8",
            id="both are short: the device is named",
        ),
    ],
)
def test_busy_names_the_resource_that_is_short(holder: PodBuilder, asked: Demand, said: str) -> None:
    assert why(inventory_of(make_node("n1").gpus(8), holder), asked).subject == said


def test_asking_changes_nothing() -> None:
    inventory = inventory_of(*EIGHT, make_pod("h").gpus(8).on("n1"))
    reserve(inventory, demand(WORKER.gpus(8), gang="first"))
    before = (len(inventory.book), inventory.view().free.tolist(), list(inventory.columns.generation))
    why(inventory, demand(A, B))
    assert (len(inventory.book), inventory.view().free.tolist(), list(inventory.columns.generation)) == before


def test_the_gang_of_the_question_is_not_in_its_own_way() -> None:
    nominated = A.nominated("n1")
    inventory = inventory_of(make_node("n1").gpus(8), nominated)
    pod = pod_of(nominated)
    asked = Demand(gang=key("train"), members=(Member(pod.uid, pod.template),), need=1)
    assert isinstance(plan(inventory.view(gang=asked.gang), asked), Plan)
    assert GPU in dict(pod.template.requests)


def test_groups_are_told_by_api_only_in_their_key() -> None:
    group: GroupBuilder = make_group("train", 3).native()
    gang = inventory_of(group).gangs.get(key("train", native=True))
    assert gang is not None
    refusal = unplannable(gang)
    assert refusal is not None
    assert refusal.text == "gang default/train has 0 of 3 members"
