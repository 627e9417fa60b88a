# SPDX-License-Identifier: Apache-2.0
"""Made-up records, for temporary folders only, and targets to hold them against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loadtests.record import Machine, Record, append

HERE = Machine(cpus=2, processor="Test", memory_gib=4, kernel="6.0", python="3.11")
LIMITS = "verbs:\n  factor: 4\n  limits: []\n"


def record(contender: str = "muster", run: int = 0, **rest: Any) -> Record:
    """One run of gangs on 10 nodes."""
    given: dict[str, Any] = {"scenario": "gangs", "nodes": 10, "machine": HERE, "commit": "abc", **rest}
    return Record(contender=contender, run=run, **given)


def folder(path: Path, *records: Record) -> Path:
    """A folder of results with these records."""
    for one in records:
        append(path, one)
    return path


def thresholds(path: Path, *targets: str) -> Path:
    """A file with these targets: each the lines that differ from the usual ratio to native."""
    usual = {
        "what": "pods/s over native", "scenario": "gangs", "nodes": "10",
        "measure": "{figures: [pods_per_second]}", "op": '">="', "target": "1.1", "margin": "0.1",
    }  # fmt: skip
    lines = ["# a comment", "targets:"]
    for index, text in enumerate(targets):
        given = dict(line.split(": ", 1) for line in text.splitlines() if line)
        lines.append(f"  - id: t{index}")
        lines += [f"    {key}: {value}" for key, value in {**usual, **given}.items()]
    file = path / "thresholds.yaml"
    file.write_text("\n".join(lines if targets else ["targets: []"]) + "\n" + LIMITS)
    return file
