# SPDX-License-Identifier: Apache-2.0
"""The plots of a report: a PNG file each, and the same drawing as SVG for the page.

Leaves out what was not measured; a plot with nothing to show is not drawn at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from loadtests.record import Record
from loadtests.reporting import canvas
from loadtests.reporting.bars import Drawn, bars, stacks
from loadtests.reporting.page import Plot
from loadtests.reporting.results import Case, Results, rank
from loadtests.reporting.tables import number


def draw(results: Results, folder: Path) -> list[Plot]:
    """Every plot that the results have something for, written to `folder` as `<name>.png`."""
    found = []
    for name, (title, caption, make) in PLOTS.items():
        made = make(results)
        if made is not None:
            figure, words = made
            found.append(Plot(title, caption, f"{title}. {words}.", canvas.svg(figure, name)))
            canvas.png(figure, folder / f"{name}.png", title)
    return found


def throughput(results: Results) -> Drawn | None:
    """Bars of pods per second."""
    return bars(
        results,
        lambda record: record.figures.get("pods_per_second"),
        "pods bound per second (median; dots are runs)",
    )


def api_writes(results: Results) -> Drawn | None:
    """Stacked bars of requests that changed something, per pod bound."""

    def parts(record: Record) -> dict[str, float]:
        pods = record.figures.get("pods_bound")
        return {what: count / pods for what, count in record.api_writes.items()} if pods else {}

    return stacks(results, parts, "API writes per pod bound")


def cpu_seconds(results: Results) -> Drawn | None:
    """Stacked bars of CPU seconds, by process."""
    return stacks(results, lambda record: record.cpu_seconds, "CPU seconds, user + system")


def gang_time(results: Results) -> Drawn | None:
    """Cumulative curves of the time from the last member created to the last one bound."""
    shown: dict[Case, dict[str, list[float]]] = {}
    for case in results.cases():
        for who in results.contenders(case):
            values = [s for record in results.runs(case, who).values() for s in record.gang_seconds]
            if values:
                shown.setdefault(case, {})[who] = sorted(values)
    if not shown:
        return None
    figure, axes = canvas.panels(len(shown))
    for ax, (case, curves) in zip(axes, shown.items(), strict=True):
        for who, values in curves.items():
            share = np.linspace(0, 100, len(values) + 1)
            style = {"color": canvas.colour(who), "ls": canvas.dashes(who), "lw": canvas.LINE}
            ax.step([0, *values], share, where="post", **style)
        ax.set(title=str(case), ylabel="% of gangs", ylim=(0, 101))
        ax.set_xlim(left=0)
        ax.grid()
    figure.supxlabel("seconds from last member created to last member bound", fontsize=10)
    contenders = sorted({who for curves in shown.values() for who in curves}, key=rank)
    canvas.legend(figure, [canvas.stroke(who) for who in contenders])
    said = (
        f"{case}: {who} median {number(float(np.median(values)))} s"
        for case, curves in shown.items()
        for who, values in curves.items()
    )
    return figure, "; ".join(said)


def filter_latency(results: Results) -> Drawn | None:
    """Histograms of the time Muster took to answer filter."""
    shown = {
        f"{case}: {who}": (shares, canvas.colour(who))
        for case in results.cases()
        for who in results.contenders(case)
        if (shares := _shares(results.runs(case, who).values()))
    }
    if not shown:
        return None
    figure, axes = canvas.panels(len(shown))
    for ax, (title, (shares, colour)) in zip(axes, shown.items(), strict=True):
        drawn = ax.bar(range(len(shares)), list(shares.values()), color=colour, width=0.9)
        ax.bar_label(drawn, fmt="%.3g", fontsize=8, padding=2)
        ax.set_xticks(range(len(shares)), list(shares), rotation=45, ha="right", rotation_mode="anchor")
        ax.set(title=title, ylabel="% of calls", ylim=(0, 110), yticks=range(0, 101, 25))
        ax.grid(axis="y")
    figure.supxlabel("answered within this time, and not within the step before", fontsize=10)
    said = (
        f"{title} " + ", ".join(f"{share:.0f} % within {bound}" for bound, share in shares.items())
        for title, (shares, _) in shown.items()
    )
    return figure, "; ".join(said)


def _shares(records: Iterable[Record]) -> dict[str, float]:
    """Upper bound → percent of calls between it and the one before, without empty steps at both ends."""
    steps: dict[float, int] = {}
    for record in records:
        before = 0
        for bound, count in sorted(record.filter_buckets):
            steps[bound] = steps.get(bound, 0) + count - before
            before = count
    bounds = sorted(steps)
    used = [index for index, bound in enumerate(bounds) if steps[bound]]
    if not used:
        return {}
    total = sum(steps.values())
    return {_time(bound): 100 * steps[bound] / total for bound in bounds[used[0] : used[-1] + 1]}


def _time(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "longer"
    return f"{seconds * 1e3:g} ms" if seconds < 1 else f"{seconds:g} s"


PLOTS: dict[str, tuple[str, str, Callable[[Results], Drawn | None]]] = {
    "throughput": (
        "Throughput",
        "Pods bound per second, median over the runs; dots are the runs. More is better.",
        throughput,
    ),
    "gang-time": (
        "Time from last member created to last member bound",
        "Share of gangs bound whole within a time, all runs together. Further left is better.",
        gang_time,
    ),
    "filter-latency": (
        "Filter latency",
        "Time Muster took to answer kube-scheduler's filter calls, all runs together.",
        filter_latency,
    ),
    "api-writes": (
        "API writes per pod",
        "Requests that changed something, by who made them, per pod bound; median over the runs.",
        api_writes,
    ),
    "cpu-seconds": (
        "CPU seconds by process",
        "From the first object created to the last pod bound; median over the runs. Less is better.",
        cpu_seconds,
    ),
}
"""File name → title, caption, and what draws it, in the order of the page."""
