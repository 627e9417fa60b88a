# SPDX-License-Identifier: Apache-2.0
"""What one run of a load test leaves behind: one JSON line, complete enough to be judged on another day.

The runner writes records, the report reads them; neither knows the other. Figures are what was counted or
timed, never ratios: a ratio is made of two records by whoever compares them.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec

RECORDS = "records.jsonl"
"""File name inside a folder of results."""
RESULTS = Path(__file__).parent / "results"
"""Where folders of results are made when nothing else is said."""


def working_commit() -> str:
    """The short commit of the working tree, `+` appended when it has changes; `unknown` without git."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, check=True).stdout

    try:
        changed = git("status", "--porcelain", "--untracked-files=no").strip()
        return git("rev-parse", "--short", "HEAD").strip() + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run took place; figures of unlike machines are not compared."""

    cpus: int
    processor: str
    memory_gib: int
    kernel: str
    python: str

    @classmethod
    def here(cls) -> Self:
        """This machine."""
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(
            cpus=len(os.sched_getaffinity(0)),
            processor=_processor(),
            memory_gib=round(memory / 2**30),
            kernel=platform.release(),
            python=platform.python_version(),
        )


class Record(msgspec.Struct, kw_only=True):
    """One run of one scenario by one contender.

    `figures` are named numbers with their unit at the end of the name (`pods_per_second`,
    `muster_cpu_ms_per_pod`). `cpu_seconds` holds user + system seconds per process, between the first object
    created and the last pod bound. `api_writes` counts requests that changed something, from the API server's
    audit log, as `<identity> <verb> <resource>[/<subresource>]`. `filter_buckets` is a cumulative histogram:
    (upper bound in seconds, calls). `gang_seconds` has, for each gang, the time from its last member created
    to its last member bound.
    """

    scenario: str
    contender: str
    nodes: int
    run: int
    seed: int = 0
    began: str = msgspec.field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    commit: str = msgspec.field(default_factory=working_commit)
    machine: Machine = msgspec.field(default_factory=Machine.here)
    figures: dict[str, float] = {}
    cpu_seconds: dict[str, float] = {}
    api_writes: dict[str, int] = {}
    filter_buckets: list[tuple[float, int]] = []
    gang_seconds: list[float] = []


def new_folder() -> Path:
    """A folder of results named after this moment; not made yet."""
    return RESULTS / datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")


def append(folder: Path, *records: Record) -> None:
    """Add records to a folder of results, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RECORDS).open("ab") as file:
        file.writelines(msgspec.json.encode(record) + b"\n" for record in records)


def read(folder: Path) -> Iterator[Record]:
    """The records of a folder, in the order they were made. Raises OSError, msgspec.ValidationError."""
    with (folder / RECORDS).open("rb") as file:
        for line in file:
            yield msgspec.json.decode(line, type=Record)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
