# SPDX-License-Identifier: Apache-2.0
"""The simulation does what a person with paper and pencil would do."""

from __future__ import annotations

import pytest

from loadtests.simulation import Run, main, measure, simulate
from loadtests.workload import GangSpec, Workload, contended, deadlock


def gang(name: str, at: float, gpus: int, run: float, *, members: int = 1, priority: int = 0) -> GangSpec:
    return GangSpec(name, at, members, gpus, run, priority)


def on(nodes: int, *gangs: GangSpec) -> Workload:
    return Workload(nodes=nodes, gpus_per_node=8, gangs=gangs)


def test_two_gangs_that_each_fill_the_node_run_one_after_the_other() -> None:
    result = simulate(on(1, gang("a", 0, 8, 10), gang("b", 0, 8, 10)))
    assert result.waits == {"a": 0, "b": 10}
    assert (result.useful, result.makespan_seconds, result.longest_wait_seconds) == (1.0, 20, 10)


def test_a_small_gang_passes_a_large_one_that_does_not_fit_yet() -> None:
    result = simulate(on(1, gang("a", 0, 4, 10), gang("large", 1, 8, 5), gang("c", 2, 4, 3)))
    assert result.waits == {"a": 0, "large": 9, "c": 0}
    assert result.useful == pytest.approx((4 * 10 + 8 * 5 + 4 * 3) / (8 * 15))


def test_priority_goes_before_age() -> None:
    result = simulate(on(1, gang("a", 0, 8, 4), gang("b", 1, 8, 4), gang("c", 2, 8, 4, priority=1)))
    assert result.waits == {"a": 0, "c": 2, "b": 7}


def test_a_gang_waits_until_all_its_members_fit_at_once() -> None:
    result = simulate(on(2, gang("a", 0, 5, 4), gang("b", 1, 4, 4, members=4), gang("c", 2, 3, 1)))
    assert result.waits == {"a": 0, "b": 3, "c": 0}
    assert result.makespan_seconds == 8


def test_a_node_that_is_broken_into_is_filled_before_another_one_is_opened() -> None:
    result = simulate(on(2, gang("a", 0, 4, 9), gang("b", 1, 4, 9), gang("whole", 2, 8, 1)))
    assert result.waits["whole"] == 0


def test_what_the_cluster_can_never_hold_is_named_and_keeps_nobody_waiting() -> None:
    result = simulate(on(1, gang("huge", 0, 8, 5, members=2), gang("b", 1, 8, 4)), starvation_seconds=1)
    assert (result.never, result.waits) == (("huge",), {"b": 0})


def test_a_gang_that_starves_is_served_when_those_that_ran_have_ended() -> None:
    """One of the stream every 2 s, 4 s each, two at a time. The large one is first passed over at 2, starves
    at 5, and the one that came at 4 ends at 8."""
    stream = [gang(f"s{n}", 2 * n, 4, 4) for n in range(10)]
    work = on(1, stream[0], gang("large", 1, 8, 2), *stream[1:])
    assert simulate(work).waits["large"] == 22 - 1
    assert simulate(work, starvation_seconds=3).waits["large"] == 8 - 1


def test_a_window_that_closes_early_counts_what_ran_inside_of_it() -> None:
    work = on(1, gang("a", 5, 8, 10), gang("b", 6, 4, 10), gang("c", 7, 8, 1))
    runs = {"a": Run(5, 15), "b": Run(15, 25)}
    result = measure(work, runs, until_seconds=25)
    assert result.useful == pytest.approx((8 * 10 + 4 * 10) / (8 * 20))
    assert (result.never, result.waits) == (("c",), {"a": 0, "b": 9})
    assert measure(work, runs, until_seconds=20).useful == pytest.approx((8 * 10 + 4 * 5) / (8 * 15))
    assert measure(work, runs, until_seconds=45).useful == pytest.approx((8 * 10 + 4 * 10) / (8 * 40))
    assert measure(work, runs | {"c": Run(25, 26)}, until_seconds=45).makespan_seconds == 21
    assert measure(work, {}).useful == 0.0


@pytest.mark.parametrize("work", [contended(1), contended(2), deadlock(1), deadlock(1, nodes=16)])
@pytest.mark.parametrize("starvation_seconds", [0.0, 10.0])
def test_everybody_runs_whole_and_nothing_is_used_twice(work: Workload, starvation_seconds: float) -> None:
    result = simulate(work, starvation_seconds=starvation_seconds)
    assert result.never == ()
    assert min(result.waits.values()) >= 0
    starts = [(g.arrival_seconds + result.waits[g.name], g) for g in work.gangs]
    for now, _ in starts:
        running = [g for start, g in starts if start <= now < start + g.run_seconds]
        assert sum(g.members * g.gpus for g in running) <= work.gpus
    assert 0.5 < result.useful <= 1.0


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
