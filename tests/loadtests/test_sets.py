# SPDX-License-Identifier: Apache-2.0
"""`python -m loadtests`: everything into one folder, and a report whatever has failed."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadtests import __main__ as sets
from loadtests.record import Record, append
from tests.cluster import wait_for

ROOT = Path(__file__).parents[2]


def measured(codes: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have measurements end with these codes and leave a record each; returns what was measured."""
    asked: list[str] = []
    coming = iter(codes)

    def measure(words: Sequence[str], folder: Path) -> int:
        asked.append(words[0])
        append(folder, Record(scenario=words[0], contender="muster", nodes=1, run=1))
        return next(coming)

    monkeypatch.setattr(sets, "measure", measure)
    return asked


@pytest.mark.parametrize(("codes", "code"), [([0, 0, 0], 0), ([0, 3, 1], 3)])
def test_the_first_failure_is_the_exit_code_and_costs_neither_the_rest_nor_the_report(
    codes: list[int],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = measured(codes, monkeypatch)
    assert sets.main(["short", "--out", str(tmp_path)]) == code
    assert sorted(asked) == ["inprocess", "run", "verbs_http"]
    assert (tmp_path / "report.html").exists()
    assert "verbs_http, 1 node" in capsys.readouterr().out


def test_what_is_interrupted_is_reported_as_far_as_it_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(words: Sequence[str], folder: Path) -> int:
        append(folder, Record(scenario="s", contender="muster", nodes=1, run=1))
        raise KeyboardInterrupt

    monkeypatch.setattr(sets, "measure", measure)
    assert sets.main(["full", "--out", str(tmp_path)]) == 130
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize("name", sets.SETS)
def test_every_command_of_a_set_knows_its_flags(name: str) -> None:
    for words in sets.SETS[name]:
        command = [sys.executable, "-m", f"loadtests.{words.split()[0]}", *words.split()[1:], "--help"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "--out" in done.stdout


def test_a_measurement_that_is_stopped_may_clean_up(tmp_path: Path) -> None:
    """The command is told to end, and its child ends first."""
    child = """
        import pathlib, signal, sys, time
        def leave(number, frame):
            pathlib.Path(sys.argv[-1], "cleaned").touch()
            sys.exit(0)
        signal.signal(signal.SIGTERM, leave)
        pathlib.Path(sys.argv[-1], "began").touch()
        while True:
            time.sleep(0.01)
    """
    package = tmp_path / "loadtests"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "slow.py").write_text(textwrap.dedent(child))
    parent = f"""
        import os, pathlib, sys
        from app.cli.serving import stopped_by_sigterm
        from loadtests.__main__ import measure
        os.chdir({str(tmp_path)!r})
        with stopped_by_sigterm():
            measure(["slow"], pathlib.Path({str(tmp_path)!r}))
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(parent)], cwd=ROOT)
    try:
        wait_for((tmp_path / "began").exists, seconds=60, what="the measurement has begun")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert (tmp_path / "cleaned").exists()
    finally:
        process.kill()
        process.wait()
