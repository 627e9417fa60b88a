# SPDX-License-Identifier: Apache-2.0
"""An explanation that is worked out here, from a file or from the API: where the objects come from."""

from __future__ import annotations

import asyncio

from app.cli.check_config import expected, read
from app.cli.explain import NAMESPACE, Request, subject_of
from app.cli.explain_bundle import write
from app.cli.explain_offline import explain_contents
from app.codec.contents import Contents, contents_of
from app.codec.snapshot import content
from app.explain.report import Report
from app.settings import load


def report(request: Request) -> Report:
    """The report, with its bundle written. Raises `MusterError` when there is none."""
    settings = load()
    config = read(request.config, expected(settings))[0] if request.config else None
    if request.snapshot is not None:
        contents = contents_of(content(request.snapshot), source=str(request.snapshot))
        subject = subject_of(request, namespace=NAMESPACE)
    else:
        contents, namespace = asyncio.run(_read(request))
        subject = subject_of(request, namespace=namespace)
    found = explain_contents(
        contents, subject, scheduler=settings.scheduler_name, timing=settings.timing, config=config
    )
    if request.bundle is not None:
        write(request.bundle, found, contents)
    return found


async def _read(request: Request) -> tuple[Contents, str]:
    """Everything in the cluster that matters, and the namespace that is meant where none is named."""
    # Only here: the Kubernetes client takes most of a second to import, and a file needs none of it.
    from app.kube.client import Api  # noqa: PLC0415
    from app.kube.context import namespace_of  # noqa: PLC0415
    from app.kube.taking import Taking  # noqa: PLC0415

    kubeconfig = str(request.kubeconfig) if request.kubeconfig else None
    api = await Api.connect(kubeconfig=kubeconfig, context=request.context)
    try:
        taking = Taking(api)
        text = [part async for part in taking.text()]
    finally:
        await api.close()
    namespace = namespace_of(kubeconfig=kubeconfig, context=request.context) or NAMESPACE
    return contents_of(b"".join(text), source="the Kubernetes API"), namespace
