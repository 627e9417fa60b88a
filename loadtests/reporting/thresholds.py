# SPDX-License-Identifier: Apache-2.0
"""`thresholds.yaml`: what is to be reached, as data, and what was measured last. Judges nothing.

A target compares one `measure` with a number, or its ratio to another measure (`over`). A measure sums
figures of a record, or CPU milliseconds of processes, and may divide by one more figure (`per`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta

from loadtests.record import Record
from loadtests.shared import strict
from loadtests.shared.strict import Strict

FILE = Path(__file__).parents[1] / "thresholds.yaml"

Name = Annotated[str, Meta(min_length=1)]
Finite = Annotated[float, Meta(ge=-1e12, le=1e12)]
Margin = Annotated[float, Meta(ge=0, le=10)]
Names = Annotated[list[Name], Meta(min_length=1)]


class Measure(Strict, frozen=True, kw_only=True):
    """What is read from a contender's record. `nodes` where it differs from the target's own."""

    contender: Name = "muster"
    nodes: int | None = None
    figures: Names | None = None
    cpu: Names | None = None
    per: Name | None = None

    def __post_init__(self) -> None:
        if (self.figures is None) == (self.cpu is None):
            raise ValueError("needs either `figures` or `cpu`")

    def of(self, record: Record) -> float | None:
        """The value in one record: the figures' own unit, CPU in milliseconds; None where it is missing."""
        source, scale = (record.figures, 1.0) if self.figures is not None else (record.cpu_seconds, 1e3)
        parts = [source.get(name) for name in self.figures or self.cpu or []]
        divisor = record.figures.get(self.per) if self.per else 1.0
        if None in parts or not divisor:
            return None
        return sum(part for part in parts if part is not None) * scale / divisor


class Measured(Strict, frozen=True, kw_only=True):
    """What a target's quantity was when it was last written down; `spread` is a standard deviation."""

    mean: Finite
    spread: Finite
    runs: int
    machine: str
    date: str
    commit: str


class Target(Strict, frozen=True, kw_only=True):
    """One row of what is to be reached. `margin` is the part of the recorded mean by which a later
    measurement may be worse before it counts as a regression."""

    id: Name
    what: Name
    scenario: Name
    nodes: Annotated[int, Meta(ge=1)]
    measure: Measure
    over: Measure | None = None
    op: Literal[">=", "<="]
    target: Finite
    margin: Margin
    measured: Measured | None = None

    def reached(self, value: float) -> bool:
        """Whether a value meets the target."""
        return value >= self.target if self.op == ">=" else value <= self.target

    def regressed(self, value: float) -> bool:
        """Whether a value is worse than the recorded mean by more than the margin."""
        if self.measured is None:
            return False
        mean = self.measured.mean
        return value < mean * (1 - self.margin) if self.op == ">=" else value > mean * (1 + self.margin)


class VerbLimit(Strict, frozen=True, kw_only=True):
    """How long the calls named `call` may take over HTTP, with a client on the same machine."""

    call: Name
    p50_ms: Finite
    p99_ms: Finite


class Verbs(Strict, frozen=True, kw_only=True):
    """Limits of the HTTP verbs; a call fails when it takes longer than `factor` × its limit."""

    factor: Annotated[float, Meta(ge=1)]
    limits: list[VerbLimit]


class Thresholds(Strict, frozen=True, kw_only=True):
    """The whole file."""

    targets: list[Target]
    verbs: Verbs

    def __post_init__(self) -> None:
        for what, names in (
            ("target", [target.id for target in self.targets]),
            ("verb limit", [limit.call for limit in self.verbs.limits]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(f"{what} `{min(twice)}` is there twice")


def load(file: Path = FILE) -> Thresholds:
    """Raises `InputError` naming the file and the key."""
    return strict.load(file, Thresholds)


def write_measured(found: Mapping[str, Measured], file: Path = FILE) -> None:
    """Put new measurements, by target id, into the file; comments and layout stay as they are."""
    text = file.read_text()
    lines = text.splitlines()
    root: Any = yaml.compose(text)  # a mapping with targets: `load` has read it
    targets = next(value for key, value in root.value if key.value == "targets").value
    for node in reversed(targets):  # from the end: earlier line numbers stay right
        keys = {key.value: (key, value) for key, value in node.value}
        measured = found.get(keys["id"][1].value)
        if measured is not None:
            lines[_place(keys)] = [f"{' ' * keys['id'][0].start_mark.column}measured: {_flow(measured)}"]
    file.write_text("\n".join(lines) + "\n")


def _flow(measured: Measured) -> str:
    text = yaml.safe_dump(msgspec.to_builtins(measured), default_flow_style=True, sort_keys=False, width=1000)
    return text.strip()


def _place(keys: Mapping[str, tuple[Any, Any]]) -> slice:
    """The lines of the old measurement, or the empty place below the margin."""
    if "measured" in keys:
        key, value = keys["measured"]
        return slice(key.start_mark.line, value.end_mark.line + value.flow_style)
    below = keys["margin"][0].start_mark.line + 1
    return slice(below, below)
