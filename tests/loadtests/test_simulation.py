# SPDX-License-Identifier: Apache-2.0
"""The simulation does what a person with paper and pencil would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import InputError
from loadtests.runner.accounting import sharing_figures
from loadtests.runner.ideal import simulated
from loadtests.runner.jobs import Wanted, jobs
from loadtests.simulation import Run, courses, last_end, main, simulate
from loadtests.workload import GangSpec, Workload, contended, deadlock


def gang(name: str, at: float, gpus: int, run: float, *, members: int = 1, priority: int = 0) -> GangSpec:
    return GangSpec(name, at, members, gpus, run, priority)


def on(nodes: int, *gangs: GangSpec) -> Workload:
    return Workload(nodes=nodes, gpus_per_node=8, gangs=gangs)


def waits(work: Workload, *, starvation_seconds: float = 0.0) -> dict[str, float]:
    """Seconds from arrival to start of those that ran."""
    runs = simulate(work, starvation_seconds=starvation_seconds)
    arrivals = {one.name: one.arrival_seconds for one in work.gangs}
    return {name: run.start_seconds - arrivals[name] for name, run in runs.items()}


def judged(work: Workload, runs: dict[str, Run], *, until: float) -> dict[str, float]:
    return sharing_figures(courses(work, runs), gpus=work.gpus, until=until)


def test_two_gangs_that_each_fill_the_node_run_one_after_the_other() -> None:
    work = on(1, gang("a", 0, 8, 10), gang("b", 0, 8, 10))
    assert simulate(work) == {"a": Run(0, 10), "b": Run(10, 20)}
    assert last_end(simulate(work)) == 20
    figures = judged(work, simulate(work), until=20)
    assert (figures["gpu_time_ratio"], figures["wait_longest_seconds"]) == (1.0, 10)


def test_a_small_gang_passes_a_large_one_that_does_not_fit_yet() -> None:
    work = on(1, gang("a", 0, 4, 10), gang("large", 1, 8, 5), gang("c", 2, 4, 3))
    assert waits(work) == {"a": 0, "large": 9, "c": 0}
    used = judged(work, simulate(work), until=15)["gpu_time_ratio"]
    assert used == pytest.approx((4 * 10 + 8 * 5 + 4 * 3) / (8 * 15))


def test_priority_goes_before_age() -> None:
    work = on(1, gang("a", 0, 8, 4), gang("b", 1, 8, 4), gang("c", 2, 8, 4, priority=1))
    assert waits(work) == {"a": 0, "c": 2, "b": 7}


def test_a_gang_waits_until_all_its_members_fit_at_once() -> None:
    work = on(2, gang("a", 0, 5, 4), gang("b", 1, 4, 4, members=4), gang("c", 2, 3, 1))
    assert waits(work) == {"a": 0, "b": 3, "c": 0}
    assert last_end(simulate(work)) == 8


def test_a_node_that_is_broken_into_is_filled_before_another_one_is_opened() -> None:
    assert waits(on(2, gang("a", 0, 4, 9), gang("b", 1, 4, 9), gang("whole", 2, 8, 1)))["whole"] == 0


def test_what_the_cluster_can_never_hold_does_not_run_and_keeps_nobody_waiting() -> None:
    work = on(1, gang("huge", 0, 8, 5, members=2), gang("b", 1, 8, 4))
    assert waits(work, starvation_seconds=1) == {"b": 0}
    assert judged(work, simulate(work), until=5)["gangs_unfinished"] == 1


def test_a_gang_that_starves_is_served_when_those_that_ran_have_ended() -> None:
    """One of the stream every 2 s, 4 s each, two at a time. The large one is first passed over at 2, starves
    at 5, and the one that came at 4 ends at 8."""
    stream = [gang(f"s{n}", 2 * n, 4, 4) for n in range(10)]
    work = on(1, stream[0], gang("large", 1, 8, 2), *stream[1:])
    assert waits(work)["large"] == 22 - 1
    assert waits(work, starvation_seconds=3)["large"] == 8 - 1


def test_simulated_gangs_are_judged_as_real_ones_are() -> None:
    """From the last member created, which is the arrival, to whole; those that never ran wait to the end."""
    work = on(1, gang("a", 5, 4, 10, members=2), gang("b", 6, 4, 10), gang("c", 7, 8, 1))
    runs = {"a": Run(5, 15), "b": Run(15, 25)}
    figures = judged(work, runs, until=25)
    assert figures["gpu_time_ratio"] == pytest.approx((8 * 10 + 4 * 10) / (8 * 20))
    assert (figures["gangs_unfinished"], figures["wait_longest_seconds"]) == (1, 25 - 7)
    assert figures["wait_p50_seconds"] == 9
    assert judged(work, {}, until=25)["gpu_time_ratio"] == 0.0
    assert last_end({}) == 0.0


def test_the_record_of_a_simulation_is_that_of_its_scenario_seed_and_contender(tmp_path: Path) -> None:
    impatient = tmp_path / "impatient.yaml"
    impatient.write_text('about: x\nsimulated: true\nmuster_settings: {starvation_seconds: "1"}')
    names = ("simulation", str(impatient))
    usual, other = map(simulated, jobs(Wanted(scenarios=("contended",), contenders=names, seed=2)))
    assert (usual.scenario, usual.contender, usual.nodes, usual.seed) == ("contended", "simulation", 32, 2)
    assert usual.gang_seconds != other.gang_seconds
    assert usual.figures["wait_longest_seconds"] == max(usual.gang_seconds)
    with pytest.raises(InputError, match="only `arrivals`"):
        simulated(jobs(Wanted(scenarios=("singles",), contenders=("simulation",)))[0])


@pytest.mark.parametrize("work", [contended(1), contended(2), deadlock(1), deadlock(1, nodes=16)])
@pytest.mark.parametrize("starvation_seconds", [0.0, 10.0])
def test_everybody_runs_whole_and_nothing_is_used_twice(work: Workload, starvation_seconds: float) -> None:
    runs = simulate(work, starvation_seconds=starvation_seconds)
    assert runs.keys() == {g.name for g in work.gangs}
    assert min(waits(work, starvation_seconds=starvation_seconds).values()) >= 0
    starts = [(runs[g.name].start_seconds, g) for g in work.gangs]
    for now, _ in starts:
        running = [g for start, g in starts if start <= now < start + g.run_seconds]
        assert sum(g.members * g.gpus for g in running) <= work.gpus
    assert 0.5 < judged(work, runs, until=last_end(runs))["gpu_time_ratio"] <= 1.0


def test_the_command_prints_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["simulation", "--workload", "deadlock", "--seed", "1", "2", "--nodes", "2"]
    )
    main()
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["WORKLOAD", "SEED", "NODES", "GANGS", "USEFUL"]
    assert [row.split()[:4] for row in rows] == [["deadlock", "1", "2", "60"], ["deadlock", "2", "2", "60"]]
