# SPDX-License-Identifier: Apache-2.0
"""How Muster starts on, and keeps up with, a large cluster: against a server of real-looking bytes over TLS.

Starts `material.big_api` and `muster serve` as processes, and reports seconds and memory until ready, watch
events applied per second, and how long the event loop was held up while nodes and pods kept changing. Judges
nothing, and never talks to a real cluster.

    python -m loadtests.coldstart [--nodes 15000] [--pods 150000] [--runs 1] [--out DIR]
"""

from __future__ import annotations

import argparse
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from app.cli.table import table
from loadtests.record import Record, append
from loadtests.runner.measure import Samples, cpu_seconds, difference, longest_stall, samples
from loadtests.shared.flags import add_out, add_runs, positive
from loadtests.shared.processes import module
from tests.cluster import Process, WaitTimeout, free_port, wait_for

READY_SECONDS: Final = 120.0
SAY_SECONDS: Final = 5.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Cold start, event rate and stalls on a large cluster.")
    parser.add_argument("--nodes", type=positive, default=15_000)
    parser.add_argument("--pods", type=positive, default=150_000)
    parser.add_argument("--events", type=positive, default=100_000, help="pod changes in the burst")
    parser.add_argument(
        "--churn", type=positive, default=200, help="changes per second, of nodes and of pods each"
    )
    parser.add_argument("--seconds", type=positive, default=30, help="of churn")
    add_runs(parser)
    add_out(parser)
    args = parser.parse_args()
    try:
        for number in range(1, args.runs + 1):
            run(args, number)
    except WaitTimeout as late:
        sys.exit(f"coldstart: {late}")


def run(args: argparse.Namespace, number: int) -> None:
    """Once, with processes of its own."""
    with tempfile.TemporaryDirectory() as folder, _big_api(Path(folder), args.nodes, args.pods) as api:
        found = measure(Path(folder), api, args)
    print(table(["figure", "value"], found.items()), flush=True)
    if args.out:
        made = Record(scenario="coldstart", contender="muster", nodes=args.nodes, run=number, figures=found)
        append(args.out, made)


def measure(folder: Path, api: Api, args: argparse.Namespace) -> dict[str, Any]:
    """All figures, by name with their unit."""
    say(f"muster starts on {args.nodes} nodes and {args.pods} pods")
    began = time.monotonic()
    with _muster(folder) as muster:
        wait(muster.ready, "ready")
        found = {
            "pods": args.pods,
            "cold_start_seconds": round(time.monotonic() - began, 1),
            "cold_start_cpu_seconds": round(muster.cpu_seconds(), 1),
            "cold_start_peak_rss_mb": muster.peak_mb(),
        }
        wait(muster.at_rest, "at rest")
        return found | burst(muster, api, args) | churn(muster, api, args) | {"peak_rss_mb": muster.peak_mb()}


TICK_SECONDS: Final = 0.01
"""What CPU time is counted in."""


def burst(muster: Muster, api: Api, args: argparse.Namespace) -> dict[str, Any]:
    """Changes as fast as they are taken."""
    say(f"a burst of {args.events} pod changes, and a tenth as many of nodes")
    cpu, began = muster.cpu_seconds(), time.monotonic()
    sent = api.post(f"/control/burst?events={args.events}")["sent"]
    wait(lambda: muster.metrics()["muster_pods"] > args.pods, "all applied")
    seconds, cpu = time.monotonic() - began, muster.cpu_seconds() - cpu
    return {
        "events_per_second": round(sent / seconds),
        "events_per_cpu_second": round(sent / max(cpu, TICK_SECONDS)),
    }


def churn(muster: Muster, api: Api, args: argparse.Namespace) -> dict[str, Any]:
    """An even stream of changes, and by how much it (or one scrape of the metrics) held up the event loop."""
    say(f"{args.churn} node and {args.churn} pod changes a second for {args.seconds} s")
    before, cpu = muster.metrics(), muster.cpu_seconds()
    api.post(f"/control/churn?per_second={args.churn}&seconds={args.seconds}")
    cpu, during = muster.cpu_seconds() - cpu, difference(before, muster.metrics())
    return {"churn_cpu_percent": round(100 * cpu / args.seconds, 1)} | {
        f"churn_longest_stall_ms_{clock}": (longest_stall(during, clock=clock) or 0.0) * 1e3
        for clock in ("cpu", "wall")
    }


class Muster:
    """The process and its ops port."""

    def __init__(self, process: Process, port: int) -> None:
        self._process, self._url = process, f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        """GET /readyz. Leaves at once when the process has ended."""
        if not self._process.running:
            sys.exit(f"coldstart: muster has ended\n{self._process.log_tail()}")
        return bool(urllib.request.urlopen(f"{self._url}/readyz", timeout=10).status == 200)

    def at_rest(self) -> bool:
        """Whether nothing is going on any more: less than a tenth of a core."""
        cpu = self.cpu_seconds()
        time.sleep(1.0)
        return self.cpu_seconds() - cpu < 0.1

    def metrics(self) -> Samples:
        """GET /metrics."""
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=30) as reply:
            return samples(reply.read().decode())

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        return cpu_seconds({"muster": self._process.pid})["muster"]

    def peak_mb(self) -> int:
        """The most memory it ever had, in MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024 // 10**6


class Api:
    """The levers of the big API."""

    def __init__(self, port: int, cert: Path) -> None:
        self._url = f"https://127.0.0.1:{port}"
        self._tls = ssl.create_default_context(cafile=str(cert))

    def post(self, path: str) -> Any:
        """The answer comes when it is done."""
        request = urllib.request.Request(self._url + path, method="POST")
        with urllib.request.urlopen(request, timeout=READY_SECONDS, context=self._tls) as reply:
            return json.load(reply)

    def serves(self) -> bool:
        """Whether it answers at all; raises OSError if not."""
        urllib.request.urlopen(f"{self._url}/api/v1/nodes?limit=1", timeout=5, context=self._tls)
        return True


@contextmanager
def _big_api(folder: Path, nodes: int, pods: int) -> Iterator[Api]:
    cert, key, port = folder / "crt", folder / "key", free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=big-api",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig(port, cert)))
    files = [f"--port={port}", f"--cert={cert}", f"--key={key}"]
    sizes = [f"--nodes={nodes}", f"--pods={pods}"]
    with module("loadtests.material.big_api", *files, *sizes, folder=folder):
        api = Api(port, cert)
        wait(api.serves, "serving")
        yield api


@contextmanager
def _muster(folder: Path) -> Iterator[Muster]:
    port, ops = free_port(), free_port()
    env = {
        "KUBECONFIG": str(folder / "kubeconfig"), "MUSTER_ACTIVE": "always",
        "MUSTER_OPS_HOST": "127.0.0.1", "MUSTER_LOG_LEVEL": "warning",
    }  # fmt: skip
    flags = ["serve", f"--port={port}", f"--ops-port={ops}"]
    with module("app", *flags, folder=folder, env=env) as process:
        yield Muster(process, ops)


def _kubeconfig(port: int, cert: Path) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(cert)}
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "big",
        "clusters": [{"name": "big", "cluster": cluster}],
        "users": [{"name": "big", "user": {"token": "nobody-checks-it"}}],
        "contexts": [{"name": "big", "context": {"cluster": "big", "user": "big"}}],
    }  # fmt: skip


def wait(done: Callable[[], bool], what: str) -> None:
    """Until it is, with a line on stderr every few seconds. Raises WaitTimeout; errors count as "not yet"."""
    began = told = time.monotonic()

    def asked() -> bool:
        nonlocal told
        now = time.monotonic()
        if now - told > SAY_SECONDS:
            told = now
            say(f"  {now - began:.0f} s, not yet {what}")
        return done()

    wait_for(asked, seconds=READY_SECONDS, what=what)


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
