# SPDX-License-Identifier: Apache-2.0
"""`muster simulate`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import FILE


@click.command("simulate", short_help="Show what would be bound where.")
@click.option("--snapshot", type=FILE, metavar="FILE", required=True, help="A v1 List (JSON, .gz).")
@click.option(
    "--submit",
    type=FILE,
    metavar="MANIFEST…",
    multiple=True,
    help="Create what these files declare (YAML, JSON).",
)
@click.option("-n", "--namespace", default="default", help="Of submitted objects that name none.")
@click.option("--until-quiet", is_flag=True, help="Let time pass until nothing changes any more.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table",
    help="Form of output; wide has a row for each pod.",
)  # fmt: skip
@click.option("--plot", type=FILE, metavar="FILE", help="Draw it before and after: .png or .html.")
@click.option("--no-headers", is_flag=True, help="Leave headers, summary and notes out.")
@click.argument("more", type=FILE, nargs=-1, metavar="")
def command(
    snapshot: Path,
    submit: tuple[Path, ...],
    namespace: str,
    until_quiet: bool,
    output: str,
    plot: Path | None,
    no_headers: bool,
    more: tuple[Path, ...],
) -> None:
    """Show what would be bound where, and what stays pending and why, without a cluster.

    Exits with 0 if all that was pending would be bound, 1 if something stays, 2 for bad input.
    """
    if more and not submit:
        raise click.UsageError(f"unexpected argument {more[0]}; give manifests with --submit")
    from app.cli.simulate import simulate

    bound = simulate(
        snapshot,
        (*submit, *more),
        namespace=namespace,
        until_quiet=until_quiet,
        output=output,
        headers=not no_headers,
        plot=plot,
    )
    raise SystemExit(0 if bound else 1)
