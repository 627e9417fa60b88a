# SPDX-License-Identifier: Apache-2.0
"""The command line, what becomes of a run that fails, and one small scenario on the real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadtests import run
from loadtests.record import RESULTS, Record, append, read
from loadtests.runner import contender
from loadtests.runner.churn import Steady
from loadtests.runner.contender import Contender
from loadtests.runner.jobs import Job, Wanted, jobs
from loadtests.runner.progress import Lines
from loadtests.runner.scenario import Batch, Churn, Runs, Scenario
from loadtests.shared.strict import load_named
from tests.cluster import wait_for


def test_the_command_line_becomes_what_is_wanted() -> None:
    words = "--set full --scenario cpu singles --contender muster --repeat 2 --nodes 9 --seed 4 --out /x"
    wanted, folder = run.arguments(words.split())
    assert folder == Path("/x")
    assert wanted == Wanted(
        of_set="full", scenarios=("cpu", "singles"), contenders=("muster",), repeats=2, nodes=9, seed=4
    )


def test_records_go_to_a_folder_of_the_moment_unless_told() -> None:
    wanted, folder = run.arguments([])
    assert wanted == Wanted()
    assert folder.parent == RESULTS


@pytest.mark.parametrize("words", [["--set", "long"], ["--repeat", "0"], ["--nodes", "x"]])
def test_unusable_words_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run.arguments(words)
    assert left.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_an_unknown_scenario_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["run", "--scenario", "nope"])
    with pytest.raises(SystemExit) as left:
        run.main()
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("loadtests: scenarios: there is no 'nope', only ")


def test_a_run_that_fails_is_one_line_and_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = jobs(Wanted(scenarios=("singles",), contenders=("plain", "muster")))

    def run_one(job: Job, told: object) -> Record:
        if job.contender_name == "plain":
            raise RuntimeError("the scheduler\nis gone")
        return Record(scenario=job.scenario_name, contender="muster", nodes=job.nodes, run=job.run)

    monkeypatch.setattr(run, "run_one", run_one)
    assert run.run_all(todo, tmp_path, Lines()) == 1
    assert "FAILED singles, 5,000 nodes, plain, run 1: the scheduler is gone\n" in capsys.readouterr().err
    assert [record.contender for record in read(tmp_path)] == ["muster"]


def test_what_a_scenario_asks_for_is_shown_and_a_dash_for_what_was_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = jobs(Wanted(scenarios=("singles",)))
    figures = {"pods_per_second": 12.345, "setup_seconds": 9.0}
    append(
        tmp_path,
        Record(scenario="singles", contender="muster", nodes=5000, run=1, figures=figures),
        Record(scenario="singles", contender="plain", nodes=5000, run=1),
        Record(scenario="not asked for", contender="plain", nodes=5000, run=1),
    )
    run.show(tmp_path, todo)
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines() if line] == [
        ["singles,", "5,000", "nodes"],
        ["FIGURE", "PLAIN", "MUSTER"],
        ["runs", "1", "1"],
        ["pods_per_second", "-", "12.35"],
    ]
    assert str(tmp_path) in shown.err


def test_where_nothing_was_measured_only_the_folder_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.show(tmp_path, jobs(Wanted(scenarios=("singles",))))
    assert capsys.readouterr().out == ""


def test_a_steady_rate_is_kept_and_an_error_is_told() -> None:
    numbers: list[int] = []
    steady = Steady(numbers.append, rate=500)
    steady.start()
    wait_for(lambda: len(numbers) >= 50, seconds=30, what="fifty calls")
    steady.stop()
    assert len(set(numbers)) == len(numbers), "no call is made twice"
    assert 0 < steady.achieved <= 600, "never ahead of its rate"

    failing = Steady(lambda number: 1 // 0, rate=500)
    failing.start()
    wait_for(lambda: failing.failed, seconds=30, what="a call fails")
    failing.stop()
    with pytest.raises(ZeroDivisionError):
        _ = failing.achieved


TINY = Scenario(
    about="two gangs, a single pod and a CPU pod beside a little churn",
    measure=("pods_per_second",),
    sets={"short": Runs(nodes=(3,), contenders=())},
    burst=(Batch(count=2, members=3, gpus=2), Batch(count=1, gpus=1), Batch(count=1)),
    churn=Churn(node_updates_per_second=20, pod_updates_per_second=20),
)


@pytest.mark.real
@pytest.mark.parametrize("name", ["muster", "native"])
def test_a_small_scenario_is_driven_and_measured(name: str, tmp_path: Path) -> None:
    job = Job(
        scenario_name="tiny", scenario=TINY, contender_name=name,
        contender=load_named(contender.FOLDER, Contender, [name])[name],
        nodes=3, run=1, seed=1, limit_seconds=60.0, share=1.0,
    )  # fmt: skip
    steps: list[str] = []
    record = run.run_one(job, lambda what, done, total: steps.append(what))

    figures = record.figures
    assert (figures["pods_bound"], figures["timed_out"]) == (8, 0)
    assert figures["pods_per_second"] == pytest.approx(8 / figures["seconds"], rel=0.01)
    # How far apart members are bound depends on the machine. Nobody waits for a sibling that does not come:
    assert figures["partly_held_over_1s_gpu_seconds"] <= figures["partly_held_gpu_seconds"] < 60
    assert figures["node_updates_per_second"] > 0
    assert len(record.gang_seconds) == 4
    assert all(record.cpu_seconds[process] > 0 for process in ("kube-apiserver", "driver"))
    assert record.api_writes["driver create pods"] == 8
    assert record.api_writes["driver create podgroups"] == 2
    binder = "muster" if name == "muster" else "scheduler"
    assert record.api_writes[f"{binder} create pods/binding"] == 8
    if name == "muster":
        assert figures["filter_calls_per_bound_member"] >= 1
        assert figures["muster_writes_per_pod"] > 0
        assert record.filter_buckets[-1][1] >= 8
    assert "pods bound" in steps
