# SPDX-License-Identifier: Apache-2.0
"""From what the witness saw to figures: GPU time, half gangs, waits, wake-ups."""

from __future__ import annotations

import math

import pytest

from loadtests.runner.accounting import (
    Course,
    Life,
    burst_figures,
    gang_seconds,
    holding_figures,
    percentile,
    sharing_figures,
    wake_figures,
)


def gang(
    *lives: tuple[float, float | None, float | None], gpus: int = 4, members: int | None = None
) -> Course:
    """Each life is (created, bound, gone)."""
    seen = tuple(Life(created=created, bound=bound, gone=gone) for created, bound, gone in lives)
    return Course(gpus=gpus, members=members or len(seen), lives=seen)


def test_a_gang_counts_from_its_last_member_bound_to_the_first_one_gone() -> None:
    course = gang((0, 2, 12), (1, 5, 10))
    assert (course.created, course.whole, course.gone, course.freed) == (1, 5, 10, 12)
    assert course.whole_gpu_seconds(100) == 2 * 4 * 5
    assert course.whole_gpu_seconds(7) == 2 * 4 * 2


def test_what_is_held_before_a_gang_is_whole_is_integrated_exactly() -> None:
    course = gang((0, 2, 12), (0, 3, 10), (0, 5, 10))
    assert course.partly_held_gpu_seconds(100) == 4 * (3 + 2)
    assert course.partly_held_gpu_seconds(100, after=1.0) == 4 * (2 + 2)
    assert course.partly_held_gpu_seconds(4) == 4 * (2 + 1)


def test_the_end_of_a_gang_is_not_half_a_gang() -> None:
    assert gang((0, 2, 10), (0, 2, 50)).partly_held_gpu_seconds(100) == 0


def test_a_gang_that_never_becomes_whole_holds_until_the_end() -> None:
    course = gang((0, 2, None), (0, None, None))
    assert course.whole is None
    assert course.whole_gpu_seconds(30) == 0
    assert course.partly_held_gpu_seconds(30) == 4 * 28
    assert course.partly_held_gpu_seconds(30, after=1.0) == 4 * 27


def test_members_seen_only_in_part_do_not_make_a_gang_whole() -> None:
    assert gang((0, 1, None), members=2).whole is None


def test_members_bound_within_a_second_hold_nothing_that_is_stuck() -> None:
    figures = holding_figures([gang((0, 1.0, None), (0, 1.5, None))], until=60)
    assert figures == {"partly_held_gpu_seconds": 2.0, "partly_held_over_1s_gpu_seconds": 0.0}


def test_sharing_counts_whole_gangs_by_what_there_was() -> None:
    whole, never = gang((10, 12, 17), (10, 12, 17)), gang((11, None, None), (11, None, None))
    figures = sharing_figures([whole, never], gpus=8, until=20)
    assert figures["gpu_time_ratio"] == pytest.approx(2 * 4 * 5 / (8 * 10))
    assert figures["gangs_unfinished"] == 1
    assert (figures["wait_p50_seconds"], figures["wait_longest_seconds"]) == (2, 9)


def test_sharing_ends_with_the_last_gang_gone_whenever_that_is_noticed() -> None:
    first, last = gang((10, 12, 17), (10, 12, 17)), gang((11, 17, 19), (11, 17, 20))
    figures = sharing_figures([first, last], gpus=8, until=99)
    assert figures["gpu_time_ratio"] == pytest.approx(2 * 4 * (5 + 2) / (8 * 10))
    assert figures == sharing_figures([first, last], gpus=8, until=20)


def test_nothing_seen_is_no_sharing() -> None:
    assert sharing_figures([], gpus=8, until=20)["gpu_time_ratio"] == 0


def test_throughput_is_from_the_first_pod_created_to_the_last_one_bound() -> None:
    figures = burst_figures([gang((10, 12, None), (11, 15, None)), gang((10.5, None, None))], until=60)
    assert figures["pods_bound"] == 2
    assert figures["seconds"] == 5
    assert figures["pods_per_second"] == pytest.approx(2 / 5)
    assert figures["last_created_to_last_bound_seconds"] == 4


def test_nothing_bound_is_no_throughput() -> None:
    assert burst_figures([gang((10, None, None))], until=60) == {"pods_bound": 0.0, "pods_per_second": 0.0}


def test_each_time_devices_come_free_is_answered_by_the_next_gang_whole() -> None:
    first, second = gang((0, 1, 10)), gang((0, 1, 11))
    next_one, after = gang((0, 10.4, None)), gang((0, 12.5, None))
    figures = wake_figures([first, second, next_one, after], fitting=2)
    assert figures["wake_p50_seconds"] == pytest.approx(0.4)
    assert figures["wake_p99_seconds"] == pytest.approx(1.5)
    assert figures["wakes_missed"] == 0


def test_devices_that_nobody_takes_are_a_wake_up_missed() -> None:
    figures = wake_figures([gang((0, 1, 10)), gang((0, None, None))], fitting=1)
    assert figures["wakes_missed"] == 1
    assert math.isnan(figures["wake_p50_seconds"])


def test_the_time_of_a_gang_is_from_its_last_member_created() -> None:
    assert gang_seconds([gang((0, 3, None), (2, 5, None)), gang((0, None, None))]) == [3]


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (50, 2), (51, 3), (75, 3), (99, 4), (100, 4)])
def test_percentiles_are_values_that_were_seen(percent: float, value: float) -> None:
    assert percentile([4, 2, 1, 3], percent) == value
