# SPDX-License-Identifier: Apache-2.0
"""`muster snapshot`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import context, kubeconfig, meant, server


@click.command("snapshot", short_help="Save a cluster, redacted, into one file.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write here, zipped if it ends with .gz; - is stdout [stdout, or a file with the time in its name].",
)
@server
@click.option("-n", "--namespace", help="Only objects of this namespace, and those of none.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, as without --namespace.")
@click.option("--keep-env", is_flag=True, help="Keep env, command and args: they may hold secrets.")
@kubeconfig
@context
@click.pass_context
def command(
    ctx: click.Context,
    output: str | None,
    server: str | None,
    namespace: str | None,
    all_namespaces: bool,
    keep_env: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Write all that may say why a pod is pending into one file, without what must not leave the cluster.

    Exits with 0 if it was written, 2 if not, or if nodes or pods are missing in it.
    """
    from app.cli import snapshot
    from app.cli.client import Client
    from app.domain.errors import InputError

    if namespace is not None and all_namespaces:
        raise InputError("give either --namespace NAME or --all-namespaces", field="snapshot")
    server = meant(ctx, server, kubeconfig, context)
    if server is not None and (namespace is not None or kubeconfig or context):
        raise InputError(
            "a running Muster (also one named by MUSTER_SERVER) gives its whole cluster: leave --namespace, "
            "--kubeconfig and --context out",
            field="--server",
        )
    source = (
        snapshot.from_server(Client.of(server), keep_environment=keep_env)
        if server is not None
        else snapshot.from_cluster(
            namespace=namespace, keep_environment=keep_env, kubeconfig=kubeconfig, context=context
        )
    )
    raise SystemExit(0 if snapshot.write(source, output) else 2)
