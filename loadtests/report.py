# SPDX-License-Identifier: Apache-2.0
"""`python -m loadtests.report DIR`: what a folder of results says, as tables, plots and one HTML page.

Reads records and `thresholds.yaml`; measures nothing. Writes `report.html` and the plots beside the records.
Exit codes: 0 reported, 1 with `--judge` when a target is missed or a figure has regressed, 2 unusable input.

    python -m loadtests.report DIR [--against OTHER_DIR] [--judge] [--update-thresholds]
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from app.domain.errors import InputError
from loadtests.reporting import tables, thresholds
from loadtests.reporting.page import Plot, page
from loadtests.reporting.results import Results
from loadtests.reporting.verdicts import Verdict, judge, machine_line, to_write_down

PAGE = "report.html"


def main(argv: Sequence[str] | None = None) -> int:
    """Report; returns the exit code."""
    args = _arguments(argv)
    try:
        return _report(args)
    except InputError as error:
        print("report:", *str(error).split(), file=sys.stderr)
        return 2


def _report(args: argparse.Namespace) -> int:
    results = Results.of(args.folder)
    verdicts = judge(thresholds.load(args.thresholds).targets, results)
    shown = [tables.targets(verdicts), *tables.scenarios(results)]
    if args.against:
        shown.append(tables.comparison(results, Results.of(args.against)))
    head = [summary(verdicts), *provenance(results)]
    print(*head, *map(tables.as_text, shown), sep="\n")
    plots = _plots(results, args.folder)
    (args.folder / PAGE).write_text(page(head=head, tables=shown, plots=plots))
    print(f"\nreport: {args.folder / PAGE}")
    if args.update_thresholds:
        thresholds.write_measured(to_write_down(verdicts, results), args.thresholds)
    return 1 if args.judge and not all(verdict.good for verdict in verdicts) else 0


def summary(verdicts: Iterable[Verdict]) -> str:
    """One sentence."""
    verdicts = list(verdicts)
    words = Counter(verdict.word for verdict in verdicts)
    regressed = sum(verdict.regressed for verdict in verdicts)
    counts = ", ".join(f"{words[word]} {word}" for word in ("met", "missed", "not measured"))
    return f"{len(verdicts)} targets: {counts}; {regressed} worse than recorded."


def provenance(results: Results) -> list[str]:
    """Where, when and what; a warning where ratios between records are doubtful."""
    began = sorted(record.began[:16].replace("T", " ") for record in results)
    lines = [f"Machine: {machine_line(m)}, Linux {m.kernel}, Python {m.python}" for m in results.machines()]
    lines.append(f"Runs: {len(began)}, begun {began[0]} to {began[-1]} UTC")
    lines.append(f"Commit: {', '.join(results.commits())}")
    if len(results.machines()) > 1 or len(results.commits()) > 1:
        lines.append("Warning: records of unlike machines or commits; ratios between them say little.")
    return lines


def _plots(results: Results, folder: Path) -> list[Plot]:
    if importlib.util.find_spec("matplotlib") is None:
        print("report: no plots, matplotlib is not installed (`make load` installs it)", file=sys.stderr)
        return []
    from loadtests.reporting.plots import draw  # noqa: PLC0415 - the load tests' environment alone has it

    return draw(results, folder)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Report and judge the results of load tests.")
    parser.add_argument("folder", type=Path, help="folder of results")
    parser.add_argument("--against", type=Path, metavar="DIR", help="show how figures have changed since")
    parser.add_argument("--judge", action="store_true", help="exit 1 on a missed target or a regression")
    parser.add_argument("--update-thresholds", action="store_true", help="write what was measured into them")
    parser.add_argument("--thresholds", type=Path, default=thresholds.FILE, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
