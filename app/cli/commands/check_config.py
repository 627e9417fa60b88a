# SPDX-License-Identifier: Apache-2.0
"""`muster check-config`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import FILE


@click.command("check-config", short_help="Judge a KubeSchedulerConfiguration.")
@click.argument("file", type=FILE)
@click.option(
    "-o", "--output", type=click.Choice(("text", "json", "yaml")), default="text", help="Form of the answer."
)
@click.option("--hold-seconds", type=float, help="Muster's setting of that name [15].")
@click.option("--gang-seconds", type=float, help="Muster's setting of that name [300].")
@click.option("--port", type=int, help="Port of Muster's verbs [8888].")
@click.option(
    "--config",
    type=FILE,
    metavar="FILE",
    help="Muster's settings file (YAML); MUSTER_* and flags win over it.",
)
def command(
    file: Path,
    output: str,
    hold_seconds: float | None,
    gang_seconds: float | None,
    port: int | None,
    config: Path | None,
) -> None:
    """Tell what in a KubeSchedulerConfiguration breaks or weakens Muster's guarantee.

    FILE is the configuration, or a manifest with a ConfigMap that holds it; - is stdin. Exit code 0: nothing
    does; 1: something does; 2: FILE cannot be read.
    """
    from app.cli.check_config import check, expected
    from app.settings import load

    settings = load(config, hold_seconds=hold_seconds, gang_seconds=gang_seconds, port=port)
    answer = check(file, expected(settings))
    click.echo(answer.written(output))
    raise SystemExit(answer.exit)
