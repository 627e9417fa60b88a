# SPDX-License-Identifier: Apache-2.0
"""Which runs a command line asks for, and in which order. Runs nothing.

The contenders of one scenario alternate, and each repeat begins with another one: what the machine does
meanwhile, and what being first or last means, falls on all of them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from app.domain.errors import InputError
from loadtests.record import Record
from loadtests.runner import contender, scenario
from loadtests.runner.contender import Contender
from loadtests.runner.scenario import Runs, Scenario
from loadtests.shared.strict import load, load_named

T = TypeVar("T")
Set = Literal["short", "full"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `run` counts from 1; the seed is that of the run, the same for all contenders."""

    scenario_name: str
    scenario: Scenario
    contender_name: str
    contender: Contender
    nodes: int
    run: int
    seed: int
    limit_seconds: float
    share: float

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.scenario_name}, {self.nodes:,} nodes, {self.contender_name}, run {self.run}"

    def record(self, **found: Any) -> Record:
        """Its record, with what was found."""
        return Record(
            scenario=self.scenario_name,
            contender=self.contender_name,
            nodes=self.nodes,
            run=self.run,
            seed=self.seed,
            **found,
        )


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says; what is empty or None is left to the files."""

    of_set: Set = "short"
    scenarios: tuple[str, ...] = ()
    contenders: tuple[str, ...] = ()
    repeats: int | None = None
    nodes: int | None = None
    seed: int = 1


def jobs(wanted: Wanted) -> list[Job]:
    """All runs in order. Raises InputError."""
    scenarios = load_named(scenario.FOLDER, Scenario, wanted.scenarios)
    chosen = {name: one for name, one in scenarios.items() if wanted.of_set in one.sets}
    for name in wanted.scenarios:
        if name not in chosen:
            raise InputError(f"`sets` has no {wanted.of_set!r}", field=f"{name}.yaml")
    return [job for name, one in chosen.items() for job in _of(name, one, wanted)]


def _of(name: str, one: Scenario, wanted: Wanted) -> list[Job]:
    runs: Runs = one.sets[wanted.of_set]
    contenders = dict(_contender(word) for word in wanted.contenders or runs.contenders)
    return [
        Job(
            scenario_name=name,
            scenario=one,
            contender_name=who,
            contender=contenders[who],
            nodes=nodes,
            run=number + 1,
            seed=wanted.seed + number,
            limit_seconds=runs.limit_seconds,
            share=runs.share,
        )
        for nodes in ((wanted.nodes,) if wanted.nodes else runs.nodes)
        for number in range(wanted.repeats or runs.repeats)
        for who in rotated(list(contenders), number)
    ]


def rotated(items: Sequence[T], by: int) -> list[T]:
    """A B C, B C A, C A B, A B C …"""
    start = by % len(items) if items else 0
    return [*items[start:], *items[:start]]


def _contender(word: str) -> tuple[str, Contender]:
    """A name, or the path of a file of one's own."""
    if word.endswith(".yaml"):
        return Path(word).stem, load(Path(word), Contender)
    return word, load_named(contender.FOLDER, Contender, [word])[word]
