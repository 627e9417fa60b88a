# SPDX-License-Identifier: Apache-2.0
"""Run load tests on a real control plane: scenarios × contenders, alternating; one record per run.

    python -m loadtests.run [--set short|full] [--scenario NAME ...] [--contender NAME|FILE ...]
                            [--repeat N] [--nodes N] [--seed N] [--out DIR]

A run that fails is told in one line and the next one begins; the exit code is 1 then, and 2 for input that
cannot be used.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import get_args

from app.cli.serving import stopped_by_sigterm
from app.domain.errors import InputError
from loadtests.record import RECORDS, Record, append, new_folder
from loadtests.reporting.results import Results
from loadtests.reporting.tables import as_text, scenarios
from loadtests.runner.churn import churning
from loadtests.runner.drive import Driver, Told
from loadtests.runner.ideal import simulated
from loadtests.runner.jobs import Job, Set, Wanted, jobs
from loadtests.runner.progress import Progress, progress
from loadtests.runner.reading import Reading, figures_of
from loadtests.runner.testbed import NAMESPACE, Testbed
from loadtests.runner.witness import Witness
from loadtests.shared.flags import add_out, positive


def main() -> None:
    """The command."""
    wanted, folder = arguments(sys.argv[1:])
    try:
        todo = jobs(wanted)
    except InputError as error:
        print(f"loadtests: {error}", file=sys.stderr)
        sys.exit(2)
    try:
        with stopped_by_sigterm(), progress() as shown:
            failed = run_all(todo, folder, shown)
    except KeyboardInterrupt:
        print(f"loadtests: interrupted; records so far: {folder}", file=sys.stderr)
        sys.exit(130)
    show(folder, todo)
    sys.exit(1 if failed else 0)


def show(folder: Path, todo: list[Job]) -> None:
    """The report's tables of the scenarios that were run, with the figures that each of them asks for."""
    if (folder / RECORDS).exists():
        asked = {job.scenario_name: job.scenario.measure for job in todo}
        print(*map(as_text, scenarios(Results.of(folder), asked)), sep="\n")
    print(f"records: {folder}", file=sys.stderr)


def run_all(todo: list[Job], folder: Path, shown: Progress) -> int:
    """Every job, its record appended to the folder; returns how many failed."""
    failed = 0
    for number, job in enumerate(todo, 1):
        shown.run(number, len(todo), job.title)
        try:
            append(folder, simulated(job) if job.contender.simulated else run_one(job, shown.step))
        except Exception as error:  # one that fails must not cost the others
            failed += 1
            shown.line(f"FAILED {job.title}: {' '.join(str(error).split()) or repr(error)}")
    return failed


def run_one(job: Job, told: Told) -> Record:
    """One run: a fresh control plane with the contender on it, the load, and what it came to."""
    told("starting", 0, 0)
    tasks = job.scenario.tasks(nodes=job.nodes, seed=job.seed, share=job.share)
    with (
        Testbed(job.contender, nodes=job.nodes, gpus_per_node=job.scenario.gpus_per_node) as bed,
        Witness(bed.cluster, NAMESPACE, tasks) as witness,
        churning(bed.cluster, job.scenario.churn) as churned,
    ):
        began = Reading.begin(bed, witness)
        finished = Driver(
            bed, job.scenario, tasks, witness, share=job.share, limit_seconds=job.limit_seconds, told=told
        ).run()
        until = time.monotonic()
        used = Reading.end(bed, witness, began)
        courses = witness.courses()
    figures = figures_of(job.scenario, courses, used, nodes=job.nodes, until=until)
    figures |= {"timed_out": float(not finished), "setup_seconds": bed.setup_seconds, **churned}
    return used.record(job, figures, courses)


def arguments(words: list[str]) -> tuple[Wanted, Path]:
    """What to run, and where the records go."""
    parser = argparse.ArgumentParser(
        prog="python -m loadtests.run", description="Load tests of gang scheduling."
    )
    parser.add_argument("--set", choices=get_args(Set), default="short", help="which set of runs (short)")
    parser.add_argument("--scenario", nargs="+", default=[], metavar="NAME", help="only these")
    parser.add_argument(
        "--contender", nargs="+", default=[], metavar="NAME|FILE", help="these instead of the set's"
    )
    parser.add_argument("--repeat", type=positive, metavar="N", help="runs of each contender")
    parser.add_argument("--nodes", type=positive, metavar="N", help="size of the cluster")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the first run (1)")
    add_out(parser)
    args = parser.parse_args(words)
    wanted = Wanted(
        of_set=args.set,
        scenarios=tuple(args.scenario),
        contenders=tuple(args.contender),
        repeats=args.repeat,
        nodes=args.nodes,
        seed=args.seed,
    )
    return wanted, args.out or new_folder()


if __name__ == "__main__":
    main()
