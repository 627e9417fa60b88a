# SPDX-License-Identifier: Apache-2.0
"""`muster release`: lifts our gate from every pod that waits, so that switching Muster off strands nobody.

Works without a running Muster. Decides nothing about a pod: whoever carries the gate loses it, and no other
gate is touched. Safe to repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import click
import msgspec

from app.codec.wire import UNUSABLE, Gate, ObjectList
from app.domain.errors import ApiError
from app.domain.ids import PodUid
from app.domain.plan import PodRef
from app.domain.pod import GATE
from app.kube.admitter import Admitter
from app.kube.client import Api, refused

PAGE = 500
AT_ONCE = 16
"""Patches under way at a time: quick for thousands of pods, and no burden for the API server."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[Gate] | None = None


class _Waiting(msgspec.Struct):
    """As little of a pod as this needs: one that Muster cannot read otherwise is released like any other."""

    metadata: _Metadata
    spec: _Spec

    @property
    def gates(self) -> list[str]:
        return [gate.name for gate in self.spec.scheduling_gates or []]


_WAITING = msgspec.json.Decoder(_Waiting)


def release(*, namespace: str | None, kubeconfig: Path | None, context: str | None, dry_run: bool) -> bool:
    """Lift the gates, in all namespaces if `namespace` is None; whether none is left on a pod that was found.

    Raises `MusterError` when the API cannot be asked.
    """
    return asyncio.run(_release(namespace, kubeconfig, context, dry_run))


async def _release(
    namespace: str | None, kubeconfig: Path | None, context: str | None, dry_run: bool
) -> bool:
    api = await Api.connect(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
    try:
        found = [pod async for pod in _waiting(api, namespace)]
        slots, admitter = asyncio.Semaphore(AT_ONCE), Admitter(api)

        async def one(pod: _Waiting) -> bool:
            async with slots:
                return await _lift(admitter, pod, dry_run)

        released = sum(await asyncio.gather(*map(one, found)))
    finally:
        await api.close()
    verb = "would be released" if dry_run else "released"
    click.echo(f"{released} of {len(found)} gated pods {verb}")
    return released == len(found)


async def _waiting(api: Api, namespace: str | None) -> AsyncIterator[_Waiting]:
    path = "/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    # A gated pod is always Pending and on no node: the server need not send the others.
    query = {"limit": str(PAGE), "fieldSelector": "spec.nodeName=,status.phase=Pending"}
    while True:
        status, body = await api.request("GET", path, query=query)
        if status != 200:
            raise refused("GET", path, status, body)
        try:
            page = msgspec.json.decode(body, type=ObjectList[msgspec.Raw])
            for raw in page.items or []:
                pod = _WAITING.decode(raw)
                if GATE in pod.gates and pod.metadata.deletion_timestamp is None:
                    yield pod
        except UNUSABLE as error:
            raise ApiError(f"GET {path}: not a list of pods: {error}") from None
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_


async def _lift(admitter: Admitter, pod: _Waiting, dry_run: bool) -> bool:
    meta = pod.metadata
    others = ", ".join(gate for gate in pod.gates if gate != GATE)
    rest = f", still gated by {others}" if others else ""
    if dry_run:
        click.echo(f"{meta.namespace}/{meta.name} would be released{rest}")
        return True
    outcome = await admitter.lift_gate(PodRef(namespace=meta.namespace, name=meta.name, uid=PodUid(meta.uid)))
    if outcome.gone:
        click.echo(f"{meta.namespace}/{meta.name} is gone already")
    elif outcome.ok:
        click.echo(f"{meta.namespace}/{meta.name} released{rest}")
    else:
        click.echo(f"{meta.namespace}/{meta.name} not released: {outcome.error}")
    return outcome.ok or outcome.gone
