# SPDX-License-Identifier: Apache-2.0
"""What several of these tests need: waiting for conditions, background tasks, objects as the API has them."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from kubernetes.aio.client import Configuration

from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import PodRef
from app.kube.client import Api

Object = dict[str, Any]


def api_at(url: str, **settings: Any) -> Api:
    configuration = Configuration()
    configuration.host = url
    for name, value in settings.items():
        setattr(configuration, name, value)
    return Api(configuration)


async def until(check: Callable[[], object], what: str, *, seconds: float = 20.0) -> None:
    """Wait until it is truthy; the interval is the polling grain, not a guess about how long things take."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not check():
        assert loop.time() < end, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    """The work in the background; an error of it fails the test."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class World:
    """One API server, fake or real, and a namespace of its own in it."""

    def __init__(self, api: Api, namespace: str, *, real: bool) -> None:
        self.api = api
        self.namespace = namespace
        self.real = real

    def path(self, plural: str, name: str = "") -> str:
        prefix = {
            "podgroups": "/apis/scheduling.x-k8s.io/v1alpha1",
            "leases": "/apis/coordination.k8s.io/v1",
        }.get(plural, "/api/v1")
        return f"{prefix}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def call(self, method: str, path: str, body: object | None = None, **more: Any) -> Object:
        status, answer = await self.api.request(method, path, body=body, **more)
        assert status < 300, (method, path, status, answer[:500])
        found: Object = json.loads(answer)
        return found

    async def make_pod(self, name: str = "p", *, gates: tuple[str, ...] = (), node: str = "") -> PodRef:
        made = await self.call("POST", self.path("pods"), pod(name, gates=gates))
        ref = PodRef(namespace=self.namespace, name=name, uid=PodUid(made["metadata"]["uid"]))
        if node:
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self.call("POST", f"{self.path('pods', name)}/binding", body)
        return ref

    async def make_group(self, name: str = "g") -> PodGroup:
        made = await self.call(
            "POST",
            self.path("podgroups"),
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "metadata": {"name": name},
                "spec": {"minMember": 2},
            },
        )
        return PodGroup(key=GangKey(GangApi.LABEL, self.namespace, name), uid=made["metadata"]["uid"])

    async def get(self, plural: str, name: str) -> Object:
        return await self.call("GET", self.path(plural, name))

    async def delete(self, plural: str, name: str) -> None:
        await self.call("DELETE", self.path(plural, name), {"gracePeriodSeconds": 0})

    async def list(self, plural: str) -> list[Object]:
        found: list[Object] = (await self.call("GET", self.path(plural)))["items"]
        return found


def pod(name: str, *, gates: tuple[str, ...] = ()) -> Object:
    spec: Object = {"schedulerName": "muster", "containers": [{"name": "c", "image": "none"}]}
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def fresh_name(prefix: str = "t") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"
