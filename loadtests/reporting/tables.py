# SPDX-License-Identifier: Apache-2.0
"""The tables of a report as data: targets and verdicts, figures by contender, figures against other results.

Decides what is shown and how numbers read; judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from app.cli.table import table
from loadtests.record import Record
from loadtests.reporting.results import Results
from loadtests.reporting.statistics import Estimate
from loadtests.reporting.verdicts import Verdict

Row = tuple[str, ...]
ABSENT = "-"


class Table(msgspec.Struct, frozen=True):
    """A title, headers, and rows of finished text. The first column names the row."""

    title: str
    headers: Row
    rows: list[Row]


def as_text(shown: Table) -> str:
    """As kubectl would print it, under its title."""
    return f"\n{shown.title}\n{table(shown.headers, shown.rows)}"


def number(value: float) -> str:
    """Four significant digits, thousands set apart: 0.01234, 12.34, 1,234."""
    if value == 0 or not np.isfinite(value):
        return f"{value:g}"
    digits = max(0, 3 - int(np.floor(np.log10(abs(value)))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def targets(verdicts: Iterable[Verdict]) -> Table:
    """One row per target. The interval is that of the median; a single run has none."""
    headers = ("what", "target", "measured", "interval", "runs", "recorded", "verdict")
    return Table("Targets", headers, [_target(verdict) for verdict in verdicts])


def _target(verdict: Verdict) -> Row:
    target, found, known = verdict.target, verdict.found, verdict.target.measured
    goal = f"{target.op} {number(target.target)}"
    recorded = f"{number(known.mean)} ± {number(known.spread)}" if known else ABSENT
    if found is None:
        return target.what, goal, ABSENT, ABSENT, "0", recorded, verdict.word
    word = verdict.word + (", regressed" if verdict.regressed else "")
    return target.what, goal, number(found.median), _interval(found), str(found.runs), recorded, word


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return ABSENT
    return f"{number(found.low)} to {number(found.high)}"


def scenarios(results: Results, asked: Mapping[str, Sequence[str]] | None = None) -> Iterator[Table]:
    """For each case, medians over the runs: a row per figure, a column per contender.

    With `asked`, those scenarios alone, and of each the figures named.
    """
    for case in results.cases():
        if asked is not None and case.scenario not in asked:
            continue
        contenders = results.contenders(case)
        runs = {who: list(results.runs(case, who).values()) for who in contenders}
        counts = ("runs", *(str(len(runs[who])) for who in contenders))
        rows = [
            (name, *(_median(runs[who], read) for who in contenders))
            for name, read in _readings(runs)
            if asked is None or name in asked[case.scenario]
        ]
        yield Table(str(case), ("figure", *contenders), [counts, *rows])


Reading = Callable[[Record], float | None]


def _readings(runs: Mapping[str, Sequence[Record]]) -> Iterator[tuple[str, Reading]]:
    """All that records of one case hold, in the order it was written."""
    records = [record for some in runs.values() for record in some]
    for name in dict.fromkeys(name for record in records for name in record.figures):
        yield name, lambda record, name=name: record.figures.get(name)  # type: ignore[misc]
    for name in dict.fromkeys(name for record in records for name in record.cpu_seconds):
        yield f"cpu_seconds of {name}", lambda record, name=name: record.cpu_seconds.get(name)  # type: ignore[misc]
    if any(record.api_writes for record in records):
        yield "api_writes_per_pod", writes_per_pod


def writes_per_pod(record: Record) -> float | None:
    """All requests that changed something, whoever made them, per pod bound."""
    pods = record.figures.get("pods_bound")
    return sum(record.api_writes.values()) / pods if pods and record.api_writes else None


def median(records: Iterable[Record], read: Reading) -> float | None:
    """Over those records that have it; None when none has."""
    values = [value for record in records if (value := read(record)) is not None]
    return float(np.median(values)) if values else None


def _median(records: Iterable[Record], read: Reading) -> str:
    value = median(records, read)
    return ABSENT if value is None else number(value)


def comparison(now: Results, before: Results) -> Table:
    """Medians of figures that both results have, and how they have changed."""
    title = f"Against {', '.join(before.commits())}"
    headers = ("figure", "case", "contender", "before", "now", "ratio")
    return Table(title, headers, list(_changes(now, before)))


def _changes(now: Results, before: Results) -> Iterator[Row]:
    for case in now.cases():
        for who in now.contenders(case):
            new, old = now.runs(case, who).values(), before.runs(case, who).values()
            for name, read in _readings({who: list(new)}):
                after, earlier = median(new, read), median(old, read)
                if after is not None and earlier is not None:
                    ratio = number(after / earlier) if earlier else ABSENT
                    yield name, str(case), who, number(earlier), number(after), ratio
