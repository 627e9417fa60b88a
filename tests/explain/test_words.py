# SPDX-License-Identifier: Apache-2.0
"""Phrases read well for one and for many."""

from __future__ import annotations

import pytest

from app.explain.words import count, in_units, listed, moment, span


def test_counts() -> None:
    assert [count(1, "pod"), count(0, "pod"), count(2, "pod waits", "pods wait")] == [
        "1 pod", "0 pods", "2 pods wait",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "text"),
    [("", ""), ("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("abcde", "a, b, c and 2 more")],
)
def test_lists(names: str, text: str) -> None:
    assert listed(names) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d")],
)
def test_spans(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_moments() -> None:
    assert moment(60, 0) == "at 1970-01-01T00:01:00Z"
    assert moment(60, 90) == "at 1970-01-01T00:01:00Z (30s ago)"
    assert moment(60, 30) == "at 1970-01-01T00:01:00Z (in 30s)"


def test_amounts() -> None:
    assert [in_units("cpu", 1500), in_units("memory", 2**30), in_units("nvidia.com/gpu", 8)] == [
        "1.5",
        "1Gi",
        "8",
    ]
