# SPDX-License-Identifier: Apache-2.0
"""Filter calls: a member gets its seat or a sentence, an ordinary pod keeps off what is reserved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import pytest

from app.domain.ids import PodUid
from app.domain.reasons import Reason
from app.extender.timing import Timing
from tests.builders import (
    GPU,
    PodBuilder,
    filter_body,
    full_filter_body,
    make_group,
    make_node,
    make_pod,
)
from tests.extender.conftest import Make, seats
from tests.extender.world import World


def member(name: str, gpus: int = 1) -> PodBuilder:
    return make_pod(name).gpus(gpus).gang("g")


@contextmanager
def nothing_moves(world: World) -> Iterator[None]:
    """No seat is given, moved or lost in between."""
    before = seats(world)
    yield
    assert seats(world) == before


# -- a member with a seat


def test_a_member_is_sent_to_its_seat_alone(make: Make) -> None:
    world = make(
        make_node("n1").gpus(2), make_node("n2").gpus(2), make_group("g", 2), member("a"), member("b")
    )
    answers = [world.filter(name, ["n1", "n2"]) for name in "ab"]
    assert [answer["NodeNames"] for answer in answers] == [["n1"], ["n1"]], "packed on the fewest nodes"
    assert all(not answer["FailedNodes"] and not answer["Error"] for answer in answers)


@pytest.fixture
def spread(make: Make) -> World:
    """Two members with one seat each on n1 and n2; n3 is not there yet."""
    world = make(
        make_node("n1").gpus(1), make_node("n2").gpus(1), make_group("g", 2), member("a"), member("b")
    )
    world.service.rounds.call(world.service.inventory.pods[PodUid("uid-a")].gang)  # type: ignore[arg-type]
    assert seats(world) == {"a": "n1", "b": "n2"}
    return world


def test_a_probe_of_the_nominated_node_neither_swaps_nor_counts(spread: World) -> None:
    spread.put(member("a").nominated("n2"))
    with nothing_moves(spread):
        for _ in range(20):
            answer = spread.filter("a", ["n2"])
            assert answer["NodeNames"] == []
            assert answer["FailedAndUnresolvableNodes"] == {
                "n2": Reason.NOT_OFFERED.sentence.format(gang="default/g")
            }
    assert spread.filter("a", ["n1", "n2"])["NodeNames"] == ["n1"], "the full offer follows"


def test_a_probe_of_the_seat_is_answered_with_it(spread: World) -> None:
    spread.put(member("a").nominated("n1"))
    assert spread.filter("a", ["n1"])["NodeNames"] == ["n1"]


def test_a_member_swaps_with_an_equal_one_whose_seat_was_offered(spread: World) -> None:
    assert spread.filter("a", ["n2"])["NodeNames"] == ["n2"]
    assert seats(spread) == {"a": "n2", "b": "n1"}
    assert spread.filter("b", ["n1", "n2"])["NodeNames"] == ["n1"]


def test_a_seat_that_was_answered_is_not_swapped_away(spread: World) -> None:
    assert spread.filter("b", ["n2"])["NodeNames"] == ["n2"]
    with nothing_moves(spread):
        assert spread.filter("a", ["n2"])["NodeNames"] == []


def test_members_of_unlike_size_do_not_swap(make: Make) -> None:
    big, small = member("big", 2).gated(), member("small", 1).gated()
    world = make(make_node("n1").gpus(2), make_node("n2").gpus(1), make_group("g", 2), big, small)
    assert seats(world) == {"big": "n1", "small": "n2"}
    with nothing_moves(world):
        assert world.filter("big", ["n2"])["NodeNames"] == []


def test_a_member_held_at_the_barrier_keeps_its_seat_whatever_is_offered(spread: World) -> None:
    spread.put(make_node("n3").gpus(1))
    spread.filter("a", ["n1"])
    call = spread.bind("a", "n1")
    with nothing_moves(spread):
        assert spread.filter("a", ["n3"])["NodeNames"] == []
    assert spread.error(call) is None


def test_a_seat_that_was_nominated_is_not_swapped_away(spread: World) -> None:
    booking = spread.service.inventory.book.get(PodUid("uid-b"))
    assert booking is not None
    booking.nominated = True
    with nothing_moves(spread):
        assert spread.filter("a", ["n2"])["NodeNames"] == []


def test_a_member_moves_to_a_free_node_that_was_offered(spread: World) -> None:
    spread.put(make_node("n3").gpus(1))
    assert spread.filter("a", ["n3"])["NodeNames"] == ["n3"]
    assert seats(spread) == {"a": "n3", "b": "n2"}


def test_a_member_never_moves_to_a_node_that_does_not_admit_it(spread: World) -> None:
    spread.put(make_node("n3").gpus(8).taint("down"))
    with nothing_moves(spread):
        assert spread.filter("a", ["n3"])["NodeNames"] == []


@pytest.fixture
def unlike(make: Make) -> World:
    """A member of 2 GPUs on n1, one of 1 on n2; nodes have 2."""
    big, small = member("big", 2), member("small", 1)
    world = make(make_node("n1").gpus(2), make_node("n2").gpus(2), make_group("g", 2), big, small)
    assert world.filter("big", ["n1", "n2"])["NodeNames"] == ["n1"]
    booking = world.service.inventory.book.get(PodUid("uid-big"))
    assert booking is not None
    booking.phase = type(booking.phase).RESERVED
    assert seats(world) == {"big": "n1", "small": "n2"}
    return world


def test_the_rest_of_the_gang_is_planned_anew_around_a_member(unlike: World) -> None:
    assert unlike.filter("big", ["n2"])["NodeNames"] == ["n2"]
    assert seats(unlike) == {"big": "n2", "small": "n1"}
    assert unlike.filter("small", ["n1", "n2"])["NodeNames"] == ["n1"]


def test_a_member_that_is_on_its_way_is_not_planned_away(unlike: World) -> None:
    assert unlike.filter("small", ["n2"])["NodeNames"] == ["n2"]
    with nothing_moves(unlike):
        assert unlike.filter("big", ["n2"])["NodeNames"] == []


def test_an_offer_of_unknown_nodes_moves_nobody(spread: World) -> None:
    with nothing_moves(spread):
        answer = spread.filter("a", ["n8", "n9"])
        assert answer["NodeNames"] == []
        assert sorted(answer["FailedAndUnresolvableNodes"]) == ["n8", "n9"]


def test_calls_that_come_again_in_any_order_change_nothing(make: Make) -> None:
    names = ["a", "b", "c", "d"]
    world = make(make_node("n1").gpus(4), make_group("g", 4).native(), *(
        make_pod(name).gpus(1).native("g") for name in names
    ))  # fmt: skip
    for order in (names, names[::-1], names[2:] + names[:2], names):
        for name in order:
            assert world.filter(name, ["n1"])["NodeNames"] == ["n1"]
        assert world.service.inventory.columns.cell(GPU, 0) == (4, 0, 4)
    calls = [world.bind(name, "n1") for name in names]
    assert [world.error(call) for call in calls] == [""] * 4


# -- a member without a seat


@pytest.mark.parametrize(("count", "named"), [(1, 1), (100, 100), (101, 1), (5000, 1)])
def test_a_refusal_names_every_node_when_they_are_few_and_one_when_they_are_many(
    make: Make, count: int, named: int
) -> None:
    world = make(make_node("n0").gpus(8), make_group("g", 2), member("a"))
    answer = world.filter("a", [f"n{index}" for index in range(count)])
    assert (answer["NodeNames"], answer["FailedNodes"]) == ([], {}), "nobody is evicted for it"
    assert len(answer["FailedAndUnresolvableNodes"]) == named
    assert set(answer["FailedAndUnresolvableNodes"].values()) == {"gang default/g has 1 of 2 members"}


def test_the_refusal_speaks_of_the_gang_also_where_this_one_pod_would_fit(make: Make) -> None:
    nodes = [make_node(f"n{index}").gpus(free) for index, free in enumerate([6, 2, 2, 2])]
    world = make(*nodes, make_group("g", 3), *(member(name, 4) for name in "abc"), make_pod("single").gpus(2))
    names = [f"n{index}" for index in range(4)]
    for _ in range(3):
        for name in "abc":
            refused = world.filter(name, names)["FailedAndUnresolvableNodes"]
            assert sorted(refused) == names
            assert all(text.startswith("gang default/g") for text in refused.values())
    assert seats(world) == {}
    assert world.filter("single", names)["NodeNames"] == names, "nothing stays reserved"


def test_uneven_room_is_packed(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_node("n2").gpus(4), make_group("g", 3), *(
        member(name, 4) for name in "abc"
    ))  # fmt: skip
    answers = [world.filter(name, ["n1", "n2"])["NodeNames"] for name in "abc"]
    assert sorted(answers) == [["n1"], ["n1"], ["n2"]]


def test_a_member_that_names_two_pod_groups_is_refused_by_their_names(make: Make) -> None:
    pod = member("a").native("h")
    world = make(make_node("n1").gpus(8), make_group("g", 1), make_group("h", 1).native(), pod)
    answer = world.filter("a", ["n1"])
    text = answer["FailedAndUnresolvableNodes"]["n1"]
    assert "pod-group=g" in text and "podGroupName=h" in text
    assert answer["NodeNames"] == [] and seats(world) == {}


def test_equal_names_in_the_two_apis_are_two_gangs(make: Make) -> None:
    world = make(
        make_node("n1").gpus(8), make_group("g", 2), make_group("g", 2).uid("native").native(),
        member("a"), make_pod("b").gpus(1).native("g"),
    )  # fmt: skip
    for name in "ab":
        assert "1 of 2 members" in world.filter(name, ["n1"])["FailedAndUnresolvableNodes"]["n1"]


def test_a_member_that_the_watch_has_not_shown_is_refused_and_reserves_nothing(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_group("g", 1))
    answer = orjson.loads(world.run(world.service.filter(filter_body(member("a"), ["n1"]))))
    assert answer["FailedAndUnresolvableNodes"] == {"n1": Reason.UNSEEN.sentence}
    assert seats(world) == {}
    assert not world.service.admission._refused, "it may be deleted already, and never be shown"


def test_a_call_that_is_ahead_of_the_watch_waits_for_it(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_group("g", 1), timing=Timing(seen_seconds=60.0))
    call: asyncio.Task[bytes] = world.loop.create_task(world.service.filter(filter_body(member("a"), ["n1"])))
    world.idle()
    assert not call.done()
    world.put(member("a"))
    assert orjson.loads(call.result())["NodeNames"] == ["n1"]


def test_full_nodes_in_full_nodes_out(make: Make) -> None:
    nodes = [make_node("n1").gpus(1), make_node("n2").gpus(2)]
    world = make(*nodes, make_group("g", 2), member("a"), member("b"))
    answer = orjson.loads(world.run(world.service.filter(full_filter_body(member("a"), nodes))))
    assert answer["NodeNames"] is None
    assert answer["Nodes"]["items"] == [nodes[1].build()]


# -- an ordinary pod


def test_with_nothing_reserved_the_offer_goes_back_as_it_came(make: Make) -> None:
    world = make(make_node("n1").gpus(8), make_node("n2").gpus(8), make_pod("p").gpus(1), make_pod("plain"))
    for name in ("p", "plain"):
        body = b'{"Pod":%s,"NodeNames":["n2",  "n1"]}' % orjson.dumps(world.get("Pod", name))
        assert b'"NodeNames":["n2",  "n1"]' in world.run(world.service.filter(body))


@pytest.fixture
def mixed_nodes(make: Make) -> World:
    """n1 is reserved for a gang, n2 full of running pods, n3 too small, n4 free; n5 does not exist."""
    world = make(
        make_node("n1").gpus(4), make_node("n2").gpus(4), make_node("n3").gpus(1), make_node("n4").gpus(4),
        make_group("g", 2), member("a", 2).selector({"kubernetes.io/hostname": "n1"}),
        member("b", 2).selector({"kubernetes.io/hostname": "n1"}),
        make_pod("running").gpus(3).on("n2"), make_pod("p").gpus(2),
    )  # fmt: skip
    world.filter("a", ["n1"])
    assert seats(world) == {"a": "n1", "b": "n1"}
    return world


def test_each_node_gets_the_verdict_that_tells_whether_preemption_could_help(mixed_nodes: World) -> None:
    answer = mixed_nodes.filter("p", ["n1", "n2", "n3", "n4", "n5"])
    assert answer["NodeNames"] == ["n4"]
    assert answer["FailedNodes"] == {"n2": Reason.FULL.sentence}
    assert answer["FailedAndUnresolvableNodes"] == {
        "n1": Reason.RESERVED.sentence,
        "n3": Reason.TOO_SMALL.sentence,
        "n5": Reason.UNKNOWN_NODE.sentence,
    }


def test_a_device_that_no_node_has_is_too_much_for_every_node(mixed_nodes: World) -> None:
    mixed_nodes.put(make_pod("p").gpus(1, "nvidia.com/mig-3g.40gb"))
    answer = mixed_nodes.filter("p", ["n1", "n4"])
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(["n1", "n4"], Reason.TOO_SMALL.sentence)


def test_a_pod_without_devices_is_kept_off_blocked_nodes_only(make: Make) -> None:
    hungry = make_pod("a").gpus(1).cpu("8").gang("g")
    world = make(
        make_node("n1").gpus(1).cpu("8"), make_node("n2").cpu("8"), make_node("n3").cpu("8"),
        make_group("g", 1), hungry, make_pod("running").cpu("8").on("n2"), make_pod("p").cpu("1"),
    )  # fmt: skip
    world.filter("a", ["n1"])
    answer = world.filter("p", ["n1", "n2", "n3", "n9"])
    assert answer["NodeNames"] == ["n2", "n3", "n9"], "a full or new node is kube-scheduler's to judge"
    assert answer["FailedAndUnresolvableNodes"] == {"n1": Reason.RESERVED.sentence}
    assert world.filter("p", ["n2", "n3"])["NodeNames"] == ["n2", "n3"]


@pytest.mark.parametrize(
    ("priority", "gpus", "accepted"),
    [
        pytest.param(0, 1, True, id="what the nomination leaves is free"),
        pytest.param(0, 2, False, id="lower priority"),
        pytest.param(100, 2, False, id="same priority"),
        pytest.param(200, 2, True, id="higher priority"),
    ],
)
def test_a_nominated_pod_of_at_least_the_same_priority_holds_its_devices(
    make: Make, priority: int, gpus: int, accepted: bool
) -> None:
    nominated = make_pod("h").gpus(3).priority(100).nominated("n1")
    world = make(make_node("n1").gpus(4), nominated, make_pod("p").gpus(gpus).priority(priority))
    assert bool(world.filter("p", ["n1"])["NodeNames"]) is accepted
    assert world.filter("h", ["n1"])["NodeNames"] == ["n1"], "it is not in its own way"
