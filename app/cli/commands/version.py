# SPDX-License-Identifier: Apache-2.0
"""`muster version`."""

from __future__ import annotations

import click


@click.command("version")
def command() -> None:
    """Print the version."""
    from app import __version__

    click.echo(f"muster {__version__}")
