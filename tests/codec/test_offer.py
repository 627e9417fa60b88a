# SPDX-License-Identifier: Apache-2.0
"""Offers of many nodes: the same answers as from the names as text, without making them text."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.codec.offer import FEW, Offer
from app.domain.errors import InputError

MANY = [f"n{index}" for index in range(FEW + 20)]

texts = st.text(st.sampled_from('ab",\\[]{}: é\u0000') | st.characters(exclude_categories=["Cs"]), max_size=4)
names = st.lists(texts, max_size=4).map(lambda some: [*some, *MANY]) | st.lists(texts, max_size=4).map(
    lambda some: [*MANY, *some]
)
spelling = st.sampled_from([
    lambda value: json.dumps(value, separators=(",", ":")).encode(),
    lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
    lambda value: json.dumps(value, separators=(",", " :")).encode(),
    lambda value: json.dumps(value, indent=1).encode(),
    orjson.dumps,
])  # fmt: skip


@given(
    names, texts | st.sampled_from(["n1", "n", "1", "n119", "n120", "0", ",", "", '","', "n0,n1"]), spelling
)
def test_an_offer_of_many_tells_the_same_as_its_names(offered: list[str], asked: str, spell: object) -> None:
    raw = spell(offered)  # type: ignore[operator]
    assert (asked in Offer.of(raw)) == (asked in offered)
    assert all(name in Offer.of(raw) for name in offered[:5])
    assert Offer.of(raw).few() == offered[:1]
    assert orjson.loads(Offer.of(raw).raw) in (offered, list(dict.fromkeys(offered)))
    assert Offer.of(raw).names in (offered, list(dict.fromkeys(offered)))


def test_many_are_not_read_to_find_one_to_name_one_or_to_send_them_back() -> None:
    offer = Offer.of(orjson.dumps(MANY))
    assert "n7" in offer
    assert offer.few() == ["n0"]
    assert offer.raw == orjson.dumps(MANY)
    assert offer.unread
    assert "n7000" not in offer
    assert not offer.unread, "that it is not there is certain only once they are read"


@pytest.mark.parametrize("asked", [",", '","', 'n0","n1', "n", "1", "", "n500", "n501"])
def test_what_only_looks_like_a_name_is_not_offered(asked: str) -> None:
    assert asked not in Offer.of(orjson.dumps(MANY))
    assert asked not in Offer.of(orjson.dumps([*MANY, 'x"n500', 'n501"x']))


def test_few_are_all_there_once() -> None:
    offer = Offer.of(orjson.dumps(["n2", "n1", "n2"]))
    assert offer.few() == offer.names == ["n2", "n1"]
    assert offer.raw == b'["n2","n1"]'
    assert Offer.of(orjson.dumps(MANY[:FEW])).few() == MANY[:FEW]
    assert Offer(MANY).few() == MANY[:1]


def test_many_are_there_once_for_who_asks() -> None:
    offer = Offer.of(orjson.dumps([*MANY, *MANY]))
    offer.once()
    assert offer.names == MANY
    assert offer.raw == orjson.dumps(MANY)


@pytest.mark.parametrize("junk", [b"7", b"{}", b'"n1"', b"[7]", b"[[]]", b"[null]", b'["\xff"]'])
def test_what_is_no_list_of_names_is_seen_at_once(junk: bytes) -> None:
    with pytest.raises(InputError, match=r"^NodeNames: "):
        Offer.of(junk)


@pytest.mark.parametrize("junk", [7, None, [], {}, ["n1"], {"n1": "n1"}])
def test_something_else_among_many_is_seen_when_they_are_read(junk: object) -> None:
    with pytest.raises(InputError, match=r"^NodeNames: "):
        assert Offer.of(orjson.dumps([*MANY, junk])).names
