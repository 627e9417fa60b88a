# SPDX-License-Identifier: Apache-2.0
"""Python modules as processes of their own, stopped by pid. They take no settings from the environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import Process


@contextmanager
def module(name: str, *flags: str, folder: Path, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """`python -m name flags`, with its log in the folder; just started, and not waited for."""
    unset = [f"--unset={key}" for key in os.environ if key.startswith("MUSTER_")]
    argv = ["env", *unset, *(f"{key}={value}" for key, value in (env or {}).items())]
    process = Process(name, [*argv, sys.executable, "-m", name, *flags], log=folder / f"{name}.log")
    process.start()
    try:
        yield process
    finally:
        process.stop()
