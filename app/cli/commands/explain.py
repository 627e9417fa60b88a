# SPDX-License-Identifier: Apache-2.0
"""`muster explain`: flags alone."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.commands.flags import FILE, context, kubeconfig, meant, server


@click.command("explain", short_help="Say why a pod, gang or job is pending.")
@click.argument("kind", metavar="KIND")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("-n", "--namespace", help="Where it is [default; live: the namespace of the context].")
@click.option("--snapshot", type=FILE, metavar="FILE", help="Ask this v1 List (JSON, .gz), not a cluster.")
@server
@click.option(
    "-o", "--output", type=click.Choice(["text", "wide", "json", "yaml"]), default="text",
    help="Form of output.",
)  # fmt: skip
@click.option("--no-headers", is_flag=True, help="Leave the headers of -o wide out.")
@click.option("--bundle", type=FILE, metavar="FILE", help="Also write a .tar.gz to hand over.")
@click.option("--config", type=FILE, metavar="FILE", help="The scheduler's KubeSchedulerConfiguration.")
@kubeconfig
@context
@click.pass_context
def command(
    ctx: click.Context,
    kind: str,
    name: str | None,
    namespace: str | None,
    snapshot: Path | None,
    server: str | None,
    output: str,
    no_headers: bool,
    bundle: Path | None,
    config: Path | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Say why pods are pending: pod, podgroup, job, jobset, replicaset, statefulset or deployment.

    Exits with 0 if they run or fit, 1 if they do not, 2 if that could not be told. Changes nothing.
    """
    from app.cli import explain

    request = explain.Request(
        what=(kind,) if name is None else (kind, name),
        namespace=namespace,
        snapshot=snapshot,
        server=meant(ctx, server, snapshot, kubeconfig, context),
        kubeconfig=kubeconfig,
        context=context,
        bundle=bundle,
        config=config,
    )
    report = explain.report(request)
    click.echo(explain.shown(report, output=output, headers=not no_headers))
    raise SystemExit(report.verdict.exit)
