# SPDX-License-Identifier: Apache-2.0
"""Muster's in-process figures, small: they grow as they should, whatever the machine.

Judged by ratios of CPU time within one run, with margins that only a change of kind exceeds: something that
was per call has become per node, or per node has become per node and gang.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from loadtests import inprocess
from loadtests.record import read
from loadtests.reporting.thresholds import load

FEW, MANY = 1_000, 15_000
TURNS = 15
ATTEMPTS = 3
"""A busy machine spoils a measurement now and then; a change of kind spoils every one."""
WIDE = 2
"""How much worse than its target a growth may be here."""
FLAT = 3
"""What still counts as not growing: caches of the processor are smaller than 15,000 nodes."""
DECODED = 6
"""How many times the cost of decoding and encoding its body an answer may take."""


def within(limit: float, ratio: Callable[[], float]) -> None:
    """The ratio, measured anew, stays within the limit."""
    found: list[float] = []
    while len(found) < ATTEMPTS:
        found.append(ratio())
        if found[-1] <= limit:
            return
    pytest.fail(f"beyond {limit:g} each time: {found}")


def target(identity: str) -> float:
    """A target of thresholds.yaml, made wide."""
    return next(target.target for target in load().targets if target.id == identity) * WIDE


@pytest.mark.parametrize("gang", ["64x8", "512x1"])
def test_a_plan_grows_no_more_than_the_cluster(gang: str) -> None:
    def plan(nodes: int) -> float:
        return inprocess.plans(nodes, TURNS)[f"plan_{gang}_p50_ms"]

    within(target(f"plan-{gang}-growth"), lambda: plan(MANY) / plan(FEW))


def test_an_answer_to_one_name_does_not_grow_with_the_cluster() -> None:
    def answer(nodes: int) -> float:
        return asyncio.run(inprocess.verbs(nodes, TURNS))["filter_planned_one_name_p50_ms"]

    within(FLAT, lambda: answer(MANY) / answer(FEW))


@pytest.mark.parametrize("answer", ["filter_planned", "filter_refusal", "filter_cpu"])
def test_an_answer_costs_what_its_body_costs(answer: str) -> None:
    def ratio() -> float:
        figures = asyncio.run(inprocess.verbs(5_000, TURNS))
        return figures[f"{answer}_p50_ms"] / figures["echo_p50_ms"]

    within(DECODED, ratio)


@pytest.mark.parametrize("kind", ["node", "pod"])
def test_an_event_costs_the_same_in_a_larger_cluster(kind: str) -> None:
    figure = f"{kind}_events_per_second"
    within(FLAT, lambda: inprocess.events(400)[figure] / inprocess.events(4_000)[figure])


def test_a_replan_grows_no_more_than_the_backlog() -> None:
    def replan(gangs: int) -> float:
        return asyncio.run(inprocess.backlog(gangs, TURNS))[f"replan_{gangs}_p50_ms"]

    within(8 * WIDE, lambda: replan(800) / replan(100))


def test_the_command_prints_and_keeps_a_record_per_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--nodes", "150", "200", "--times", "2", "--gangs", "20", "--runs", "2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["inprocess", *flags])
    inprocess.main()
    assert "FIGURE" in capsys.readouterr().out
    records = list(read(tmp_path))
    assert [(one.scenario, one.contender, one.nodes, one.run) for one in records] == [
        ("inprocess", "muster", nodes, run) for run in (1, 2) for nodes in (150, 200, inprocess.FULL_NODES)
    ]
    figures = {name for one in records for name in one.figures}
    judged = {
        name.replace("2000", "20")
        for target in load().targets
        if target.scenario == "inprocess"
        for name in target.measure.figures or []
    }
    assert judged and judged <= figures
    assert all(value > 0 for one in records for value in one.figures.values())
