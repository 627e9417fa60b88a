# SPDX-License-Identifier: Apache-2.0
"""The record of a run that needs no cluster: the scenario's gangs served without latency, in virtual time.

It stands beside those of real schedulers so that they can be held against it: the same functions make figures
of what was seen, and gangs starve after as long. Measures no costs.
"""

from __future__ import annotations

from app.domain.errors import InputError
from loadtests.record import Record
from loadtests.runner import accounting
from loadtests.runner.jobs import Job
from loadtests.simulation import courses, last_end, simulate


def simulated(job: Job) -> Record:
    """Raises InputError for a scenario that is no workload of gangs."""
    if not job.scenario.arrivals:
        raise InputError("only `arrivals` can be simulated", field=job.scenario_name)
    workload = job.scenario.workload(nodes=job.nodes, seed=job.seed, share=job.share)
    runs = simulate(workload, starvation_seconds=job.contender.starvation_seconds)
    seen = courses(workload, runs)
    return job.record(
        figures=accounting.sharing_figures(seen, gpus=workload.gpus, until=last_end(runs)),
        gang_seconds=accounting.gang_seconds(seen),
    )
