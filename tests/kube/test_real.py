# SPDX-License-Identifier: Apache-2.0
"""What only a real API server can show: kubectl's view, RBAC, its restart, and a built-in PodGroup."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from app.domain.changes import Change
from app.domain.gang import PodGroup
from app.domain.ids import GangApi, NodeName
from app.kube.binder import Binder
from app.kube.client import Api
from app.kube.events import Reporter
from app.kube.watches import Watches
from tests.kube.helpers import World, fresh_name, running, until

if TYPE_CHECKING:
    from tests.cluster import Cluster

pytestmark = pytest.mark.real


@pytest.fixture
async def real(real_cluster: Cluster) -> AsyncIterator[World]:
    api = await Api.connect(kubeconfig=str(real_cluster.admin_kubeconfig))
    found = World(api, fresh_name(), real=True)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.namespace}}
    await found.call("POST", "/api/v1/namespaces", body)
    yield found
    await api.close()


async def test_kubectl_describe_shows_why_pod_and_group_wait(real: World, real_cluster: Cluster) -> None:
    pod, group = await real.make_pod(), await real.make_group()
    reporter = Reporter(real.api)
    async with running(reporter.run()):
        reporter.event(pod, reason="Incomplete", message="gang ns/g has 4 of 5 members")
        reporter.event(group, reason="Incomplete", message="gang ns/g has 4 of 5 members", warning=True)
        await until(lambda: reporter.writer.written == 2, "written")
        reporter.event(pod, reason="Incomplete", message="gang ns/g has 3 of 5 members")
        await until(lambda: reporter.writer.written == 3, "written")
    for kind, name, sentence in (
        ("pod", "p", "muster  gang ns/g has 3 of 5 members"),
        ("podgroups.scheduling.x-k8s.io", "g", "muster  gang ns/g has 4 of 5 members"),
    ):
        shown = await asyncio.to_thread(real_cluster.kubectl, "describe", kind, name, "-n", real.namespace)
        assert sentence in shown, shown
        assert shown.count("Incomplete") == 1


async def test_both_kinds_of_group_are_followed(real: World) -> None:
    await real.make_group("same")
    path = f"/apis/scheduling.k8s.io/v1beta1/namespaces/{real.namespace}/podgroups"
    native = {"metadata": {"name": "same"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}
    await real.call("POST", path, {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", **native})
    changes: list[Change] = []
    watches = Watches(real.api, changes.extend, rng=Random(1))
    async with running(watches.run()):
        await watches.wait_synced()
        later = {"metadata": {"name": "later"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        await real.call(
            "POST", path, {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", **later}
        )

        def groups() -> set[tuple[GangApi, str, int | None]]:
            values = [c.value for c in changes if isinstance(c.value, PodGroup)]
            return {(v.key.api, v.key.name, v.declared) for v in values if v.key.namespace == real.namespace}

        expected = {(GangApi.LABEL, "same", 2), (GangApi.NATIVE, "same", 3), (GangApi.NATIVE, "later", 2)}
        await until(lambda: groups() == expected, "all groups")
        assert watches.problems() == []


async def test_missing_rights_are_named(real_cluster: Cluster) -> None:
    api = await Api.connect(kubeconfig=str(real_cluster.kubeconfig_for("nobody")))
    watches = Watches(api, lambda changes: None, rng=Random(1))
    async with running(watches.run()):
        await until(lambda: all("not allowed" in text for text in watches.problems()), "all named")
        assert (
            "not allowed to list and watch pods: grant it to Muster's ServiceAccount" in watches.problems()[1]
        )
    await api.close()


@pytest.mark.parametrize("turns", [None, 0, 3, 12, 60])
async def test_closing_leaves_no_socket_however_calls_ended(real_cluster: Cluster, turns: int | None) -> None:
    """A watch hung up (None), and calls given up after so many turns of the event loop: over real TLS."""
    port = real_cluster.api.port
    before = sockets_to(port)
    api = await Api.connect(kubeconfig=str(real_cluster.admin_kubeconfig))
    if turns is None:
        watch = api.stream("/api/v1/pods", query={"watch": "true"}, inactivity_seconds=60)
        async with aclosing(watch) as lines:
            await anext(lines)
    else:
        calls = [asyncio.create_task(api.request("GET", "/api/v1/pods")) for _ in range(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    await api.close()
    assert sockets_to(port) <= before


def sockets_to(port: int) -> set[int]:
    """File numbers of this process's open sockets to a port of loopback."""
    known = [found for found in gc.get_objects() if isinstance(found, socket.socket)]
    return {one.fileno() for one in known if one.fileno() != -1 and _peer(one) == ("127.0.0.1", port)}


def _peer(known: socket.socket) -> object:
    with suppress(OSError):
        return known.getpeername()
    return None


async def test_an_api_server_that_restarts_is_followed_again(real: World, real_cluster: Cluster) -> None:
    changes: list[Change] = []
    watches = Watches(real.api, changes.extend, rng=Random(1))
    first = await real.make_pod("first")
    async with running(watches.run()):
        await watches.wait_synced()
        await asyncio.to_thread(real_cluster.apiserver.kill)
        outcome = await Binder(real.api).bind(first, NodeName("n1"))
        assert not outcome.ok
        assert not outcome.gone
        await until(lambda: "no answer" in watches.pods.error, "noticed")
        await asyncio.to_thread(real_cluster.apiserver.start)
        await until(
            lambda: real_cluster.api.exists("/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
            "served",
            seconds=60,
        )
        second = await real.make_pod("second")
        await real.delete("pods", "first")
        await until(lambda: any(c.value.uid == second.uid for c in changes), "new pod", seconds=40)
        await until(
            lambda: any(c.gone and c.value.uid == first.uid for c in changes), "old pod gone", seconds=40
        )
        await until(
            lambda: not any(r.error for r in (watches.nodes, watches.pods, watches.label_groups)),
            "calm",
            seconds=40,
        )
        assert not [c for c in changes if c.gone and isinstance(c.value, PodGroup)], "no group was given up"
