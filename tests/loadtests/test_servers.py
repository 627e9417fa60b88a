# SPDX-License-Identifier: Apache-2.0
"""Measurements that start servers of their own, small: they end, and have what the targets ask for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loadtests import coldstart, verbs_http
from loadtests.record import read
from loadtests.reporting.thresholds import load
from loadtests.shared.processes import module


def judged(scenario: str) -> set[str]:
    """Figures that targets read from a scenario."""
    measures = [m for t in load().targets if t.scenario == scenario for m in (t.measure, t.over) if m]
    return {name for measure in measures for name in measure.figures or []}


def test_a_module_takes_no_settings_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "told.py").write_text("import os; print(sorted(k for k in os.environ if 'MUSTER' in k))")
    monkeypatch.setenv("MUSTER_CONFIG", "/nowhere")
    env = {"PYTHONPATH": str(tmp_path), "MUSTER_ACTIVE": "always"}
    with module("told", folder=tmp_path, env=env) as process:
        assert process.wait_exit(seconds=60) == 0
    assert (tmp_path / "told.log").read_text() == "['MUSTER_ACTIVE']\n"


def test_the_verbs_are_measured_against_an_echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = ["--nodes", "30", "40", "--calls", "3", "--runs", "2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["verbs_http", *flags])
    verbs_http.main()
    records = list(read(tmp_path))
    assert [(one.scenario, one.nodes, one.run) for one in records] == [
        ("verbs-http", nodes, run) for run in (1, 2) for nodes in (30, 40)
    ]
    for one in records:
        assert judged("verbs-http") <= one.figures.keys()
        assert all(value > 0 for value in one.figures.values())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_a_cold_start_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ["--nodes", "20", "--pods", "80", "--events", "50", "--churn", "20", "--seconds", "1"]
    monkeypatch.setattr("sys.argv", ["coldstart", *sizes, "--out", str(tmp_path)])
    coldstart.main()
    (record,) = read(tmp_path)
    assert judged("coldstart") <= record.figures.keys()
    assert record.figures["events_per_second"] > 0
    assert record.figures["churn_longest_stall_ms_wall"] < 10_000
