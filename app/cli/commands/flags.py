# SPDX-License-Identifier: Apache-2.0
"""Flags that several commands share, so that they are spelled and explained alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click
from click.core import ParameterSource

FILE: Final = click.Path(path_type=Path)
"""A path; whether it can be read is for the command to find out, and to say in one line."""

F = TypeVar("F", bound=Callable[..., object])


def kubeconfig(function: F) -> F:
    """`--kubeconfig FILE`."""
    return click.option(
        "--kubeconfig", type=FILE, metavar="FILE", help="Kubeconfig [KUBECONFIG, in-cluster]."
    )(function)


def context(function: F) -> F:
    """`--context NAME`."""
    return click.option("--context", metavar="NAME", help="Kubeconfig context.")(function)


def server(function: F) -> F:
    """`--server URL`, for `Client.of`; None where it is not given."""
    return click.option(
        "--server",
        metavar="URL",
        envvar="MUSTER_SERVER",
        help="A running Muster [MUSTER_SERVER]; a live one is reached through kubectl port-forward.",
    )(function)


def meant(ctx: click.Context, server: str | None, *others: object) -> str | None:
    """`--server` as it is meant: MUSTER_SERVER gives way to a flag that names another source."""
    named = any(other is not None for other in others)
    from_variable = ctx.get_parameter_source("server") is ParameterSource.ENVIRONMENT
    return None if named and from_variable else server
