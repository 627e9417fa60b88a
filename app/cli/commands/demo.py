# SPDX-License-Identifier: Apache-2.0
"""`muster demo`: flags alone."""

from __future__ import annotations

import click


@click.command("demo", short_help="Play bundled stories, without a cluster.")
@click.option("--scenario", metavar="NAME", help="Play this one alone.")
def command(scenario: str | None) -> None:
    """Play bundled scenarios against the service, without a cluster."""
    from app.cli import demo

    raise SystemExit(0 if demo.demo(scenario) else 1)
