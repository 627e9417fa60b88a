# SPDX-License-Identifier: Apache-2.0
"""From when each pod was seen created, bound and gone to figures. Pure: no clock, no I/O, no cluster.

Moments are seconds of one clock. A gang is *whole* from the moment `members` of its pods are bound until the
first of them is gone, and *partly held* while some but fewer are bound before that. What comes after the
first one is gone is its end, and counts as neither.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

SETTLING_SECONDS: Final = 1.0
"""Members of one gang are bound within milliseconds of each other: what is held for longer is stuck."""

FIGURES: Final[Mapping[str, str]] = {
    "pods_bound": "pods bound within the time limit",
    "pods_per_second": "pods bound, by the time from the first one created to the last one bound",
    "seconds": "first pod created to last pod bound",
    "last_created_to_last_bound_seconds": "last pod created to last pod bound",
    "timed_out": "1 when the run was ended by its time limit",
    "scheduler_cpu_ms_per_pod": "CPU of the scheduler by pods bound",
    "muster_cpu_ms_per_pod": "CPU of Muster by pods bound",
    "muster_writes_per_pod": "API writes of Muster, bindings left out, by pods bound",
    "filter_calls_per_bound_member": "filter calls by pods bound",
    "failed_attempts": "scheduling attempts that bound nothing",
    "wake_p50_seconds": "devices free to the next gang whole, median",
    "wake_p99_seconds": "devices free to the next gang whole, 99th percentile",
    "wakes_missed": "times that devices came free and no gang took them before the end",
    "gpu_time_ratio": "GPU time of whole gangs by GPU time available, first pod created to last gang gone",
    "partly_held_gpu_seconds": "GPU time of bound members while their gang was not whole",
    "partly_held_over_1s_gpu_seconds": "the part of it after the first second of each time",
    "gangs_unfinished": "gangs that were not whole at the end",
    "wait_p50_seconds": "last member created to gang whole, median; gangs never whole count until the end",
    "wait_p99_seconds": "the same, 99th percentile",
    "wait_longest_seconds": "the same, longest",
    "node_updates_per_second": "node status updates made beside",
    "pod_updates_per_second": "pod updates made beside",
    "loop_stall_longest_seconds": "longest stall of Muster's event loop, rounded up to a bucket's bound",
    "loop_stall_cpu_longest_seconds": "the same, but only what was work of its own",
    "setup_seconds": "time to start the control plane, nodes, scheduler and Muster",
}
"""Every figure of a record, and what it is."""


class Life(msgspec.Struct):
    """When a pod was seen; None is never."""

    created: float
    bound: float | None = None
    gone: float | None = None


class Course(msgspec.Struct, frozen=True):
    """One gang: GPUs of each member, members that make it whole, and the lives of those seen."""

    gpus: int
    members: int
    lives: tuple[Life, ...]

    @property
    def created(self) -> float:
        """When its last member was created."""
        return max(life.created for life in self.lives)

    @property
    def whole(self) -> float | None:
        """When it became whole."""
        bound = self._bound()
        return bound[self.members - 1] if len(bound) >= self.members else None

    @property
    def gone(self) -> float | None:
        """When the first of its members was gone."""
        return min((life.gone for life in self.lives if life.gone is not None), default=None)

    @property
    def freed(self) -> float | None:
        """When its last member was gone; None while one is there."""
        gone = [life.gone for life in self.lives if life.gone is not None]
        return max(gone) if len(gone) == len(self.lives) else None

    def whole_gpu_seconds(self, until: float) -> float:
        """GPU time while it was whole."""
        if self.whole is None:
            return 0.0
        end = until if self.gone is None else min(self.gone, until)
        return self.gpus * self.members * max(0.0, end - self.whole)

    def partly_held_gpu_seconds(self, until: float, *, after: float = 0.0) -> float:
        """GPU time of bound members before it was whole; `after` leaves out the first seconds of it."""
        bound = self._bound()
        end = min(moment for moment in (self.whole, self.gone, until) if moment is not None)
        counts_from = bound[0] + after if bound else end
        return self.gpus * sum(max(0.0, end - max(moment, counts_from)) for moment in bound)

    def _bound(self) -> list[float]:
        return sorted(life.bound for life in self.lives if life.bound is not None)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of them do not exceed; NaN of none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def burst_figures(courses: Iterable[Course], *, until: float) -> dict[str, float]:
    """Throughput of everything created."""
    lives = [life for course in courses for life in course.lives]
    bound = [life.bound for life in lives if life.bound is not None and life.bound <= until]
    if not bound:
        return {"pods_bound": 0.0, "pods_per_second": 0.0}
    first, last = min(life.created for life in lives), max(life.created for life in lives)
    return {
        "pods_bound": float(len(bound)),
        "pods_per_second": len(bound) / (max(bound) - first),
        "seconds": max(bound) - first,
        "last_created_to_last_bound_seconds": max(bound) - last,
    }


def sharing_figures(courses: Sequence[Course], *, gpus: int, until: float) -> dict[str, float]:
    """How well gangs that come and go used `gpus` devices, and how long they waited.

    The window begins with the first pod created, and ends with the last gang gone or, where gangs are left,
    at `until`. What half a gang holds is not used.
    """
    first = min((life.created for course in courses for life in course.lives), default=until)
    ends = [until if course.freed is None else course.freed for course in courses]
    last = min(until, max(ends, default=until))
    waits = [_wait(course, until) for course in courses]
    whole = sum(course.whole_gpu_seconds(last) for course in courses)
    return {
        "gpu_time_ratio": whole / (gpus * (last - first)) if last > first else 0.0,
        "gangs_unfinished": float(sum(course.whole is None for course in courses)),
        "wait_p50_seconds": percentile(waits, 50),
        "wait_p99_seconds": percentile(waits, 99),
        "wait_longest_seconds": percentile(waits, 100),
    }


def holding_figures(courses: Sequence[Course], *, until: float) -> dict[str, float]:
    """What gangs held that could not start."""
    over = sum(course.partly_held_gpu_seconds(until, after=SETTLING_SECONDS) for course in courses)
    return {
        "partly_held_gpu_seconds": sum(course.partly_held_gpu_seconds(until) for course in courses),
        "partly_held_over_1s_gpu_seconds": over,
    }


def wake_figures(courses: Sequence[Course], *, fitting: int) -> dict[str, float]:
    """A backlog: from the n-th gang's devices free to the n-th gang whole beyond the first `fitting`."""
    frees = sorted(course.freed for course in courses if course.freed is not None)
    wholes = sorted(course.whole for course in courses if course.whole is not None)[fitting:]
    wakes = [whole - free for free, whole in zip(frees, wholes, strict=False)]
    return {
        "wake_p50_seconds": percentile(wakes, 50),
        "wake_p99_seconds": percentile(wakes, 99),
        "wakes_missed": float(len(frees) - len(wakes)),
    }


def gang_seconds(courses: Iterable[Course]) -> list[float]:
    """From the last member created to the last one that makes it whole, of those that became whole."""
    return [course.whole - course.created for course in courses if course.whole is not None]


def _wait(course: Course, until: float) -> float:
    return max(0.0, (until if course.whole is None else course.whole) - course.created)
