# SPDX-License-Identifier: Apache-2.0
"""The record of a run that needs no cluster: the scenario's gangs served without latency, in virtual time.

It stands beside those of real schedulers so that they can be held against it. Measures no costs.
"""

from __future__ import annotations

from app.domain.errors import InputError
from loadtests.accounting import percentile
from loadtests.jobs import Job
from loadtests.record import Record


def simulated(job: Job) -> Record:
    """Raises InputError for a scenario that is no workload of gangs."""
    from loadtests.simulation import simulate  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415

    if not job.scenario.arrivals:
        raise InputError("only `arrivals` can be simulated", field=job.scenario_name)
    workload = job.scenario.workload(nodes=job.nodes, seed=job.seed, share=job.share)
    result = simulate(workload)
    waits = list(result.waits.values())
    figures = {
        "gpu_time_ratio": result.useful,
        "gangs_unfinished": float(len(result.never)),
        "wait_p50_seconds": percentile(waits, 50),
        "wait_p99_seconds": percentile(waits, 99),
        "wait_longest_seconds": percentile(waits, 100),
    }
    return Record(
        scenario=job.scenario_name,
        contender=job.contender_name,
        nodes=job.nodes,
        run=job.run,
        seed=job.seed,
        figures=figures,
        gang_seconds=waits,
    )
