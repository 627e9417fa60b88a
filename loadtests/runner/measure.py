# SPDX-License-Identifier: Apache-2.0
"""What a run costs, read from outside: CPU time from /proc, writes from the audit log, and /metrics.

Reads only. What is measured is the difference of two readings.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
ATTEMPTS: Final = "scheduler_schedule_attempts_total"
STALLS: Final = "muster_loop_stall_seconds"
VERBS: Final = "muster_verb_duration_seconds"

Samples = dict[str, float]
"""Sample line of a metrics page without its value → value."""


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """User and system time of each process so far, in steps of 1/100 s; all its threads, not its children."""
    return {name: _cpu_of(pid) for name, pid in pids.items()}


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def samples(page: str) -> Samples:
    """A page in Prometheus text format."""
    lines = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def difference(before: Samples, after: Samples) -> Samples:
    """What was counted in between."""
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def failed_attempts(scheduler: Samples) -> float:
    """Attempts of kube-scheduler that did not end with a node."""
    attempts = {name: value for name, value in scheduler.items() if name.startswith(f"{ATTEMPTS}{{")}
    return sum(value for name, value in attempts.items() if 'result="scheduled"' not in name)


def filter_calls(muster: Samples) -> float:
    """Calls of Muster's filter verb."""
    return muster.get(f'{VERBS}_count{{verb="filter"}}', 0.0)


def filter_buckets(muster: Samples) -> list[tuple[float, int]]:
    """Cumulative histogram of filter calls: (upper bound in seconds, calls). `+Inf` is left out."""
    start = f"{VERBS}_bucket{{"
    found = [
        (float(name.partition('le="')[2].partition('"')[0]), int(value))
        for name, value in muster.items()
        if name.startswith(start) and 'verb="filter"' in name
    ]
    return sorted(bucket for bucket in found if math.isfinite(bucket[0]))


def longest_stall(muster: Samples, *, clock: str) -> float | None:
    """Upper bound of the slowest bucket that counted, in seconds; None where there is no such metric."""
    labels = f'{STALLS}_bucket{{clock="{clock}",le="'
    bounds = [
        (float(name.removeprefix(labels).rstrip('"}')), name) for name in muster if name.startswith(labels)
    ]
    if not bounds:
        return None
    longest, below = 0.0, 0.0
    for bound, name in sorted(bounds):
        if muster[name] > below:
            longest, below = bound if math.isfinite(bound) else longest, muster[name]
    return longest


class _User(msgspec.Struct):
    username: str


class _Object(msgspec.Struct):
    resource: str = ""
    subresource: str = ""


class _Line(msgspec.Struct, rename="camel"):
    verb: str
    user: _User
    user_agent: str = ""
    object_ref: _Object = msgspec.field(default_factory=_Object)


class AuditLog:
    """Writes since `mark`, as `<identity> <verb> <resource>[/<subresource>]`."""

    def __init__(self, path: Path, *, shared: str) -> None:
        self._path, self._shared = path, shared
        self._from = 0

    def mark(self) -> None:
        """Count from here."""
        self._from = self._path.stat().st_size

    def writes(self) -> dict[str, int]:
        """Counted; a request without an answer yet is not in it."""
        with self._path.open("rb") as file:
            file.seek(self._from)
            found = Counter(self._word(line) for line in whole_lines(file.read()))
        return dict(sorted(found.items()))

    def _word(self, line: _Line) -> str:
        about = line.object_ref
        what = f"{about.resource}/{about.subresource}" if about.subresource else about.resource
        return f"{self._identity(line)} {line.verb} {what}"

    def _identity(self, line: _Line) -> str:
        """The user; programs that share the admin's token are told apart by the name they give themselves."""
        if line.user.username != self._shared:
            return line.user.username
        return line.user_agent.partition("/")[0] or "driver"


def whole_lines(text: bytes) -> Iterator[_Line]:
    """The last line may be being written."""
    decode = msgspec.json.Decoder(_Line).decode
    for line in text.split(b"\n")[:-1]:
        yield decode(line)


def writes_beyond_binding(writes: Mapping[str, int], identity: str) -> int:
    """What an identity wrote, bindings left out."""
    binding = f"{identity} create pods/binding"
    return sum(n for word, n in writes.items() if word.startswith(f"{identity} ") and word != binding)
