# SPDX-License-Identifier: Apache-2.0
"""`muster simulate`: what would be bound where, in what order, and what stays pending, without a cluster.

Wires the real service to an embedded cluster and to the driver that plays kube-scheduler, and prints what it
came to. Talks to nobody and writes no file but the picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import click
import msgspec
import orjson

from app.cli.simulate_plot import plot_to
from app.cli.simulate_result import Free, Result, result_of
from app.cli.table import table
from app.codec import snapshot as snapshots
from app.extender.service import Service
from app.extender.timing import Timing
from app.inventory.inventory import Inventory
from app.simulate.cluster import SnapshotCluster
from app.simulate.driver import Clock, Driver
from app.simulate.frame import Frame, frame_of
from app.simulate.manifests import read_manifests
from app.simulate.submit import Submission


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
    submission = Submission(snapshots.read(snapshot), namespace=namespace)
    submission.add(obj for path in manifests for obj in read_manifests(path))
    result, before, after = asyncio.run(play(submission, until_quiet=until_quiet))
    if draw is not None:
        draw(before, after)
    click.echo(as_json(result) if output == "json" else as_table(result, headers=headers))
    return not result.pending


async def play(submission: Submission, *, until_quiet: bool) -> tuple[Result, Frame, Frame]:
    """The result, and the devices before and after."""
    cluster, clock = SnapshotCluster(submission.items), Clock()
    service = Service(
        inventory=Inventory(),
        binder=cluster,
        admitter=cluster,
        reporter=cluster,
        leadership=cluster,
        problems=list,
        clock=clock,
        timing=Timing(),
    )
    driver = Driver(cluster, service, clock)
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


def as_table(result: Result, *, headers: bool) -> str:
    """Two tables and a summary; without `headers` the rows alone."""
    bound = [(p.order, p.namespace, p.name, p.node, p.gang, f"{p.seconds:g}s") for p in result.bound]
    pending = [(p.namespace, p.name, p.gang, p.state, p.reason) for p in result.pending]
    first = table(("order", "namespace", "name", "node", "gang", "after"), bound)
    second = table(("namespace", "name", "gang", "state", "reason"), pending)
    if not headers:
        return "\n".join([*first.splitlines()[1:], *second.splitlines()[1:]])
    blocks = [first if bound else "", second if pending else "", "\n".join(_summary(result))]
    return "\n\n".join(filter(None, blocks))


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
