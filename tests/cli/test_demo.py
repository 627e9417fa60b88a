# SPDX-License-Identifier: Apache-2.0
"""`muster demo` ends as it must, says so when it does not, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from typing import Any

import msgspec
import orjson
import pytest
from click.testing import CliRunner

from app.cli import demo, serving
from app.cli.client import NoAnswerError
from app.cli.main import app
from app.cli.scheduler import View, view_of
from app.codec.snapshot import read

MUSTER = [sys.executable, "-P", "-m", "app", "demo"]
SECONDS = 120
RACE = next(scenario for scenario in demo.SCENARIOS if scenario.name == "race")


def group_is_gone(leader: int) -> bool:
    """Whether no process of the group is left."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def played() -> tuple[int, str, str, bool]:
    """Exit code, both outputs, and whether everything it started has ended."""
    environment = os.environ | {"MUSTER_SCHEDULER_NAME": "another", "MUSTER_PORT": "1"}
    with subprocess.Popen(
        MUSTER,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    ) as process:
        out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err, group_is_gone(process.pid)


def part(out: str, name: str) -> list[str]:
    """The lines of one scenario."""
    return next(text for text in out.split("\n\n") if text.startswith(f"{name}:")).splitlines()


def rows(out: str, name: str) -> list[dict[str, str]]:
    """The table of one scenario."""
    head, *lines = [re.split(r" {3,}", line) for line in part(out, name)[2:-1]]
    return [dict(zip(head, line, strict=True)) for line in lines]


def test_the_whole_demo_ends_well_whatever_settings_are_in_the_environment(
    played: tuple[int, str, str, bool],
) -> None:
    code, out, err, gone = played
    assert (code, err) == (0, "")
    assert gone, "the service outlived the demo"
    assert [line for line in out.splitlines() if line.startswith("NOT")] == []
    assert sum(line.startswith("as expected: ") for line in out.splitlines()) == len(demo.SCENARIOS)


def test_every_scenario_says_what_to_expect_then_shows_then_judges(
    played: tuple[int, str, str, bool],
) -> None:
    for scenario in demo.SCENARIOS:
        lines = part(played[1], scenario.name)
        assert lines[:2] == [f"{scenario.name}: {scenario.title}", scenario.expectation]
        assert re.split(r" {3,}", lines[2]) == ["NAMESPACE", "NAME", "GPU", "STATUS", "NODE", "REASON"]
        assert lines[-1].startswith("as expected: gang ")


def test_of_six_members_with_three_seats_three_are_bound(played: tuple[int, str, str, bool]) -> None:
    seats = [row for row in rows(played[1], "three-of-six") if row["NAME"].startswith("seats")]
    assert sorted(row["STATUS"] for row in seats) == ["Bound"] * 3 + ["SchedulingGated"] * 3
    assert sorted(row["NODE"] for row in seats if row["STATUS"] == "Bound") == ["gpu-a", "gpu-a", "gpu-b"]
    assert all(row["REASON"] != "<none>" for row in seats if row["STATUS"] != "Bound")
    assert part(played[1], "three-of-six")[-1].endswith("has 3 bound, 3 pending")


def test_with_a_minimum_of_four_nothing_is_bound(played: tuple[int, str, str, bool]) -> None:
    seats = [row for row in rows(played[1], "four-of-six") if row["NAME"].startswith("seats")]
    assert [(row["STATUS"], row["NODE"]) for row in seats] == [("SchedulingGated", "<none>")] * 6
    assert part(played[1], "four-of-six")[-1].endswith("has 0 bound, 6 pending")


def test_of_two_racing_gangs_one_runs_whole_and_the_other_names_it(
    played: tuple[int, str, str, bool],
) -> None:
    gangs: dict[str, list[dict[str, str]]] = {}
    for row in rows(played[1], "race"):
        gangs.setdefault(row["NAME"].partition("-")[0], []).append(row)
    runs, waits = sorted(gangs, key=lambda gang: gangs[gang][0]["STATUS"])
    assert [row["STATUS"] for row in gangs[runs]] == ["Bound", "Bound"]
    assert {row["NODE"] for row in gangs[runs]} == {"gpu-a", "gpu-b"}
    assert [row["STATUS"] for row in gangs[waits]] == ["Pending", "Pending"]
    assert all(f"race/{runs}" in row["REASON"] for row in gangs[waits])


def test_a_launcher_is_bound_with_its_workers_or_not_at_all(played: tuple[int, str, str, bool]) -> None:
    by_name = {row["NAME"]: row for row in rows(played[1], "launcher")}
    bound = {name.partition("-")[0] for name, row in by_name.items() if row["STATUS"] == "Bound"}
    assert len(bound) == 1
    gang = bound.pop()
    assert all((row["STATUS"] == "Bound") == name.startswith(gang) for name, row in by_name.items())
    assert by_name[f"{gang}-launcher"]["NODE"] == "cpu-a"


def test_one_scenario_can_be_played_alone() -> None:
    done = subprocess.run(
        [*MUSTER, "--scenario", "race"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line.startswith("race:")] == [
        "race"
    ]
    assert "seats" not in done.stdout


def test_an_unknown_scenario_is_one_line_and_exit_code_2() -> None:
    done = subprocess.run(
        [*MUSTER, "--scenario", "nope"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "muster: --scenario: there is no scenario 'nope'; choose one of "
        "three-of-six, four-of-six, race, launcher"
    ]


def test_another_outcome_than_expected_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = msgspec.structs.replace(demo.SCENARIOS[1], outcome=((6, 0),))
    monkeypatch.setattr(demo, "SCENARIOS", (wrong,))
    monkeypatch.setattr(demo, "LIMIT_SECONDS", 1.0)

    result = CliRunner().invoke(app, ["demo"])

    assert result.exit_code == 1
    verdict = result.stdout.splitlines()[-1]
    assert verdict == "NOT as expected: gang four-of-six/seats has 0 bound, 6 pending"


def test_a_service_that_does_not_start_is_an_error_that_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(NoAnswerError, match="muster serve ended with 1: no output"):
        demo.demo("race")
    assert capsys.readouterr().out.count("\n") == 2


def test_sigterm_takes_the_service_along() -> None:
    with subprocess.Popen(MUSTER, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
    assert group_is_gone(process.pid)


def test_a_sigterm_while_the_service_is_being_started_leaves_no_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    race = demo.SNAPSHOTS / "race.json"
    with pytest.raises(SystemExit) as left, serving.stopped_by_sigterm(), serving.serving(race):
        pytest.fail("the signal was lost")
    assert left.value.code == 128 + signal.SIGTERM
    assert [process.returncode is not None for process in started] == [True]


# -- the judgement


def race(*, events: str = "", nodes: tuple[str, str] = ("gpu-a", "gpu-b")) -> View:
    """The race as it must end but for what is given: `red` is bound, `blue` has these events."""
    items = read(demo.SNAPSHOTS / "race.json")
    for item in [item for item in items if item["kind"] == "Pod"]:
        meta: dict[str, Any] = item["metadata"]
        if meta["name"].startswith("red"):
            item["spec"]["nodeName"] = nodes[int(meta["name"][-1])]
        elif events:
            items.append({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": meta["name"], "namespace": "race"},
                "involvedObject": {"kind": "Pod", "uid": meta["uid"]}, "message": events,
            })  # fmt: skip
    return view_of(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest.mark.parametrize(
    ("view", "text"),
    [
        pytest.param(race(events="gang race/red holds 16"), "", id="as it must be"),
        pytest.param(race(), "pod race/blue-0 has no event that tells why it waits", id="nobody says why"),
        pytest.param(
            race(events="busy"),
            "the event of pod race/blue-0 does not name the gang that blocks it",
            id="the blocker stays unnamed",
        ),
        pytest.param(
            race(events="gang race/red holds 16", nodes=("gpu-a", "gpu-a")),
            "node gpu-a has more nvidia.com/gpu bound than it has",
            id="a node is over-committed",
        ),
    ],
)
def test_the_judgement_names_what_is_wrong(view: View, text: str) -> None:
    assert demo.problem(RACE, view) == text


def test_the_bundled_snapshots_are_those_of_the_scenarios() -> None:
    assert {file.stem for file in demo.SNAPSHOTS.glob("*.json")} == {s.name for s in demo.SCENARIOS}
