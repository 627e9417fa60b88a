# SPDX-License-Identifier: Apache-2.0
"""What schedulers say of their feature gates, taken together."""

from __future__ import annotations

import pytest

from app.explain.sight import agreed


@pytest.mark.parametrize(
    ("told", "gates"),
    [
        (None, None),
        ({}, None),
        ({"a": {"X": True}}, {"X": True}),
        ({"a": {"X": True}, "b": {"X": True}}, {"X": True}),
        ({"a": {"X": True}, "b": {"X": False}}, {"X": None}),
        ({"a": {"X": True}, "b": {}}, {"X": None}),
        ({"a": {"X": False}, "b": {}}, {"X": False}),
        ({"a": {}, "b": {}}, {}),
    ],
)
def test_a_gate_on_which_schedulers_disagree_is_neither_on_nor_off(
    told: dict[str, dict[str, bool]] | None, gates: dict[str, bool | None] | None
) -> None:
    assert agreed(told) == gates
