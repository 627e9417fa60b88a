# SPDX-License-Identifier: Apache-2.0
"""`make locust`: the HTTP verbs alone under load, against a `muster serve --snapshot` of its own.

Starts the service on a free loopback port, runs locust against it for a bounded time, and stops it by its
own pid. Prints a table and, if asked to, appends a record; with `--judge` a call beyond its limit is exit 1.

    python -m loadtests.verbs [--users 2] [--seconds 20] [--nodes 15000] [--runs 1] [--out DIR] [--judge]
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson

from app.cli.client import Client
from app.cli.serving import serving, stopped_by_sigterm
from app.cli.table import table
from app.domain.errors import InputError, MusterError
from loadtests.material.bodies import snapshot
from loadtests.record import Record, append
from loadtests.shared.flags import add_out, add_runs, positive

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
ROOT = LOCUSTFILE.parents[1]
"""Where locust finds the packages `app` and `loadtests`."""
SPARE_SECONDS = 60.0
"""For locust to start and to stop, beyond the time it was told to run."""


def main() -> int:
    """Exit codes: 0 fine, 1 calls failed or exceeded a limit, 2 could not be run."""
    args = _arguments()
    try:
        if importlib.util.find_spec("locust") is None:
            raise InputError("locust is not installed: run `make locust`, which installs it")
        with stopped_by_sigterm():
            return max(_run(args, number) for number in range(1, args.runs + 1))
    except MusterError as error:
        print("verbs:", *str(error).split(), file=sys.stderr)
        return 2


def _run(args: argparse.Namespace, number: int) -> int:
    code, figures = drive(args)
    _print(figures)
    if args.out and figures:
        made = Record(scenario="verbs", contender="muster", nodes=args.nodes, run=number, figures=figures)
        append(args.out, made)
    return code


def drive(args: argparse.Namespace) -> tuple[int, dict[str, float]]:
    """Exit code of locust, and the figures it has taken."""
    with tempfile.TemporaryDirectory() as name:
        cluster, found = Path(name) / "snapshot.json", Path(name) / "figures.json"
        cluster.write_bytes(orjson.dumps(snapshot(args.nodes)))
        with serving(cluster) as client:
            print(f"verbs: {args.users} users, {args.seconds} s, {args.nodes:,} nodes", file=sys.stderr)
            code = _locust(args, client, found)
        figures: dict[str, float] = orjson.loads(found.read_bytes()) if found.exists() else {}
    calls = sum(value for name, value in figures.items() if name.endswith("_calls"))
    return code, {"calls_per_second": calls / args.seconds, **figures} if figures else {}


def _locust(args: argparse.Namespace, client: Client, found: Path) -> int:
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    command += ["--host", client.url, "--users", str(args.users), "--spawn-rate", str(args.users)]
    command += ["--run-time", f"{args.seconds}s", "--nodes", str(args.nodes), "--figures", str(found)]
    command += ["--loglevel", "WARNING", *(["--judge"] if args.judge else [])]
    try:
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, timeout=args.seconds + SPARE_SECONDS, check=False, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"locust did not end within {args.seconds + SPARE_SECONDS:g} s") from None
    return min(done.returncode, 1) if done.returncode >= 0 else 1


def _print(figures: dict[str, float]) -> None:
    rows = [
        (
            *name.removesuffix("_calls").split("_"),
            f"{calls:.0f}",
            *(f"{figures[name.replace('_calls', f'_{which}_ms')]:.2f} ms" for which in ("p50", "p99")),
        )
        for name, calls in figures.items()
        if name.endswith("_calls")
    ]
    print(table(["verb", "pod", "names", "calls", "p50", "p99"], rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Load the HTTP verbs of a Muster on a snapshot.")
    parser.add_argument("--users", type=positive, default=2, help="schedulers that ask at the same time [2]")
    parser.add_argument("--seconds", type=positive, default=20, help="how long [20]")
    parser.add_argument("--nodes", type=positive, default=15_000, help="nodes of the cluster [15000]")
    add_runs(parser)
    add_out(parser)
    parser.add_argument("--judge", action="store_true", help="exit 1 if a limit is exceeded")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
