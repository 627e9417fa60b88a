# SPDX-License-Identifier: Apache-2.0
"""Read 3, who is before it: earlier gangs, reservations, nominations, priorities."""

from __future__ import annotations

from msgspec import structs

from app.domain.plan import Plan, Seat
from app.domain.reasons import Reason, Refusal
from app.explain.facts import Facts
from app.explain.finding import Evidence, Finding
from app.explain.reads.ahead import earlier_gangs, higher_priority_waits, nominated_pods, reserved_for_others
from app.explain.report import Subject
from app.explain.resolve import resolve
from tests.builders import GPU, GroupBuilder, PodBuilder, key, make_group, make_node, make_pod, pod_of
from tests.explain.looking import facts, found, texts

NODE = make_node("n1").gpus(8)
HOLDER = make_pod("x").gpus(8).on("n1")


def gang(name: str, created: str) -> tuple[GroupBuilder, PodBuilder]:
    return make_group(name, 1).created(created), make_pod(f"{name}-0").gpus(8).gang(name).gated()


FIRST, SECOND = gang("first", "2026-01-01T00:00:00Z"), gang("second", "2026-01-01T00:05:00Z")


def test_gangs_that_are_before_it() -> None:
    (finding,) = found(earlier_gangs, "podgroup/second", NODE, HOLDER, *FIRST, *SECOND)
    assert finding.text == "1 gang that waits for the same is before this one in the order: default/first"
    assert finding.evidence == (
        Evidence(
            "podgroup.scheduling.x-k8s.io/default/second", "priority", "0, created 2026-01-01T00:05:00Z"
        ),
        Evidence("podgroup.scheduling.x-k8s.io/default/first", "priority", "0, created 2026-01-01T00:00:00Z"),
    )
    assert not found(earlier_gangs, "podgroup/first", NODE, HOLDER, *FIRST, *SECOND)


def test_priority_comes_before_age_and_the_gang_that_muster_names_comes_first() -> None:
    third_group, third = gang("third", "2026-01-01T00:09:00Z")
    objects = (NODE, HOLDER, *FIRST, *SECOND, third_group, third.priority(10))
    assert texts(found(earlier_gangs, "podgroup/second", *objects)) == [
        "2 gangs that wait for the same are before this one in the order: default/third and default/first"
    ]

    def behind(key: object) -> Refusal:
        return Refusal(reason=Reason.BEHIND, subject="default/first")

    assert texts(found(earlier_gangs, "podgroup/second", *objects, refusal=behind)) == [
        "2 gangs that wait for the same are before this one in the order: default/first and default/third"
    ]


def test_gangs_that_ask_for_something_else_or_cannot_start_are_not_before_it() -> None:
    group, member = FIRST
    other = member.gpus(0).gpus(1, "amd.com/gpu")
    assert not found(earlier_gangs, "podgroup/second", NODE, HOLDER, group, other, *SECOND)
    assert not found(earlier_gangs, "podgroup/second", NODE, HOLDER, group.minimum(2), member, *SECOND)
    assert not found(earlier_gangs, "podgroup/second", NODE, HOLDER, member, *SECOND)
    assert not found(earlier_gangs, "podgroup/second", NODE, *FIRST, *SECOND), "it fits"
    lacking = (SECOND[0].minimum(2), SECOND[1])
    assert not found(earlier_gangs, "podgroup/second", NODE, HOLDER, *FIRST, *lacking), (
        "it is not in the line"
    )


def reserving(*objects: PodBuilder | GroupBuilder, holder: PodBuilder) -> Facts:
    seen = facts(NODE, *objects)
    pod = pod_of(holder)
    assert pod.gang is not None
    seat = Seat(uid=pod.uid, node=pod_of(HOLDER).node or "", template=pod.template)  # type: ignore[arg-type]
    seen.inventory.reserve(Plan(gang=pod.gang, seats=(seat,)))
    return seen


def test_seats_that_are_reserved_for_others() -> None:
    seen = reserving(*FIRST, *SECOND, holder=FIRST[1])
    findings: list[Finding] = reserved_for_others(resolve(seen, Subject("podgroup", "default", "second")))
    assert texts(findings) == [
        "8 nvidia.com/gpu on nodes that it may use are reserved for gang default/first (waiting)"
    ]
    assert findings[0].evidence == (
        Evidence("podgroup.scheduling.x-k8s.io/default/first", f"reserved {GPU}", "8"),
    )
    assert not reserved_for_others(resolve(seen, Subject("podgroup", "default", "first"))), "its own seats"
    assert seen.inventory.book.count(key("first")) == 1


def test_a_gang_of_one_is_called_a_pod_and_what_nobody_reserved_yet_is_said_so() -> None:
    one = make_pod("one").gpus(8).gated()
    seen = structs.replace(reserving(one, *SECOND, holder=one), supposed=True)
    (finding,) = reserved_for_others(resolve(seen, Subject("podgroup", "default", "second")))
    assert finding.text == (
        "8 nvidia.com/gpu on nodes that it may use would be reserved first for pod default/one"
    )
    assert finding.evidence[0].object == "pod/default/one"


def test_nominated_pods_count_as_placed() -> None:
    ghost = make_pod("ghost").gpus(8).nominated("n1").scheduler("default-scheduler")
    (finding,) = found(nominated_pods, "podgroup/first", NODE, ghost, *FIRST)
    assert finding.text == ("1 unbound pod counts as placed by a nominatedNodeName: default/ghost on n1")
    assert finding.evidence == (Evidence("pod/default/ghost", ".status.nominatedNodeName", "n1"),)
    assert not found(nominated_pods, "podgroup/first", NODE, HOLDER, ghost.gpus(0), *FIRST)
    assert not found(nominated_pods, "podgroup/first", NODE, HOLDER, ghost.priority(-1), *FIRST)


def test_pods_of_higher_priority_for_other_schedulers() -> None:
    pod = make_pod("w").gpus(8).scheduler("default-scheduler")
    above = pod.named("vip").priority(1000)
    (finding,) = found(higher_priority_waits, "pod/w", NODE, HOLDER, pod, above)
    assert finding.text == "1 pod waits for the same devices with a higher priority than 0"
    assert finding.evidence == (Evidence("pod/default/vip", ".spec.priority", "1000"),)
    assert not found(higher_priority_waits, "pod/vip", NODE, HOLDER, pod, above)
    assert not found(higher_priority_waits, "pod/w", NODE, HOLDER, pod, above.gated())
    assert not found(higher_priority_waits, "pod/w", NODE, HOLDER, pod, above.gpus(0))
    assert not found(higher_priority_waits, "pod/w", NODE, pod, above), "it fits"
