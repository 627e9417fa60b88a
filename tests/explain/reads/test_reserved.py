# SPDX-License-Identifier: Apache-2.0
"""Read 1, what is kept for others: reservations and nominations."""

from __future__ import annotations

from app.domain.ids import GangApi, GangKey, NodeName, PodUid
from app.domain.plan import Plan, Seat
from app.explain.case import Case
from app.explain.finding import Evidence
from app.explain.reads.reserved import kept_for_nominated, reserved_for_others
from tests.builders import GPU, PodBuilder, make_group, make_node, make_pod, pod_of
from tests.explain.looking import case, found, texts

POD = make_pod("w0").gpus(8)
NODE = make_node("n1").gpus(8)
MEMBER = make_pod("g0").gpus(8).gang("other")


def reserved(waiting: PodBuilder, *, gang: str = "other") -> Case:
    """One seat on n1 for the member g0."""
    made = case("pod/w0", waiting, NODE, MEMBER, make_group("other", 1), make_group("own", 1))
    member = pod_of(MEMBER)
    seat = Seat(uid=PodUid(member.uid), node=NodeName("n1"), template=member.template)
    made.inventory.reserve(Plan(gang=GangKey(GangApi.LABEL, "default", gang), seats=(seat,)))
    return made


def test_gangs_with_seats_are_named() -> None:
    findings = reserved_for_others(reserved(POD))
    assert texts(findings) == [
        "8 nvidia.com/gpu are reserved for others where the pods may go: gang default/other (8)"
    ]
    assert findings[0].evidence == (Evidence("node/n1", GPU, "8 for default/other"),)


def test_own_seats_and_seats_that_bind_only_others_are_not_in_the_way() -> None:
    assert not reserved_for_others(reserved(POD.gang("own"), gang="own"))
    assert not reserved_for_others(reserved(POD.scheduler("default-scheduler")))
    assert not reserved_for_others(reserved(POD.selector({"zone": "a"})))


def test_a_seat_of_a_pod_that_is_being_bound() -> None:
    made = case("pod/w0", POD, NODE, MEMBER)
    member = pod_of(MEMBER)
    made.inventory.hold(Seat(uid=PodUid(member.uid), node=NodeName("n1"), template=member.template))
    assert texts(reserved_for_others(made)) == [
        "8 nvidia.com/gpu are reserved for others where the pods may go: pods being bound (8)"
    ]


def test_nominated_pods_are_named() -> None:
    ghost = make_pod("ghost").gpus(8).nominated("n1")
    findings = found(kept_for_nominated, "pod/w0", POD, NODE, ghost)
    assert texts(findings) == [
        "8 nvidia.com/gpu are kept for 1 pod nominated to nodes where the pods may go: pod default/ghost (8)"
    ]
    assert findings[0].evidence == (Evidence("pod/default/ghost", ".status.nominatedNodeName", "n1"),)


def test_nominations_that_take_nothing_from_the_pod() -> None:
    ghost = make_pod("ghost").gpus(8).nominated("n1")
    full = make_pod("x").gpus(8).on("n1")
    assert not found(kept_for_nominated, "pod/w0", POD.priority(5), NODE, full, ghost)
    assert not found(kept_for_nominated, "pod/w0", POD.nominated("n1"), NODE, full)
    assert not found(kept_for_nominated, "pod/w0", POD, NODE, full, make_pod("c").cpu("1").nominated("n1"))
    assert not found(
        kept_for_nominated, "pod/w0", POD, NODE, full, NODE.named("n2").cordoned(), ghost.nominated("n2")
    )
