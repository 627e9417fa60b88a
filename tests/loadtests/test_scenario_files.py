# SPDX-License-Identifier: Apache-2.0
"""Scenario and contender files: all that are shipped can be read, and a mistake is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from app.domain.errors import InputError
from loadtests.runner import contender, scenario
from loadtests.runner.contender import Contender
from loadtests.runner.jobs import Wanted, jobs, rotated
from loadtests.runner.scenario import Scenario
from loadtests.shared.strict import load, load_named


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_every_file_that_is_shipped_can_be_read() -> None:
    contenders = load_named(contender.FOLDER, Contender)
    assert {"plain", "native", "native-1s", "muster"} <= contenders.keys()
    for one in load_named(scenario.FOLDER, Scenario).values():
        for runs in one.sets.values():
            assert set(runs.contenders) <= contenders.keys()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("burst: [{count: 1, size: 3}]", "unknown field `size` - at `$.burst[0]`"),
        ("burst: [{count: 0}]", "`$.burst[0].count`"),
        ("burst: [{count: many}]", "`$.burst[0].count`"),
        ("arrivals: {workload: other, gangs: 3}", "`$.arrivals.workload`"),
        ("burst: [{count: 1}]\nbacklog: {waiting: 1, members: 1, gpus: 1, ends: 1}", "exactly one of"),
        ("", "exactly one of"),
        ("burst: [{count: 1}]\nmeasure: [speed]", "no figure 'speed'"),
        ("burst: [", "mine.yaml"),
    ],
)
def test_a_mistake_in_a_scenario_is_one_line_with_file_and_key(tmp_path: Path, text: str, told: str) -> None:
    usual = "" if "measure" in text else "measure: []\n"
    sets = "sets: {short: {nodes: [1], contenders: [plain]}}\nabout: x\n"
    file = written(tmp_path, usual + sets + text)
    with pytest.raises(InputError) as found:
        load(file, Scenario)
    message = str(found.value)
    assert message.startswith(f"{file}: ")
    assert told in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("backof_seconds: [1, 1]", "unknown field `backof_seconds`"),
        ("groups: labels", "`$.groups`"),
        ("gates: gangs", "`gates` need `muster: true`"),
        ("feature_gates: {GenericWorkload: maybe}", "`$.feature_gates[...]`"),
    ],
)
def test_a_mistake_in_a_contender_is_told_too(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError) as found:
        load(written(tmp_path, f"about: x\n{text}"), Contender)
    assert told in str(found.value)


def test_an_unknown_name_is_told_with_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"there is no 'gangz', only .*singles"):
        jobs(Wanted(scenarios=("gangz",)))
    with pytest.raises(InputError, match=r"there is no 'mustard', only .*muster"):
        jobs(Wanted(scenarios=("singles",), contenders=("mustard",)))
    with pytest.raises(InputError, match=r"deadlock-2.yaml: `sets` has no 'short'"):
        jobs(Wanted(scenarios=("deadlock-2",)))


def test_in_the_simulation_gangs_starve_after_as_long_as_with_muster(tmp_path: Path) -> None:
    contenders = load_named(contender.FOLDER, Contender)
    assert contenders["simulation"].starvation_seconds == contenders["muster"].starvation_seconds == 900
    mine = load(written(tmp_path, 'about: x\nmuster_settings: {starvation_seconds: "7.5"}'), Contender)
    assert mine.starvation_seconds == 7.5


def test_contenders_alternate_within_a_scenario_and_share_the_seed_of_a_run() -> None:
    todo = jobs(Wanted(scenarios=("singles",), contenders=("plain", "native", "muster"), repeats=4, seed=7))
    order = [job.contender_name for job in todo]
    assert order[:9] == [
        "plain",
        "native",
        "muster",
        "native",
        "muster",
        "plain",
        "muster",
        "plain",
        "native",
    ]
    assert order[9:] == order[:3]
    assert [job.run for job in todo] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert [job.seed for job in todo][::3] == [7, 8, 9, 10]


def test_the_command_line_has_the_last_word_on_size_and_contenders(tmp_path: Path) -> None:
    mine = tmp_path / "other.yaml"
    mine.write_text("about: another binary\nscheduler: /opt/scheduler\n")
    (only,) = jobs(Wanted(scenarios=("singles",), contenders=(str(mine),), nodes=7))
    assert (only.contender_name, only.nodes, only.run) == ("other", 7, 1)
    assert only.contender.binary == Path("/opt/scheduler")


def test_nothing_rotates_to_nothing() -> None:
    assert rotated([], 3) == []


def test_contenders_differ_only_in_what_their_files_say() -> None:
    configs = {
        name: yaml.safe_load(
            one.scheduler_config(kubeconfig=Path("/k"), extender_port=9 if one.muster else None)
        )
        for name, one in load_named(contender.FOLDER, Contender).items()
    }
    longest = {name: config.pop("podMaxBackoffSeconds") for name, config in configs.items()}
    assert (longest["native"], longest["native-1s"], longest["muster"]) == (10, 1, 1)
    assert all(len(configs.pop(f"muster{how}").pop("extenders")) == 2 for how in ("", "-gated", "-ungated"))
    plain = configs["plain"]
    assert "extenders" not in plain
    assert (plain["percentageOfNodesToScore"], plain["podInitialBackoffSeconds"]) == (0, 1)
    assert all(config == plain for config in configs.values())


def test_a_share_scales_what_is_created_but_never_to_nothing() -> None:
    one = load_named(scenario.FOLDER, Scenario, ["mixed"])["mixed"]
    whole = one.tasks(nodes=5000, seed=1)
    assert sum(task.members for task in whole) == 1000
    assert len(one.tasks(nodes=5000, seed=1, share=0.1)) == len(whole) // 10
    assert [(t.members, t.grouped, t.gpus) for t in one.tasks(nodes=5000, seed=1, share=0.001)] == [
        (8, True, 8),
        (4, True, 1),
        (1, False, 1),
        (1, False, 0),
    ]


def test_a_backlog_is_what_fits_and_what_waits() -> None:
    one = load_named(scenario.FOLDER, Scenario, ["backlog"])["backlog"]
    assert one.fitting(nodes=10) == 10
    assert len(one.tasks(nodes=10, seed=1)) == 510


def test_a_seed_decides_the_arrivals() -> None:
    one = load_named(scenario.FOLDER, Scenario, ["contended"])["contended"]
    assert one.tasks(nodes=32, seed=1) == one.tasks(nodes=32, seed=1) != one.tasks(nodes=32, seed=2)
    assert len(one.tasks(nodes=32, seed=1)) == 400
