# SPDX-License-Identifier: Apache-2.0
"""`muster top`: flags alone."""

from __future__ import annotations

import sys

import click

from app.cli.commands.flags import server


@click.command("top", short_help="Show gangs and free devices, live.")
@server
@click.option(
    "--interval", type=click.FloatRange(min=0.2), default=2.0, metavar="SECONDS", help="Ask this often."
)
@click.option("--once", is_flag=True, help="Print one table, as when the output is piped.")
@click.option("--no-headers", is_flag=True, help="Leave the headers out.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="Form of output.")
def command(server: str | None, interval: float, once: bool, no_headers: bool, output: str) -> None:
    """Show gangs by state, and which devices are free, in a running Muster."""
    from app.cli import top
    from app.cli.client import Client

    client = Client.of(server)
    if once or output == "json" or not sys.stdout.isatty():
        click.echo(top.once(client, output=output, headers=not no_headers))
        return
    from app.cli.live import live

    live(client, interval=interval)
