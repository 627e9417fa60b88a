# SPDX-License-Identifier: Apache-2.0
"""`make bench`, second part: on the real scheduler, how long a waiting gang waits once its devices are free.

A full cluster, 300 gated gangs waiting; the running gang is deleted again and again, and the time until
the next one is bound whole is taken by an independent watch. Prints median and worst of the rounds, and
what kube-scheduler was asked meanwhile.

    python -m loadtests.wake [--waiting 300] [--rounds 20]
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

import numpy as np

from tests.cluster import Cluster
from tests.real.lab import Lab, prepare

MEMBERS = 8
FILTERS = 'muster_verb_duration_seconds_count{verb="filter"}'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time from devices coming free to the next gang bound.")
    parser.add_argument("--waiting", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    with Cluster() as cluster:
        prepare(cluster)
        with Lab(cluster, log_name="bench") as lab:
            found = measure(lab, args.waiting, args.rounds)
            asked = lab.rig.metric(FILTERS)
    mid, worst = np.median(found), max(found)
    what = f"devices free to next gang of {MEMBERS} bound, {args.waiting} waiting"
    print(f"{what}: p50 {mid:.2f} s, max {worst:.2f} s")
    print(f"filter calls per bound member: {asked / (MEMBERS * (args.rounds + 1)):.2f}")


def measure(lab: Lab, waiting: int, rounds: int) -> list[float]:
    """Seconds of each round."""
    lab.nodes(1, gpus=MEMBERS)
    for index in range(waiting):
        progress("gangs created", index + 1, waiting)
        lab.gang(f"g{index:03d}", MEMBERS, gpus=1)
    running = lab.wait(lambda: _running(lab), 60, "one gang runs")
    found = []
    for number in range(rounds):
        progress("rounds", number + 1, rounds)
        began = time.monotonic()
        lab.cluster.delete(
            f"/api/v1/namespaces/gangs/pods?labelSelector=scheduling.x-k8s.io/pod-group%3D{running}"
        )
        running = lab.wait(partial(_running, lab, but=running), 60, "the next gang runs")
        found.append(time.monotonic() - began)
    return found


def progress(what: str, done: int, total: int) -> None:
    """A line on stderr every tenth of the way."""
    if done % max(1, total // 10) == 0:
        print(f"{what}: {done} of {total}", file=sys.stderr, flush=True)


def _running(lab: Lab, *, but: str = "") -> str:
    bound: dict[str, int] = {}
    for pod in lab.cluster.api.items("/api/v1/namespaces/gangs/pods?fieldSelector=spec.nodeName!="):
        gang = pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]
        bound[gang] = bound.get(gang, 0) + 1
    return next((gang for gang, count in sorted(bound.items()) if count == MEMBERS and gang != but), "")


if __name__ == "__main__":
    main()
