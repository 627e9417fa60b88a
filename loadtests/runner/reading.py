# SPDX-License-Identifier: Apache-2.0
"""What all processes of a testbed used during a run, and the figures and the record made of it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from typing import Final, Self

import msgspec

from loadtests.record import Record
from loadtests.runner import accounting, measure
from loadtests.runner.accounting import Course
from loadtests.runner.jobs import Job
from loadtests.runner.scenario import Scenario
from loadtests.runner.testbed import MUSTER, SCHEDULER, Testbed
from loadtests.runner.witness import Witness

QUIET_SECONDS: Final = 1.0
PATIENCE_SECONDS: Final = 10.0
STALLS: Final = {"loop_stall_longest_seconds": "wall", "loop_stall_cpu_longest_seconds": "cpu"}


class Reading(msgspec.Struct, kw_only=True):
    """Totals at one moment, or (from `end`) what was used since `begin`."""

    cpu: dict[str, float]
    scheduler: measure.Samples
    muster: measure.Samples
    writes: dict[str, int] = {}

    @classmethod
    def begin(cls, bed: Testbed, witness: Witness) -> Self:
        """Just before the load."""
        bed.audit.mark()
        scheduler, muster = bed.scheduler_samples(), bed.muster_samples()
        # CPU last: nothing but the load is in it.
        return cls(cpu=_cpu(bed, witness), scheduler=scheduler, muster=muster)

    @classmethod
    def end(cls, bed: Testbed, witness: Witness, began: Reading) -> Self:
        """Right after the load; the writes that follow it (events, counts) are waited for."""
        cpu = measure.difference(began.cpu, _cpu(bed, witness))
        writes = _writes_at_rest(bed)
        return cls(
            cpu=cpu,
            scheduler=measure.difference(began.scheduler, bed.scheduler_samples()),
            muster=measure.difference(began.muster, bed.muster_samples()),
            writes=writes,
        )

    def record(self, job: Job, figures: dict[str, float], courses: Sequence[Course]) -> Record:
        """The record of the run."""
        return job.record(
            figures={name: round(value, 6) for name, value in figures.items() if math.isfinite(value)},
            cpu_seconds={name: round(value, 2) for name, value in self.cpu.items()},
            api_writes=self.writes,
            filter_buckets=measure.filter_buckets(self.muster),
            gang_seconds=[round(value, 4) for value in accounting.gang_seconds(courses)],
        )


def figures_of(
    scenario: Scenario, courses: Sequence[Course], used: Reading, *, nodes: int, until: float
) -> dict[str, float]:
    """All figures that a scenario of this kind has."""
    figures = accounting.burst_figures(courses, until=until)
    figures |= accounting.holding_figures(courses, until=until)
    figures |= _costs(used, figures["pods_bound"])
    if scenario.backlog:
        figures |= accounting.wake_figures(courses, fitting=scenario.fitting(nodes=nodes))
    if scenario.arrivals:
        gpus = nodes * scenario.gpus_per_node
        figures |= accounting.sharing_figures(courses, gpus=gpus, until=until)
    return figures


def _costs(used: Reading, pods: float) -> dict[str, float]:
    figures = {"failed_attempts": measure.failed_attempts(used.scheduler)}
    if pods:
        figures["scheduler_cpu_ms_per_pod"] = used.cpu[SCHEDULER] * 1000 / pods
    if pods and MUSTER in used.cpu:
        figures["muster_cpu_ms_per_pod"] = used.cpu[MUSTER] * 1000 / pods
        figures["muster_writes_per_pod"] = measure.writes_beyond_binding(used.writes, MUSTER) / pods
        figures["filter_calls_per_bound_member"] = measure.filter_calls(used.muster) / pods
    for name, clock in STALLS.items():
        if (stall := measure.longest_stall(used.muster, clock=clock)) is not None:
            figures[name] = stall
    return figures


def _cpu(bed: Testbed, witness: Witness) -> dict[str, float]:
    return measure.cpu_seconds(bed.pids | {"driver": os.getpid(), "witness": witness.pid})


def _writes_at_rest(bed: Testbed) -> dict[str, int]:
    """Once all but the driver have written nothing for a while, or are not going to stop."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    writes, since = bed.audit.writes(), time.monotonic()
    while time.monotonic() < min(deadline, since + QUIET_SECONDS):
        time.sleep(0.1)  # a poll interval
        before, writes = writes, bed.audit.writes()
        if _of_others(before) != _of_others(writes):
            since = time.monotonic()
    return writes


def _of_others(writes: dict[str, int]) -> dict[str, int]:
    return {word: count for word, count in writes.items() if not word.startswith("driver ")}
