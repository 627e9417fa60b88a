# SPDX-License-Identifier: Apache-2.0
"""`muster` and `kubectl muster`: the commands and their flags. Each command lives in its own module.

Exit codes: 0 fine, 1 judged and found wanting, 2 could not tell (bad input, no API), with one line on stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.domain.errors import MusterError

app = typer.Typer(
    name="muster",
    help="Lets the pods of a GPU gang bind only once the whole gang fits.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Config = Annotated[Path | None, typer.Option(help="Settings file (YAML); MUSTER_* and flags win over it.")]


@app.command()
def serve(
    snapshot: Annotated[
        Path | None, typer.Option(help="Serve this v1 List (JSON, .gz) as an embedded cluster.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address of the verbs [127.0.0.1].")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the verbs [8888].")] = None,
    ops_port: Annotated[int | None, typer.Option(help="Port of /metrics /healthz /readyz [8889].")] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="Live mode: kubeconfig [KUBECONFIG, in-cluster].")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Live mode: kubeconfig context.")] = None,
    config: Config = None,
) -> None:
    """Serve the scheduler extender."""
    from app import main
    from app.cli.logs import configure
    from app.settings import load

    settings = load(config, host=host, port=port, ops_port=ops_port)
    configure(settings.log_level)
    if snapshot is not None:
        main.serve_snapshot(settings, snapshot, ops_port=ops_port)
    else:
        main.serve_live(settings, kubeconfig=kubeconfig, context=context)


@app.command()
def demo(
    scenario: Annotated[str | None, typer.Option(help="Play this one alone.")] = None,
) -> None:
    """Play bundled scenarios against the service, without a cluster."""
    from app.cli import demo

    raise typer.Exit(0 if demo.demo(scenario) else 1)


@app.command()
def release(
    namespace: Annotated[str | None, typer.Option("-n", "--namespace", help="Of this namespace.")] = None,
    all_namespaces: Annotated[
        bool, typer.Option("-A", "--all-namespaces", help="Of all namespaces.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be released.")] = False,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig [KUBECONFIG, in-cluster].")] = None,
    context: Annotated[str | None, typer.Option(help="Kubeconfig context.")] = None,
) -> None:
    """Lift the gate of every pod that still waits, so that switching Muster off strands nobody."""
    from app.cli.release import release as lift
    from app.domain.errors import InputError

    if (namespace is None) != all_namespaces:
        raise InputError("give either --namespace NAME or --all-namespaces", field="release")
    done = lift(namespace=namespace, kubeconfig=kubeconfig, context=context, dry_run=dry_run)
    raise typer.Exit(0 if done else 1)


@app.command()
def version() -> None:
    """Print the version."""
    from app import __version__

    typer.echo(f"muster {__version__}")


def run() -> None:
    """Console script."""
    try:
        app()
    except MusterError as error:
        print("muster:", *str(error).split(), file=sys.stderr)  # one line, whatever a library has said
        sys.exit(2)
