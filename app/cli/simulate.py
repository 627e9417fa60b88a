# SPDX-License-Identifier: Apache-2.0
"""`muster simulate`: what would be bound where, in what order, and what stays pending, without a cluster.

Wires the real service to an embedded cluster and to the driver that plays kube-scheduler, and prints what it
came to. Talks to nobody and writes no file but the picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click
import msgspec
import orjson

from app.cli.simulate_plot import plot_to
from app.cli.simulate_result import Free, Result, result_of
from app.cli.table import table
from app.codec import snapshot as snapshots
from app.extender.service import Service
from app.settings import Settings, load
from app.simulate.cluster import SnapshotCluster
from app.simulate.driver import Clock, Driver
from app.simulate.frame import Frame, frame_of
from app.simulate.manifests import read_manifests
from app.simulate.submit import Submission

PARTIAL: Final = "nodes or pods may be missing in the snapshot: what looks free here is an upper bound"

Stays = tuple[str, str, str | None, str, str]
"""A row of what stays: namespace, name, gang, state, reason."""


def simulate(
    snapshot: Path,
    manifests: Iterable[Path],
    *,
    namespace: str,
    until_quiet: bool,
    output: str,
    headers: bool,
    plot: Path | None,
) -> bool:
    """Play it and print it; whether everything that was pending is bound. Raises `InputError`."""
    draw = plot_to(plot) if plot is not None else None
    settings, items = load(), snapshots.read(snapshot)
    submission = Submission(items, namespace=namespace, scheduler=settings.scheduler_name)
    info = snapshots.info_of(items)
    if info is not None and info.partial:
        submission.notes.append(PARTIAL)
    submission.add(obj for path in manifests for obj in read_manifests(path))
    result, before, after = asyncio.run(play(submission, settings, until_quiet=until_quiet))
    if draw is not None:
        draw(before, after)
    printed = (
        as_json(result) if output == "json" else as_table(result, wide=output == "wide", headers=headers)
    )
    click.echo(printed)
    return not result.pending


async def play(
    submission: Submission, settings: Settings, *, until_quiet: bool
) -> tuple[Result, Frame, Frame]:
    """The result, and the devices before and after. Of the settings, what `muster serve` would decide by."""
    cluster, clock = SnapshotCluster(submission.items), Clock()
    scheduler = settings.scheduler_name
    service = Service.embedded(cluster, clock=clock, timing=settings.timing, scheduler=scheduler)
    driver = Driver(cluster, service, clock, scheduler=scheduler)
    driver.begin()
    before = frame_of(driver.cache.inventory)
    await driver.run(until_quiet=until_quiet)
    after = frame_of(driver.cache.inventory)
    devices = [Free(*pair) for pair in zip(before.totals, after.totals, strict=True)]
    return result_of(service, driver, submission, devices), before, after


# -- what is printed


def as_json(result: Result) -> str:
    """One object; its fields are those of `Result`."""
    return orjson.dumps(msgspec.to_builtins(result), option=orjson.OPT_INDENT_2).decode()


def as_table(result: Result, *, wide: bool, headers: bool) -> str:
    """Two tables and a summary; without `headers` the rows alone. `wide`: a row for each pod."""
    bound = [(p.order, p.namespace, p.name, p.node, p.gang, f"{p.seconds:g}s") for p in result.bound]
    pending = [(p.namespace, p.name, p.gang, p.state, p.reason) for p in result.pending]
    if not wide:
        pending = alike(pending)
    first = table(("order", "namespace", "name", "node", "gang", "after"), bound)
    second = table(("namespace", "name", "gang", "state", "reason"), pending)
    if not headers:
        return "\n\n".join(filter(None, (one.partition("\n")[2] for one in (first, second))))
    blocks = [first if bound else "", second if pending else "", "\n".join(_summary(result))]
    return "\n\n".join(filter(None, blocks))


def alike(pods: Iterable[Stays]) -> list[Stays]:
    """One row for the pods of a namespace that differ in their names alone, where the first was."""
    groups: dict[tuple[str, str | None, str, str], list[str]] = {}
    for namespace, name, gang, state, reason in pods:
        groups.setdefault((namespace, gang, state, reason), []).append(name)
    return [
        (namespace, _counted(names), gang, state, reason)
        for (namespace, gang, state, reason), names in groups.items()
    ]


def _counted(names: list[str]) -> str:
    """As kubectl cuts a list short."""
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1} more..."


def _summary(result: Result) -> list[str]:
    bound, pending = len(result.bound), len(result.pending)
    states = ", ".join(f"{count} {state}" for state, count in sorted(result.states.items()))
    first = f"{bound} of {bound + pending} pending pods would be bound"
    lines = [f"{first}; {pending} stay: {states}" if pending else first]
    lines += [
        f"{d.after.name}: {d.before.free} free before, {d.after.free} after, of {d.after.allocatable}"
        for d in result.devices
    ]
    return [*lines, *(f"note: {note}" for note in result.notes)]
