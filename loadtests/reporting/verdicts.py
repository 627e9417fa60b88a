# SPDX-License-Identifier: Apache-2.0
"""Targets held against results: met, missed, or not measured, and whether it has become worse than it was.

Both sides of a ratio are of the same run: contenders alternate, so what slows the machine down slows both.
The median over the runs decides; the interval says how much to trust it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from loadtests.record import Machine
from loadtests.reporting.results import Case, Results
from loadtests.reporting.statistics import Estimate
from loadtests.reporting.thresholds import Measure, Measured, Target

MET, MISSED, NOT_MEASURED = "met", "missed", "not measured"
SIGNIFICANT = 6
"""Digits that are written down; no timing is known better."""


class Verdict(msgspec.Struct, frozen=True):
    """A target, what was found of it (None: not measured), and whether that is a regression."""

    target: Target
    found: Estimate | None
    regressed: bool = False

    @property
    def word(self) -> str:
        """`met`, `missed` or `not measured`."""
        if self.found is None:
            return NOT_MEASURED
        return MET if self.target.reached(self.found.median) else MISSED

    @property
    def good(self) -> bool:
        """Nothing speaks against it: what was not measured is not held against anybody."""
        return self.word != MISSED and not self.regressed


def judge(targets: Iterable[Target], results: Results) -> list[Verdict]:
    """One verdict per target, in their order."""
    here = {machine_line(machine) for machine in results.machines()}
    return [_verdict(target, results, here) for target in targets]


def _verdict(target: Target, results: Results, machines: set[str]) -> Verdict:
    values = list(per_run(target, results).values())
    if not values:
        return Verdict(target, None)
    found = Estimate.of(values)
    comparable = target.measured is not None and machines == {target.measured.machine}
    return Verdict(target, found, regressed=comparable and target.regressed(found.median))


def per_run(target: Target, results: Results) -> dict[int, float]:
    """The target's quantity in each run that has all it takes."""
    values = _values(target, target.measure, results)
    if target.over is None:
        return values
    base = _values(target, target.over, results)
    return {run: value / base[run] for run, value in values.items() if base.get(run)}


def _values(target: Target, measure: Measure, results: Results) -> dict[int, float]:
    case = Case(target.scenario, measure.nodes or target.nodes)
    found = {run: measure.of(record) for run, record in results.runs(case, measure.contender).items()}
    return {run: value for run, value in found.items() if value is not None}


def to_write_down(verdicts: Iterable[Verdict], results: Results) -> dict[str, Measured]:
    """What `thresholds.yaml` is to remember of the targets that were measured, by target id."""
    machine = "; ".join(map(machine_line, results.machines()))
    commit = ", ".join(results.commits())
    return {
        verdict.target.id: Measured(
            mean=_rounded(found.mean), spread=_rounded(found.spread), runs=found.runs, machine=machine,
            date=max((record.began for record in results), default="")[:10], commit=commit,
        )
        for verdict in verdicts if (found := verdict.found) is not None
    }  # fmt: skip


def machine_line(machine: Machine) -> str:
    """Enough to tell whether figures may be compared."""
    return f"{machine.cpus} x {machine.processor}, {machine.memory_gib} GiB"


def _rounded(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT}g}")
