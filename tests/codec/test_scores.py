# SPDX-License-Identifier: Apache-2.0
"""HostPriorityList for many nodes at once."""

from __future__ import annotations

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from app.codec.scores import HostScores

names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), unique=True, max_size=20)


@given(names, st.data())
def test_each_row_gets_its_score(hosts: list[str], data: st.DataObject) -> None:
    growing = hosts[: len(hosts) // 2]
    scores = HostScores(growing)
    for known in (growing[:], hosts):
        growing[:] = known
        drawn = st.lists(st.integers(0, len(known) - 1), max_size=30) if known else st.just([])
        rows = data.draw(drawn)
        given_ = [data.draw(st.integers(0, 99)) for _ in rows]
        reply = scores.reply(np.array(rows, np.intp), np.array(given_, np.int64))
        assert orjson.loads(reply) == [
            {"Host": known[row], "Score": score} for row, score in zip(rows, given_, strict=True)
        ]


def test_nothing_scored() -> None:
    assert HostScores([]).reply(np.array([], np.intp), np.array([], np.int64)) == b"[]"
