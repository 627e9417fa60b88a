# SPDX-License-Identifier: Apache-2.0
"""From offers to rows, and calls about more nodes than anybody reads one by one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import orjson
import pytest

from app.codec.offer import FEW, Offer
from app.domain.reasons import Reason
from app.extender.offers import Offers
from tests.builders import Json, PodBuilder, filter_body, full_filter_body, make_group, make_node, make_pod
from tests.extender.conftest import Make
from tests.extender.world import World

NAMES = [f"node-{number:03d}" for number in range(FEW + 50)]
SHUFFLED = random.Random(0).sample(NAMES, len(NAMES))
SEATS = {NAMES[-1], NAMES[-2]}
ONE = make_pod("p").gpus(1)
SPELLED = [orjson.dumps, lambda names: orjson.dumps(names).replace(b",", b" , ")[:-1] + b" ]"]


def offer(names: list[str]) -> Offer:
    return Offer.of(orjson.dumps(names))


@pytest.fixture
def world(make: Make) -> World:
    """Nodes of 4 GPUs; every third is full, and a gang has its seats on the last two."""
    gang = [make_pod(name).gpus(4).gang("g").gated().selector({"here": "yes"}) for name in "ab"]
    nodes = [make_node(name).gpus(4).label("here", "yes" if name in SEATS else "no") for name in NAMES]
    full = [make_pod(f"r-{name}").gpus(4).on(name) for name in NAMES[::3]]
    return make(*nodes, *full, make_group("g", 2), *gang, ONE)


@pytest.fixture
def offers(world: World) -> Offers:
    return Offers(world.service.inventory)


def rows_of(world: World, names: list[str]) -> list[int]:
    known: dict[Any, int] = world.service.inventory.columns.row_of
    return [known.get(name, -1) for name in names]


@pytest.mark.parametrize("names", [SHUFFLED, SHUFFLED[:5], []])
def test_rows(world: World, offers: Offers, names: list[str]) -> None:
    for _ in range(2):
        assert offers.rows(offer(names)).tolist() == rows_of(world, names)


@pytest.mark.parametrize("names", [SHUFFLED, SHUFFLED[:5]])
def test_a_node_that_is_not_known_yet_is_looked_up_again(
    world: World, offers: Offers, names: list[str]
) -> None:
    asked = [*names, "new"]
    assert offers.rows(offer(asked)).tolist() == [*rows_of(world, names), -1]
    world.put(make_node("new").gpus(4))
    assert offers.rows(offer(asked)).tolist() == [*rows_of(world, names), len(NAMES)]


def test_a_name_that_begins_like_the_longest_known_is_another(world: World, offers: Offers) -> None:
    asked = [*NAMES[1:], NAMES[0] + "x"]
    assert offers.rows(offer(asked)).tolist() == [*rows_of(world, NAMES[1:]), -1]


@pytest.mark.parametrize("twice", [NAMES[0], "unknown"])
@pytest.mark.parametrize("names", [SHUFFLED, SHUFFLED[:5]])
def test_a_node_offered_twice_has_one_row(world: World, offers: Offers, names: list[str], twice: str) -> None:
    asked = offer([twice, *names, twice])
    distinct = list(dict.fromkeys([twice, *names]))
    assert offers.rows(asked).tolist() == rows_of(world, distinct)
    assert orjson.loads(asked.raw) == distinct


@pytest.mark.parametrize(
    "spell", [orjson.dumps, lambda names: orjson.dumps(names).replace(b",", b" , ")[:-1] + b" ]"]
)
@pytest.mark.parametrize("names", [SHUFFLED, SHUFFLED[:5]])
def test_what_is_left_is_known_again(world: World, offers: Offers, names: list[str], spell: Any) -> None:
    kept = np.arange(len(names)) % 3 > 0
    for _ in range(2):
        asked = Offer.of(spell(names))
        left, others = offers.part(asked, offers.rows(asked), kept)
        want = [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
        assert orjson.loads(left.raw) == want
        assert sorted([*want, *others]) == sorted(names)
        assert offers.rows(offer(want)).tolist() == rows_of(world, want)


# -- the verbs about many nodes


def filtered(world: World, body: bytes) -> Json:
    answer: Json = orjson.loads(world.run(world.service.filter(body)))
    assert not answer["Error"]
    return answer


def test_an_ordinary_pod_among_many_nodes(world: World) -> None:
    answer = filtered(world, filter_body(ONE, SHUFFLED))
    full = set(NAMES[::3])
    assert answer["NodeNames"] == [name for name in SHUFFLED if name not in full | SEATS]
    assert answer["FailedNodes"] == dict.fromkeys(full, Reason.FULL.sentence)
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(SEATS, Reason.RESERVED.sentence)


def test_every_reason_among_many_nodes(world: World) -> None:
    world.put(make_node("small").gpus(1))
    two = make_pod("two").gpus(2)
    answer = filtered(world, filter_body(two, [*SHUFFLED, "small", "unknown"]))
    told = answer["FailedAndUnresolvableNodes"]
    assert (told["small"], told["unknown"]) == (Reason.TOO_SMALL.sentence, Reason.UNKNOWN_NODE.sentence)
    assert set(answer["NodeNames"]).isdisjoint([*answer["FailedNodes"], *told])


@pytest.mark.parametrize("pod", [ONE, make_pod("cpu").cpu("1")])
def test_many_nodes_that_all_fit_go_back_byte_by_byte(make: Make, pod: PodBuilder) -> None:
    world = make(*(make_node(name).gpus(4) for name in NAMES))
    spelled = orjson.dumps(SHUFFLED)
    assert spelled in world.run(world.service.filter(filter_body(pod, SHUFFLED)))


def test_full_objects_of_many_nodes(world: World) -> None:
    nodes = [make_node(name).gpus(4) for name in SHUFFLED]
    by_name = filtered(world, filter_body(ONE, SHUFFLED))
    whole = filtered(world, full_filter_body(ONE, nodes))
    assert [node["metadata"]["name"] for node in whole["Nodes"]["items"]] == by_name["NodeNames"]
    assert whole["NodeNames"] is None
    assert whole["FailedNodes"] == by_name["FailedNodes"]


@pytest.mark.parametrize("after", ["filter", "nothing"])
def test_prioritize_scores_the_same_whether_or_not_filter_came_before(world: World, after: str) -> None:
    left = filtered(world, filter_body(ONE, SHUFFLED))["NodeNames"]
    if after == "nothing":
        filtered(world, filter_body(ONE, SHUFFLED[:3]))
    world.put(make_pod("more").gpus(3).on(left[0]))
    reply = orjson.loads(world.run(world.service.prioritize(filter_body(ONE, left))))
    scores = {entry["Host"]: entry["Score"] for entry in reply}
    assert sorted(scores) == sorted(left)
    assert max(scores, key=scores.__getitem__) == left[0], "of the usage now, not of then"


def test_a_member_among_many_nodes_gets_its_seat_or_one_sentence(world: World) -> None:
    seat = world.filter("a", SHUFFLED)["NodeNames"]
    assert len(seat) == 1
    assert set(seat) < SEATS
    world.put(make_group("h", 3))
    world.put(make_pod("h0").gpus(1).gang("h"))
    told = world.filter("h0", SHUFFLED)["FailedAndUnresolvableNodes"]
    assert told == {SHUFFLED[0]: "gang default/h has 1 of 3 members"}
