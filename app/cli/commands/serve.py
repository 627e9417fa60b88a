# SPDX-License-Identifier: Apache-2.0
"""`muster serve`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import FILE, context, kubeconfig


@click.command("serve", short_help="Serve the scheduler extender.")
@click.option(
    "--snapshot", type=FILE, metavar="FILE", help="Serve this v1 List (JSON, .gz) as an embedded cluster."
)
@click.option("--host", help="Address of the verbs [127.0.0.1].")
@click.option("--port", type=int, help="Port of the verbs [8888].")
@click.option("--ops-port", type=int, help="Port of /metrics /healthz /readyz [8889].")
@kubeconfig
@context
@click.option(
    "--config", type=FILE, metavar="FILE", help="Settings file (YAML); MUSTER_* and flags win over it."
)
def command(
    snapshot: Path | None,
    host: str | None,
    port: int | None,
    ops_port: int | None,
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
) -> None:
    """Serve the scheduler extender, for a cluster or for a snapshot of one."""
    from app import main
    from app.cli.logs import configure
    from app.settings import load

    settings = load(config, host=host, port=port, ops_port=ops_port)
    configure(settings.log_level)
    if snapshot is not None:
        main.serve_snapshot(settings, snapshot, ops_port=ops_port)
    else:
        main.serve_live(settings, kubeconfig=kubeconfig, context=context)
