# SPDX-License-Identifier: Apache-2.0
"""Targets are data: faults are told with file and key, and measurements are written in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import InputError
from loadtests.material.bodies import SIZES, calls
from loadtests.material.objects import node_name
from loadtests.reporting.thresholds import Measure, Measured, load, write_measured
from tests.loadtests.records import record, thresholds

MEASURED = Measured(
    mean=1.25, spread=0.05, runs=5, machine="2 x Test, 4 GiB", date="2026-01-02", commit="abc"
)


def test_the_committed_file_is_valid_and_has_a_limit_for_every_call() -> None:
    known = load()
    assert len(known.targets) > 40
    made = {call.name for call in calls(max(SIZES), node_name(0))}
    assert {limit.call for limit in known.verbs.limits} == made


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        pytest.param("op: about", "op", id="an unknown operator"),
        pytest.param("target: many", "target", id="a target that is no number"),
        pytest.param("margn: 0.1", "margn", id="a misspelt key"),
        pytest.param("measure: {figures: [a], cpu: [b]}", "measure", id="figures and CPU at once"),
        pytest.param("measure: {contender: muster}", "measure", id="nothing to measure"),
        pytest.param("measure: {figures: []}", "figures", id="an empty sum"),
        pytest.param("nodes: 0", "nodes", id="no nodes"),
        pytest.param("margin: -0.1", "margin", id="a negative margin"),
        pytest.param("target: .nan", "target", id="not a number at all"),
        pytest.param("id: t0", "t0", id="two of the same name"),
        pytest.param("what: [", "YAML", id="not YAML"),
    ],
)
def test_a_fault_is_told_with_file_and_key(tmp_path: Path, target: str, complaint: str) -> None:
    file = thresholds(tmp_path, "", target)
    with pytest.raises(InputError) as caught:
        load(file)
    assert str(file) in str(caught.value) and complaint in str(caught.value)


def test_a_missing_file_is_told() -> None:
    with pytest.raises(InputError, match="cannot read /nowhere/at"):
        load(Path("/nowhere/at.yaml"))


def test_a_measure_sums_figures_or_cpu_milliseconds_and_divides() -> None:
    run = record(figures={"a": 3.0, "b": 4.0, "pods_bound": 2.0, "none": 0.0}, cpu_seconds={"x": 1, "y": 2})
    assert Measure(figures=["a", "b"]).of(run) == 7
    assert Measure(figures=["a", "b"], per="pods_bound").of(run) == 3.5
    assert Measure(cpu=["x", "y"], per="pods_bound").of(run) == 1500
    assert Measure(figures=["a", "absent"]).of(run) is None
    assert Measure(cpu=["absent"]).of(run) is None
    assert Measure(figures=["a"], per="none").of(run) is None


@pytest.mark.parametrize(
    "before", ["", "measured: {mean: 9, spread: 1, runs: 1, machine: m, date: d, commit: c}"]
)
def test_a_measurement_is_written_in_place_and_the_rest_stays(tmp_path: Path, before: str) -> None:
    file = thresholds(tmp_path, before, "target: 2", before)
    lines = file.read_text().splitlines()
    write_measured({"t0": MEASURED, "t2": MEASURED}, file)
    first, second, third = load(file).targets
    assert first.measured == third.measured == MEASURED
    assert second.measured is None and second.target == 2
    written = file.read_text().splitlines()
    assert all("margin:" in written[at - 1] for at, line in enumerate(written) if "measured:" in line)
    kept = [line for line in written if "measured:" not in line]
    assert kept == [line for line in lines if "measured:" not in line]


def test_a_measurement_spread_over_lines_is_replaced_whole(tmp_path: Path) -> None:
    file = thresholds(tmp_path, "measured: x", "")
    block = "".join(f"\n      {key}: 1" for key in ("mean", "spread", "runs"))
    block += "".join(f'\n      {key}: "1"' for key in ("machine", "date", "commit"))
    file.write_text(file.read_text().replace("measured: x", f"measured:{block}"))
    assert load(file).targets[0].measured is not None
    write_measured({"t0": MEASURED}, file)
    assert [target.measured for target in load(file).targets] == [MEASURED, None]
