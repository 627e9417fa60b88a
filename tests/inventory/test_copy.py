# SPDX-License-Identifier: Apache-2.0
"""A copy of the inventory: equal, and then untouched by what the other goes through. Its cost is not judged
here (`python -m loadtests.explaining`). The state machine beside this file takes copies on any walk."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.domain.ids import NodeName, PodUid
from app.domain.plan import Plan, Seat
from app.inventory.inventory import ADMISSION_FAILURE, Inventory
from app.inventory.reservations import Phase
from tests.builders import gone, inventory_of, key, make_group, make_node, make_pod, pod_of, seen
from tests.inventory.everything import everything

NODE = make_node("n1").gpus(8).zone("a")
GROUP = make_group("g", 2)
A, B = (make_pod(name).gpus(1).gang("g").gated() for name in "ab")
DONE = make_pod("done").gpus(1).gang("g").on("n1").phase("Succeeded")
RUNS = make_pod("runs").gpus(2).on("n1")
NOMINATED = make_pod("nominated").gpus(1).nominated("n1")
FAILED = make_pod("failed").gpus(1).on("n1").phase("Failed", reason=ADMISSION_FAILURE)


def reserve(inventory: Inventory, uid: str = "uid-b") -> None:
    seat = Seat(PodUid(uid), NodeName("n1"), pod_of(B).template)
    inventory.reserve(Plan(gang=key("g"), seats=(seat,)))


def hold_seat(inventory: Inventory) -> None:
    for booking in inventory.book:
        booking.phase, booking.nominated = Phase.HELD, True


def made() -> Inventory:
    inventory = inventory_of(NODE, GROUP, A, B, DONE, RUNS, NOMINATED, FAILED)
    reserve(inventory, "uid-a")
    everything(inventory)  # all that is remembered has been asked for
    return inventory


@pytest.fixture
def inventory() -> Inventory:
    return made()


CHANGES: dict[str, Callable[[Inventory], object]] = {
    "a node comes": lambda i: i.apply([seen(make_node("n2").gpus(4).zone("a"))]),
    "a node shrinks and moves": lambda i: i.apply([seen(NODE.gpus(7).zone("b"))]),
    "a node is cordoned": lambda i: i.apply([seen(NODE.cordoned())]),
    "a node goes": lambda i: i.apply([gone(NODE)]),
    "a pod comes with a new resource": lambda i: i.apply([seen(RUNS.named("r2").gpus(1, "amd.com/gpu"))]),
    "a pod goes": lambda i: i.apply([gone(RUNS)]),
    "a pod that failed goes": lambda i: i.apply([gone(FAILED)]),
    "a pod is nominated no longer": lambda i: i.apply([seen(make_pod("nominated").gpus(1))]),
    "a member binds": lambda i: i.apply([seen(A.on("n1"))]),
    "a member ends well": lambda i: i.apply([seen(A.on("n1").phase("Succeeded"))]),
    "a member waits for another": lambda i: i.apply([seen(B.gate("other/gate"))]),
    "a member has another priority": lambda i: i.apply([seen(B.priority(7))]),
    "a member tells of an attempt": lambda i: i.apply([seen(B.attempted("0/1 nodes"))]),
    "all members go": lambda i: i.apply([gone(A), gone(B), gone(DONE), gone(GROUP)]),
    "the group asks for more": lambda i: i.apply([seen(make_group("g", 3))]),
    "another gang comes": lambda i: i.apply([seen(make_group("h", 1))]),
    "a seat is reserved": reserve,
    "a seat is given back": lambda i: i.release(PodUid("uid-a")),
    "a seat gets on": hold_seat,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_neither_sees_what_the_other_goes_through(
    inventory: Inventory, change: Callable[..., object]
) -> None:
    before, copy = everything(inventory), inventory.copy()
    assert everything(copy) == before
    change(inventory)
    assert everything(copy) == before
    never_copied = made()
    change(never_copied)
    after = everything(never_copied)
    assert everything(inventory) == after != before
    change(copy)
    assert everything(inventory) == after
    assert everything(copy) == after


def test_a_copy_of_a_copy_and_two_of_one_stay_apart(inventory: Inventory) -> None:
    copies = [inventory.copy()]
    copies += [copies[0].copy(), inventory.copy()]
    before = everything(inventory)
    for one in (copies[1], inventory):
        one.apply([seen(B.priority(7)), seen(make_group("g", 1))])
        assert everything(one) != before
    assert [everything(one) == before for one in copies] == [True, False, True]


def test_a_gang_is_copied_once_and_only_when_it_changes(inventory: Inventory) -> None:
    inventory.apply([seen(make_group("quiet", 1))])
    copy = inventory.copy()
    inventory.apply([seen(B.priority(1))])
    now = inventory.gangs.get(key("g"))
    assert now is not copy.gangs.get(key("g"))
    inventory.apply([seen(B.priority(2))])
    assert inventory.gangs.get(key("g")) is now
    assert inventory.gangs.get(key("quiet")) is copy.gangs.get(key("quiet"))
    inventory.apply([seen(make_group("new", 1))])
    new = inventory.gangs.get(key("new"))
    inventory.apply([seen(make_group("new", 2))])
    assert inventory.gangs.get(key("new")) is new


def test_a_later_plan_has_a_later_number(inventory: Inventory) -> None:
    copy = inventory.copy()
    reserve(copy)
    assert [booking.plan for booking in copy.book] == [1, 2]
