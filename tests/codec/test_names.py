# SPDX-License-Identifier: Apache-2.0
"""Names found in bytes: the positions that a dict would give, whatever names look like."""

from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.codec.names import NameIndex, thinned

plain = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\[{'), min_size=0, max_size=40
) | st.integers(0, 300).map(lambda number: f"ip-10-0-0-{number}.compute.internal")
lists = st.lists(plain, max_size=60)


@given(st.lists(plain, unique=True, max_size=80), lists, st.integers(0, 80))
def test_every_name_has_the_position_that_a_dict_gives_it(
    known: list[str], others: list[str], first: int
) -> None:
    asked = [*known[::-1], *others, *known[:3]]
    growing = known[:first]
    index = NameIndex(growing)
    for names in (known[:first], known):
        growing[:] = names
        rows = index.rows(orjson.dumps(asked))
        place = {name: at for at, name in enumerate(names)}
        if names:
            assert rows is not None
            assert rows.tolist() == [place.get(name, -1) for name in asked]
        else:
            assert rows is None, "there is nothing to find"


@given(st.lists(plain, unique=True, min_size=1, max_size=120), st.lists(st.integers(1, 40), min_size=1))
def test_an_index_that_grew_finds_what_a_new_one_does(known: list[str], steps: list[int]) -> None:
    asked, growing = orjson.dumps(known), known[:1]
    index = NameIndex(growing)
    for step in steps:
        found, anew = index.rows(asked), NameIndex(list(growing)).rows(asked)
        assert found is not None
        assert anew is not None
        assert found.tolist() == anew.tolist()
        growing += known[len(growing) : len(growing) + step]


def test_thousands_of_alike_names_are_found() -> None:
    names = [f"node-{number:05d}" for number in range(5000)]
    rows = NameIndex(names).rows(orjson.dumps(names))
    assert rows is not None
    assert rows.tolist() == list(range(5000))


def test_one_name_is_not_the_beginning_of_another() -> None:
    rows = NameIndex(["node-1", "node-10", "node-100000000"]).rows(
        b'["node-10","node-1","node-1000000000","node-","","node-100000000"]'
    )
    assert rows is not None
    assert rows.tolist() == [1, 0, -1, -1, -1, 2]


@pytest.mark.parametrize(
    "raw", [b'["a", "b"]', b'["a",7]', b'[null,"a"]', b'["a","b"] ', b'["a","b",b"]', b'["a",,"b"]', b"[ ]"]
)
def test_a_list_of_another_form_must_be_decoded(raw: bytes) -> None:
    assert NameIndex(["a", "b"]).rows(raw) is None


@given(st.lists(st.tuples(plain, st.booleans()), min_size=1, max_size=30))
def test_what_is_left_of_a_list(items: list[tuple[str, bool]]) -> None:
    raw = orjson.dumps([name for name, _ in items])
    left = thinned(raw, np.array([kept for _, kept in items]))
    assert left == orjson.dumps([name for name, kept in items if kept])
