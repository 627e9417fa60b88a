# SPDX-License-Identifier: Apache-2.0
"""`make load` and `make load-full`: every measurement one after the other into one folder, then the report.

The report comes also when a measurement has failed. The exit code is that of the first one that did.

    python -m loadtests short|full [--out DIR]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from app.cli.serving import stopped_by_sigterm
from loadtests import report
from loadtests.record import RECORDS, new_folder
from loadtests.shared.flags import add_out

SETS: Final[Mapping[str, Sequence[str]]] = {
    "short": (
        "inprocess",
        "verbs_http --nodes 1000 5000 15000 --calls 200",
        "run --set short",
    ),
    "full": (
        "inprocess --runs 5",
        "verbs_http --runs 5",
        "coldstart --runs 5",
        "verbs --runs 5",
        "run --set full",
    ),
}
"""Modules of this package and their flags. The runner is last: it takes by far the longest."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 all done, otherwise that of the first that failed; 130 when interrupted."""
    parser = argparse.ArgumentParser(prog="python -m loadtests", description="Load tests, then the report.")
    parser.add_argument("set", choices=SETS)
    add_out(parser)
    args = parser.parse_args(argv)
    folder = args.out or new_folder()
    codes: list[int] = []
    try:
        with stopped_by_sigterm():
            codes.extend(measure(words.split(), folder) for words in SETS[args.set])
    except KeyboardInterrupt:
        codes.append(130)
    if (folder / RECORDS).exists():
        codes.append(report.main([str(folder)]))
    return next((code for code in codes if code), 0)


def measure(words: Sequence[str], folder: Path) -> int:
    """One command, as a process: what it leaves in memory must not be in the figures of the next.

    What it prints is left out: the report has all of it. It has a process group of its own, so that it is
    told once, and by us, to stop.
    """
    print("loadtests:", *words, file=sys.stderr, flush=True)
    command = [sys.executable, "-m", f"loadtests.{words[0]}", *words[1:], "--out", str(folder)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0)
    try:
        return child.wait()
    finally:
        child.terminate()  # where it has not ended: it cleans up then
        child.wait()


if __name__ == "__main__":
    sys.exit(main())
