# SPDX-License-Identifier: Apache-2.0
"""What is read from /proc, the audit log and metrics pages."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from loadtests.runner.measure import (
    AuditLog,
    cpu_seconds,
    difference,
    failed_attempts,
    filter_buckets,
    filter_calls,
    longest_stall,
    samples,
    writes_beyond_binding,
)

PAGE = """\
# HELP scheduler_schedule_attempts_total Number of attempts.
scheduler_schedule_attempts_total{profile="muster",result="scheduled"} 7
scheduler_schedule_attempts_total{profile="muster",result="unschedulable"} 3
scheduler_schedule_attempts_total{profile="muster",result="error"} 1e+00
muster_verb_duration_seconds_bucket{le="0.001",verb="filter"} 2
muster_verb_duration_seconds_bucket{le="10.0",verb="filter"} 4
muster_verb_duration_seconds_bucket{le="+Inf",verb="filter"} 5
muster_verb_duration_seconds_bucket{le="0.001",verb="bind"} 9
muster_verb_duration_seconds_count{verb="filter"} 5
muster_loop_stall_seconds_bucket{clock="wall",le="0.005"} 4.0
muster_loop_stall_seconds_bucket{clock="wall",le="0.01"} 4.0
muster_loop_stall_seconds_bucket{clock="wall",le="0.02"} 6.0
muster_loop_stall_seconds_bucket{clock="wall",le="0.5"} 6.0
muster_loop_stall_seconds_bucket{clock="cpu",le="0.005"} 6.0
"""


def audit(user: str, verb: str, resource: str, *, agent: str = "", sub: str = "") -> bytes:
    about = {"resource": resource, **({"subresource": sub} if sub else {})}
    line: dict[str, Any] = {"verb": verb, "user": {"username": user}, "objectRef": about, "level": "Metadata"}
    return json.dumps(line | ({"userAgent": agent} if agent else {})).encode() + b"\n"


def test_attempts_without_a_node_have_failed_whatever_the_reason() -> None:
    assert failed_attempts(samples(PAGE)) == 4


def test_filter_calls_and_their_histogram_are_of_that_verb_alone() -> None:
    page = samples(PAGE)
    assert filter_calls(page) == 5
    assert filter_buckets(page) == [(0.001, 2), (10.0, 4)]


def test_the_longest_stall_is_the_last_bucket_that_counted() -> None:
    page = samples(PAGE)
    assert longest_stall(page, clock="wall") == 0.02
    assert longest_stall(page, clock="cpu") == 0.005
    assert longest_stall(difference(page, page), clock="wall") == 0
    assert longest_stall({}, clock="wall") is None


def test_only_what_came_in_between_counts() -> None:
    assert difference({"a": 2.0}, {"a": 5.0, "b": 1.0}) == {"a": 3.0, "b": 1.0}


def test_cpu_time_is_that_of_the_process() -> None:
    before, meter = cpu_seconds({"me": os.getpid()})["me"], time.process_time()
    while time.process_time() < meter + 0.2:
        pass
    assert cpu_seconds({"me": os.getpid()})["me"] - before >= 0.15


def test_writes_are_told_apart_by_who_made_them(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(audit("muster", "patch", "pods"))
    log = AuditLog(path, shared="admin")
    log.mark()
    with path.open("ab") as file:
        file.write(audit("muster", "create", "pods", sub="binding") * 2)
        file.write(audit("muster", "patch", "pods", sub="status"))
        file.write(audit("admin", "patch", "pods", sub="status", agent="kwok/v0.8.0 (linux/amd64)"))
        file.write(audit("admin", "create", "pods"))
        file.write(b'{"verb": "cre')  # being written
    writes = log.writes()
    assert writes == {
        "driver create pods": 1,
        "kwok patch pods/status": 1,
        "muster create pods/binding": 2,
        "muster patch pods/status": 1,
    }
    assert writes_beyond_binding(writes, "muster") == 1


def test_a_page_without_samples_is_empty() -> None:
    assert samples("") == {}


def test_a_process_that_is_gone_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        cpu_seconds({"gone": 2**22 + 1})
