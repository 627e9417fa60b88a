# SPDX-License-Identifier: Apache-2.0
"""Flags that mean the same in every command of the load tests."""

from __future__ import annotations

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """The type of a flag that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def add_nodes(parser: argparse.ArgumentParser) -> None:
    """`--nodes`, several sizes."""
    sizes = [1000, 5000, 15000]
    parser.add_argument("--nodes", type=positive, nargs="+", default=sizes, help=f"sizes {sizes}")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """`--runs`; runs count from 1 in records."""
    parser.add_argument("--runs", type=positive, default=1, help="how often to measure [1]")


def add_out(parser: argparse.ArgumentParser) -> None:
    """`--out`."""
    parser.add_argument("--out", type=Path, metavar="DIR", help="append records to this folder of results")
