# SPDX-License-Identifier: Apache-2.0
"""Records as tables for a terminal, kubectl-like: one per scenario, one row per run. Judges nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from loadtests.record import RECORDS, Record, read


def tables(folder: Path, measures: Mapping[str, Sequence[str]]) -> str:
    """The records of a folder, with the figures that each scenario asks for."""
    records = list(read(folder)) if (folder / RECORDS).exists() else []
    found = []
    for scenario, measure in measures.items():
        mine = [record for record in records if record.scenario == scenario]
        if mine:
            found.append(table(mine, measure))
    return "\n\n".join(found)


def table(records: Iterable[Record], measure: Sequence[str]) -> str:
    """One scenario."""
    head = ["SCENARIO", "NODES", "CONTENDER", "RUN", *(name.upper().replace("_", "-") for name in measure)]
    rows = [
        [record.scenario, str(record.nodes), record.contender, str(record.run), *_figures(record, measure)]
        for record in records
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = (
        "   ".join(word.ljust(width) for word, width in zip(row, widths, strict=True))
        for row in [head, *rows]
    )
    return "\n".join(line.rstrip() for line in lines)


def _figures(record: Record, measure: Sequence[str]) -> list[str]:
    return [_number(record.figures[name]) if name in record.figures else "-" for name in measure]


def _number(value: float) -> str:
    return f"{value:.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:.3g}"
