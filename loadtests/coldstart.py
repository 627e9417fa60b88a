# SPDX-License-Identifier: Apache-2.0
"""How Muster starts on, and keeps up with, a large cluster: against a server of real-looking bytes over TLS.

Starts `loadtests.big_api` and `muster serve` as processes, and reports seconds and memory until ready, watch
events applied per second, and how long the event loop was held up while nodes and pods kept changing. Judges
nothing, and never talks to a real cluster.

    python -m loadtests.coldstart [--nodes 15000] [--pods 150000] [--out DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from loadtests import record
from loadtests.record import Record

READY_SECONDS: Final = 120.0
_TICK: Final = os.sysconf("SC_CLK_TCK")
_STALL: Final = re.compile(r'muster_loop_stall_seconds_bucket\{clock="(\w+)",le="([^"]+)"\} (\S+)')
_Tally = dict[str, dict[float, float]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Cold start, event rate and stalls on a large cluster.")
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--events", type=int, default=100_000, help="pod changes in the burst")
    parser.add_argument("--churn", type=int, default=200, help="node, and as many pod, changes per second")
    parser.add_argument("--seconds", type=int, default=30, help="of churn")
    parser.add_argument("--out", type=Path, help="folder for records")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _big_api(Path(folder), args.nodes, args.pods) as api:
        found = measure(Path(folder), api, args)
    for name, value in found.items():
        print(f"{name:<44}{value:>12}")
    if args.out:
        record.append(
            args.out, Record(scenario="coldstart", contender="muster", nodes=args.nodes, run=1, figures=found)
        )


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


def burst(muster: Muster, api: Api, args: argparse.Namespace) -> dict[str, Any]:
    """Changes as fast as they are taken."""
    say(f"a burst of {args.events} pod changes, and a tenth as many of nodes")
    cpu, began = muster.cpu_seconds(), time.monotonic()
    sent = api.post(f"/control/burst?events={args.events}")["sent"]
    wait(lambda: muster.metric("muster_pods") > args.pods, "all applied")
    seconds, cpu = time.monotonic() - began, muster.cpu_seconds() - cpu
    return {"events_per_second": round(sent / seconds), "events_per_cpu_second": round(sent / cpu)}


def churn(muster: Muster, api: Api, args: argparse.Namespace) -> dict[str, Any]:
    """An even stream of changes, and by how much it (or one scrape of the metrics) held up the event loop."""
    say(f"{args.churn} node and {args.churn} pod changes a second for {args.seconds} s")
    before, cpu = muster.stalls(), muster.cpu_seconds()
    api.post(f"/control/churn?per_second={args.churn}&seconds={args.seconds}")
    after, cpu = muster.stalls(), muster.cpu_seconds() - cpu
    return {"churn_cpu_percent": round(100 * cpu / args.seconds, 1)} | {
        f"churn_longest_stall_ms_{clock}": _longest(before[clock], after[clock]) for clock in ("cpu", "wall")
    }


def _longest(before: dict[float, float], after: dict[float, float]) -> float:
    """Upper bound in ms of the longest stall between two readings of cumulative buckets."""
    new = {bound: count - before[bound] for bound, count in after.items()}
    return min(bound for bound, count in new.items() if count == new[float("inf")]) * 1e3


class Muster:
    """The process and its ops port."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self._process, self._url = process, f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        """GET /readyz."""
        if self._process.poll() is not None:
            sys.exit(f"muster ended with {self._process.returncode}")
        try:
            return bool(urllib.request.urlopen(f"{self._url}/readyz", timeout=10).status == 200)
        except OSError:  # nobody listens yet, or 503
            return False

    def at_rest(self) -> bool:
        """Whether nothing is going on any more: less than a tenth of a core."""
        cpu = self.cpu_seconds()
        time.sleep(1.0)
        return self.cpu_seconds() - cpu < 0.1

    def metrics(self) -> str:
        """GET /metrics."""
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=30) as reply:
            return str(reply.read().decode())

    def metric(self, name: str) -> float:
        """One sample without labels."""
        return float(re.findall(rf"^{name} (\S+)$", self.metrics(), re.M)[0])

    def stalls(self) -> _Tally:
        """Cumulative counts by clock and upper bound in seconds."""
        found: _Tally = {}
        for clock, bound, count in _STALL.findall(self.metrics()):
            found.setdefault(clock, {})[float(bound)] = float(count)
        return found

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

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
        """Whether it answers at all."""
        try:
            urllib.request.urlopen(f"{self._url}/api/v1/nodes?limit=1", timeout=5, context=self._tls)
        except OSError:
            return False
        return True


@contextmanager
def _big_api(folder: Path, nodes: int, pods: int) -> Iterator[Api]:
    cert, key, port = folder / "crt", folder / "key", _free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=big-api",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "kubeconfig").write_text(yaml.safe_dump(_kubeconfig(port, cert)))
    argv = ["-m", "loadtests.big_api", f"--port={port}", f"--cert={cert}", f"--key={key}"]
    with _process([*argv, f"--nodes={nodes}", f"--pods={pods}"]):
        api = Api(port, cert)
        wait(api.serves, "the API serves")
        yield api


@contextmanager
def _muster(folder: Path) -> Iterator[Muster]:
    port, ops = _free_port(), _free_port()
    own = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    env = {**own, "MUSTER_ACTIVE": "always", "MUSTER_OPS_HOST": "127.0.0.1", "MUSTER_LOG_LEVEL": "warning"}
    argv = ["-m", "app", "serve", "--port", str(port), "--ops-port", str(ops)]
    with _process(argv, env={**env, "KUBECONFIG": str(folder / "kubeconfig")}) as process:
        yield Muster(process, ops)


@contextmanager
def _process(argv: list[str], env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *argv], env=env)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _kubeconfig(port: int, cert: Path) -> dict[str, Any]:
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(cert)}
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "big",
        "clusters": [{"name": "big", "cluster": cluster}],
        "users": [{"name": "big", "user": {"token": "nobody-checks-it"}}],
        "contexts": [{"name": "big", "context": {"cluster": "big", "user": "big"}}],
    }  # fmt: skip


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait(done: Callable[[], bool], what: str) -> None:
    """Poll, with a line on stderr every few seconds."""
    began = told = time.monotonic()
    while not done():
        now = time.monotonic()
        if now - began > READY_SECONDS:
            sys.exit(f"not within {READY_SECONDS:g} s: {what}")
        if now - told > 5:
            told = now
            say(f"  {now - began:.0f} s, not yet {what}")
        time.sleep(0.1)


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
