# SPDX-License-Identifier: Apache-2.0
"""`muster release`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import context, kubeconfig


@click.command("release", short_help="Lift the gate of every pod that waits.")
@click.option("-n", "--namespace", help="Of this namespace.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@click.option("--dry-run", is_flag=True, help="Only print what would be released.")
@kubeconfig
@context
def command(
    namespace: str | None,
    all_namespaces: bool,
    dry_run: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Lift the gate of every pod that still waits, so that switching Muster off strands nobody."""
    from app.cli.release import release as lift
    from app.domain.errors import InputError

    if (namespace is None) != all_namespaces:
        raise InputError("give either --namespace NAME or --all-namespaces", field="release")
    done = lift(namespace=namespace, kubeconfig=kubeconfig, context=context, dry_run=dry_run)
    raise SystemExit(0 if done else 1)
