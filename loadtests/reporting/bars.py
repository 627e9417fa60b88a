# SPDX-License-Identifier: Apache-2.0
"""Horizontal bars: a group per case, a bar per contender, whole or made of parts. Medians over the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from loadtests.record import Record
from loadtests.reporting import canvas
from loadtests.reporting.results import Case, Results
from loadtests.reporting.tables import Reading, number

BAR_INCHES = 0.3
THICKNESS = 0.8
LARGEST = len(canvas.PALETTE)
"""Parts of a stacked bar with a colour of their own; the others are drawn as one."""
OTHERS = "others"

Drawn = tuple[Any, str]
"""A figure, and what it shows in words."""
T = TypeVar("T")
Bar = tuple[Case, str, T]


def bars(results: Results, read: Reading, label: str) -> Drawn | None:
    """A bar per contender, with a dot for each run where there are several."""
    found = [
        (case, who, values)
        for case, who, records in _groups(results)
        if (values := [value for record in records if (value := read(record)) is not None])
    ]
    if not found:
        return None
    figure, ax, places = _axes(found, label)
    for place, (_, who, values) in zip(places, found, strict=True):
        middle = float(np.median(values))
        ax.barh(place, middle, color=canvas.colour(who), height=THICKNESS)
        if len(values) > 1:
            ax.plot(values, [place] * len(values), "o", ms=3.5, mfc="white", mec="black", mew=0.7)
        _write(ax, max(values), place, middle)
    said = (f"{case}: {who} {number(float(np.median(values)))}" for case, who, values in found)
    return figure, "; ".join(said)


def stacks(results: Results, parts: Callable[[Record], Mapping[str, float]], label: str) -> Drawn | None:
    """A bar per contender, made of its parts, the largest in colours of their own."""
    found = [
        (case, who, stack) for case, who, records in _groups(results) if (stack := _medians(records, parts))
    ]
    if not found:
        return None
    tints = _tints([stack for _, _, stack in found])
    figure, ax, places = _axes(found, label)
    for place, (_, _, stack) in zip(places, found, strict=True):
        left = 0.0
        for name, tint in tints.items():
            width = _width(stack, name, tints)
            ax.barh(place, width, left=left, color=tint, height=THICKNESS, edgecolor="white", linewidth=0.4)
            left += width
        _write(ax, left, place, left)
    canvas.legend(figure, [canvas.swatch(name, tint) for name, tint in tints.items()])
    said = (
        f"{case}: {who} {number(sum(stack.values()))} ("
        + ", ".join(f"{name} {number(_width(stack, name, tints))}" for name in tints)
        + ")"
        for case, who, stack in found
    )
    return figure, "; ".join(said)


def _groups(results: Results) -> Iterator[tuple[Case, str, list[Record]]]:
    for case in results.cases():
        for who in results.contenders(case):
            yield case, who, list(results.runs(case, who).values())


def _medians(records: Sequence[Record], parts: Callable[[Record], Mapping[str, float]]) -> dict[str, float]:
    """Of each part; a run without it has none of it."""
    read = [parts(record) for record in records]
    return {
        name: float(np.median([one.get(name, 0.0) for one in read]))
        for name in dict.fromkeys(name for one in read for name in one)
    }


def _tints(stacks: Sequence[Mapping[str, float]]) -> dict[str, str]:
    total: dict[str, float] = {}
    for stack in stacks:
        for name, value in stack.items():
            total[name] = total.get(name, 0.0) + value
    by_size = sorted(total, key=lambda name: -total[name])
    tints = dict(zip(by_size, canvas.PALETTE, strict=False))
    return tints if len(by_size) <= LARGEST else {**tints, OTHERS: canvas.GREY}


def _width(stack: Mapping[str, float], name: str, tints: Mapping[str, str]) -> float:
    if name == OTHERS:
        return sum(value for part, value in stack.items() if part not in tints)
    return stack.get(name, 0.0)


def _axes(found: Sequence[Bar[T]], label: str) -> tuple[Any, Any, list[int]]:
    """Axes with a line of text over each group, and where each bar goes."""
    places: list[int] = []
    titles: dict[Case, int] = {}
    line = 0
    for index, (case, _, _) in enumerate(found):
        if index == 0 or case != found[index - 1][0]:
            titles[case] = line
            line += 1
        places.append(line)
        line += 1
    figure = canvas.figure(BAR_INCHES * line + 1.3)
    ax = figure.subplots()
    ax.set(xlabel=label, ylim=(line - 0.4, -0.6))
    ax.set_yticks(places, [who for _, who, _ in found])
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.12)
    ax.grid(axis="x")
    for case, place in titles.items():
        ax.annotate(str(case), (0, place), (4, -2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", va="center", weight="bold", fontsize=9)  # fmt: skip
    return figure, ax, places


def _write(ax: Any, end: float, place: int, value: float) -> None:
    ax.annotate(number(value), (end, place), (6, 0), textcoords="offset points", va="center", fontsize=9)
