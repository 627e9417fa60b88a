# SPDX-License-Identifier: Apache-2.0
"""A snapshot as it is taken: what is in it, what it says of itself, and which feature gates it learned."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from app.codec.snapshot import SnapshotInfo, Unseen, info_of, items_of
from app.kube.client import Api
from app.kube.gates import api_gates, scheduler_gates
from app.kube.taking import SLICE, Taking
from tests.kube.fake_api import FakeApi, Fault
from tests.kube.helpers import api_at

METRICS = b"".join(
    [
        b'apiserver_request_total{name="GenericWorkload"} 1\n' * 5000,
        b"# TYPE kubernetes_feature_enabled gauge\n",
        b'kubernetes_feature_enabled{name="APIServerTracing",stage=""} 1\n',
        b'kubernetes_feature_enabled{name="DRAPartitionableDevices",stage="BETA"} 0\n',
        b'kubernetes_feature_enabled{name="DynamicResourceAllocation",stage=""} 1\n',
        b'kubernetes_feature_enabled{name="GenericWorkload",stage="BETA"} 1\n',
        b"process_cpu_seconds_total 7\n",
    ]
)
GATES = {"DRAPartitionableDevices": False, "DynamicResourceAllocation": True, "GenericWorkload": True}


async def served(pages: dict[str, bytes]) -> tuple[web.AppRunner, Api]:
    """A server of plain bytes by path; 403 for any other."""

    async def answer(request: web.Request) -> web.Response:
        body = pages.get(request.path)
        return web.Response(body=body) if body is not None else web.Response(status=403)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, api_at(f"http://127.0.0.1:{runner.addresses[0][1]}")


async def test_gates_that_matter_are_told_by_the_metrics() -> None:
    proxy = "/api/v1/namespaces/kube-system/pods/https:kube-scheduler-a:10259/proxy/metrics"
    pods = b'{"items":[{"metadata":{"name":"kube-scheduler-a"}},{"metadata":{"name":"kube-scheduler-b"}}]}'
    pages = {"/metrics": METRICS, proxy: METRICS, "/api/v1/namespaces/kube-system/pods": pods}
    runner, api = await served(pages)
    try:
        assert await api_gates(api) == GATES
        assert await scheduler_gates(api) == {"kube-scheduler-a": GATES}
    finally:
        await api.close()
        await runner.cleanup()


async def test_out_of_reach_or_without_such_lines_they_could_not_be_told() -> None:
    runner, api = await served({"/metrics": b"process_cpu_seconds_total 7\n"})
    try:
        assert await api_gates(api) is None
        assert await scheduler_gates(api) is None
    finally:
        await api.close()
        await runner.cleanup()


async def taken(api: Api, **options: Any) -> tuple[list[dict[str, Any]], SnapshotInfo]:
    taking = Taking(api, now=lambda: 0.0, **options)
    items = items_of(b"".join([bit async for bit in taking.text()]), source="memory")
    info = info_of(items)
    assert info is not None
    assert info == taking.info
    return items, info


async def test_a_snapshot_is_redacted_and_says_what_it_lacks(fake: FakeApi, fake_api: Api) -> None:
    container = {"name": "c", "env": [{"name": "TOKEN", "value": "s3cr3t"}]}
    for index in range(SLICE + 1):
        await fake.store(
            f"/api/v1/namespaces/ns/pods/p{index}", {"metadata": {}, "spec": {"containers": [container]}}
        )
    await fake.store("/api/v1/nodes/n", {"metadata": {}})
    fake.faults.append(Fault("GET", "/api/v1/namespaces?", 403))
    items, info = await taken(fake_api)
    assert [item["kind"] for item in items] == ["Node", *["Pod"] * (SLICE + 1), "SnapshotInfo"]
    assert "s3cr3t" not in str(items)
    assert (info.taken, info.redacted, info.environment_kept) == ("1970-01-01T00:00:00Z", True, False)
    assert info.counts == {
        "nodes": 1,
        "pods": SLICE + 1,
        "podgroups.scheduling.x-k8s.io": 0,
        "events": 0,
        "leases.coordination.k8s.io": 0,
    }
    assert info.unseen == (Unseen("namespaces", "not allowed to list it"),)
    assert "resourceclaims.resource.k8s.io" in info.absent
    assert info.namespaces is None
    assert (info.api_gates, info.scheduler_gates) == (None, None)


async def test_the_environment_and_the_namespace_are_as_asked_for(fake: FakeApi, fake_api: Api) -> None:
    container = {"name": "c", "env": [{"name": "TOKEN", "value": "s3cr3t"}]}
    for namespace in ("mine", "other"):
        await fake.store(
            f"/api/v1/namespaces/{namespace}/pods/p", {"metadata": {}, "spec": {"containers": [container]}}
        )
    items, info = await taken(fake_api, namespace="mine", keep_environment=True)
    (pod,) = [item for item in items if item["kind"] == "Pod"]
    assert pod["metadata"]["namespace"] == "mine"
    assert pod["spec"]["containers"] == [container]
    assert (info.namespaces, info.environment_kept, info.partial) == (("mine",), True, True)
