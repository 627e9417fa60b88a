# SPDX-License-Identifier: Apache-2.0
"""What Muster relies on the API server for: each case runs on the fake and on the real one."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from msgspec import structs

from app.codec.objects import GROUP_LABEL, ObjectDecoder
from app.codec.wire import PodObject
from app.domain.ids import NodeName, PodUid
from app.domain.plan import PodRef
from app.domain.pod import GATE, Pod
from app.kube import reflector as reflector_module
from app.kube.admitter import Admitter
from app.kube.binder import Binder
from app.kube.events import Reporter
from app.kube.gatekeeper import LABEL, Gatekeeper
from app.kube.known import Update
from app.kube.lease import LeaseWatch
from app.kube.reflector import Reflector, Resource
from tests.kube.helpers import Object, World, running, until

N1, N2 = NodeName("n1"), NodeName("n2")
OTHER = PodUid("00000000-0000-0000-0000-000000000000")


def pods_of(world: World, seen: list[Update[Pod]]) -> Reflector[PodObject, Pod]:
    resource = Resource(kind="pods", path=world.path("pods"), wire=PodObject, value=ObjectDecoder().pod_of)
    return Reflector(world.api, resource, seen.extend, rng=Random(1))


def names(seen: list[Update[Pod]]) -> list[str]:
    return [("-" if gone else "+") + pod.name for pod, gone in seen]


class TestWatching:
    async def test_a_list_in_pages_then_every_change_in_order(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reflector_module, "PAGE", 2)
        for number in range(5):
            await world.make_pod(f"p{number}")
        seen: list[Update[Pod]] = []
        follower = pods_of(world, seen)
        async with running(follower.run()):
            await until(follower.synced.is_set, "synced")
            assert sorted(names(seen)) == ["+p0", "+p1", "+p2", "+p3", "+p4"]
            seen.clear()
            await world.make_pod("q")
            await Binder(world.api).bind(PodRef("", "", OTHER), N1)  # goes nowhere
            await world.call(
                "PATCH",
                world.path("pods", "q"),
                {"metadata": {"labels": {GROUP_LABEL: "g"}}},
                content_type="application/merge-patch+json",
            )
            await world.delete("pods", "q")
            await until(lambda: names(seen)[-1:] == ["-q"], "deletion seen")
            assert names(seen) == ["+q", "+q", "+q", "-q"]
            assert [pod.deleting for pod, _ in seen] == [False, False, True, True]
        assert follower.lists == 1
        assert follower.age_seconds() < 20

    async def test_a_recreated_pod_is_another_pod(self, world: World) -> None:
        first = await world.make_pod()
        seen: list[Update[Pod]] = []
        follower = pods_of(world, seen)
        async with running(follower.run()):
            await until(follower.synced.is_set, "synced")
            await world.delete("pods", "p")
            second = await world.make_pod()
            await until(lambda: len(seen) == 4, "both seen")
        assert [(pod.uid, gone) for pod, gone in seen] == [
            (first.uid, False),
            (first.uid, False),
            (first.uid, True),
            (second.uid, False),
        ]

    async def test_an_absent_resource_is_synced_and_found_later(self, world: World) -> None:
        seen: list[Update[Pod]] = []
        resource = Resource(
            kind="widgets",
            path="/apis/muster.test/v1/widgets",
            wire=PodObject,
            value=ObjectDecoder().pod_of,
            optional=True,
        )
        follower = Reflector(world.api, resource, seen.extend, rng=Random(1), absent_seconds=0.2)
        async with running(follower.run()):
            await until(follower.synced.is_set, "synced although absent")
            assert follower.absent
            assert seen == []
            await install_widgets(world)
            await until(lambda: names(seen) == ["+w"], "the new resource is followed")
        assert not follower.absent


class TestBinding:
    async def test_binds_and_is_safe_to_repeat(self, world: World) -> None:
        pod = await world.make_pod()
        binder = Binder(world.api)
        assert (await binder.bind(pod, N1)).ok
        assert (await world.get("pods", "p"))["spec"]["nodeName"] == N1
        assert (await binder.bind(pod, N1)).ok
        elsewhere = await binder.bind(pod, N2)
        assert "already bound to node n1" in elsewhere.error
        assert not elsewhere.gone

    async def test_never_binds_a_pod_of_the_same_name(self, world: World) -> None:
        pod = await world.make_pod()
        outcome = await Binder(world.api).bind(structs.replace(pod, uid=OTHER), N1)
        assert outcome.gone
        assert not outcome.ok
        assert "nodeName" not in (await world.get("pods", "p"))["spec"]

    async def test_a_missing_pod_is_gone(self, world: World) -> None:
        outcome = await Binder(world.api).bind(PodRef(world.namespace, "no", OTHER), N1)
        assert outcome.gone

    async def test_a_gated_pod_is_an_error(self, world: World) -> None:
        pod = await world.make_pod(gates=(GATE,))
        outcome = await Binder(world.api).bind(pod, N1)
        assert "schedulingGates" in outcome.error
        assert not outcome.gone


class TestAdmitting:
    async def test_nominates_and_clears(self, world: World) -> None:
        pod = await world.make_pod()
        admitter = Admitter(world.api)
        assert (await admitter.nominate(pod, N1)).ok
        stored = await world.get("pods", "p")
        assert stored["status"]["nominatedNodeName"] == N1
        assert "muster" in {entry["manager"] for entry in stored["metadata"]["managedFields"]}
        assert (await admitter.nominate(pod, None)).ok
        assert "nominatedNodeName" not in (await world.get("pods", "p"))["status"]

    async def test_lifts_our_gate_alone_and_twice(self, world: World) -> None:
        pod = await world.make_pod(gates=(GATE, "example.com/quota"))
        admitter = Admitter(world.api)
        for _ in range(2):
            assert (await admitter.lift_gate(pod)).ok
            assert (await world.get("pods", "p"))["spec"]["schedulingGates"] == [
                {"name": "example.com/quota"}
            ]

    async def test_a_recreated_pod_keeps_its_gate(self, world: World) -> None:
        pod = await world.make_pod(gates=(GATE,))
        other = structs.replace(pod, uid=OTHER)
        assert (await Admitter(world.api).lift_gate(other)).gone
        assert (await Admitter(world.api).nominate(other, N1)).gone
        stored = await world.get("pods", "p")
        assert stored["spec"]["schedulingGates"] == [{"name": GATE}]
        assert "nominatedNodeName" not in stored.get("status", {})

    async def test_a_bound_pod_needs_nothing(self, world: World) -> None:
        pod = await world.make_pod(node="n1")
        assert (await Admitter(world.api).nominate(pod, N2)).ok
        assert (await Admitter(world.api).lift_gate(pod)).ok

    async def test_a_missing_pod_is_gone(self, world: World) -> None:
        pod = PodRef(world.namespace, "no", OTHER)
        assert (await Admitter(world.api).lift_gate(pod)).gone
        assert (await Admitter(world.api).nominate(pod, None)).gone


class TestGates:
    async def test_a_burst_is_a_label_that_comes_and_goes(self, world: World) -> None:
        path = f"/api/v1/namespaces/{world.namespace}"
        before = (await world.call("GET", path))["metadata"].get("labels") or {}
        gatekeeper = Gatekeeper(world.api, world.namespace)
        for off, labels in ((False, {}), (True, {LABEL: "true"}), (True, {LABEL: "true"}), (False, {})):
            assert (await gatekeeper.leave_gates_off(off)).ok
            found = await world.call("GET", path)
            assert (found["metadata"].get("labels") or {}) == {**before, **labels}

    async def test_without_the_namespace_there_is_nothing_to_tell(self, world: World) -> None:
        assert (await Gatekeeper(world.api, "not-there").leave_gates_off(True)).gone


class TestTelling:
    async def test_one_event_per_subject_and_reason(self, world: World) -> None:
        pod, group = await world.make_pod(), await world.make_group()
        reporter = Reporter(world.api)
        async with running(reporter.run()):
            reporter.event(pod, reason="Waiting", message="4 of 5")
            reporter.event(group, reason="Waiting", message="4 of 5", warning=True)
            await until(lambda: reporter.writer.written == 2, "both written")
            reporter.event(pod, reason="Waiting", message="4 of 5")
            assert len(reporter.writer) == 0
            reporter.event(pod, reason="Waiting", message="x" * 3000)
            await until(lambda: reporter.writer.written == 3, "change written")
        events = {e["involvedObject"]["kind"]: e for e in await world.list("events")}
        assert len(events) == 2
        assert (events["Pod"]["count"], len(events["Pod"]["message"].encode())) == (2, 1024)
        assert events["Pod"]["involvedObject"]["uid"] == pod.uid
        assert events["PodGroup"]["type"] == "Warning"
        assert events["PodGroup"]["source"] == {"component": "muster"}

    async def test_counts_are_written_once(self, world: World) -> None:
        group = await world.make_group()
        reporter = Reporter(world.api)
        async with running(reporter.run()):
            reporter.counts(group, {"scheduled": 0, "running": 0})
            assert len(reporter.writer) == 0
            reporter.counts(group, {"scheduled": 2, "running": 1})
            await until(lambda: reporter.writer.written == 1, "written")
            reporter.counts(group, {"scheduled": 2, "running": 1})
            assert len(reporter.writer) == 0
        assert (await world.get("podgroups", "g"))["status"] == {"scheduled": 2, "running": 1}

    async def test_counts_of_another_manager_are_left_alone(self, world: World) -> None:
        group = await world.make_group()
        path = world.path("podgroups", "g") + "/status"
        await world.call(
            "PATCH",
            path,
            {"status": {"scheduled": 7}},
            query={"fieldManager": "else"},
            content_type="application/merge-patch+json",
        )
        reporter = Reporter(world.api)
        async with running(reporter.run()):
            reporter.counts(group, {"scheduled": 2})
            await until(lambda: reporter.writer.written == 1, "tried once")
            reporter.counts(group, {"scheduled": 3})
            assert len(reporter.writer) == 0
        assert (await world.get("podgroups", "g"))["status"] == {"scheduled": 7}


class TestLease:
    async def test_active_while_our_scheduler_holds_it(self, world: World) -> None:
        told: list[bool] = []
        lease = LeaseWatch(world.api, world.namespace, hostname="host-a", on_change=told.append)
        async with running(lease.run()):
            await until(lease.synced.is_set, "synced")
            assert not await lease.confirm()
            await world.call("POST", world.path("leases"), lease_of("host-a_1"))
            await until(lambda: lease.active, "active")
            await hand_over(world, "host-ab_2")
            await until(lambda: not lease.active, "passive: another host, of similar name")
            await hand_over(world, "host-a_3")
            assert await lease.confirm()
            await world.delete("leases", "muster")
            await until(lambda: not lease.active, "passive: no lease")
        assert told == [True, False, True, False]

    async def test_a_lease_that_is_not_renewed_lapses(self, world: World) -> None:
        await world.call("POST", world.path("leases"), lease_of("host-a_1", seconds=1))
        told: list[bool] = []
        lease = LeaseWatch(world.api, world.namespace, hostname="host-a", on_change=told.append)
        async with running(lease.run()):
            await until(lambda: told == [True, False], "lapsed by itself")
            assert not await lease.confirm()
            await hand_over(world, "host-a_1", renewed="2030-01-01T00:00:05.000000Z")
            await until(lambda: lease.active, "renewed")


def lease_of(holder: str, *, seconds: int = 60, renewed: str = "2030-01-01T00:00:00.000000Z") -> Object:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "muster"},
        "spec": spec,
    }


async def hand_over(world: World, holder: str, *, renewed: str = "2030-01-01T00:00:01.000000Z") -> None:
    body = {"spec": {"holderIdentity": holder, "renewTime": renewed}}
    await world.call(
        "PATCH", world.path("leases", "muster"), body, content_type="application/merge-patch+json"
    )


async def install_widgets(world: World) -> None:
    """A CRD and one object of it; on the fake, a collection that is served from now on."""
    widget = {"apiVersion": "muster.test/v1", "kind": "Widget", "metadata": {"name": "w"}}
    collection = f"/apis/muster.test/v1/namespaces/{world.namespace}/widgets"
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.muster.test"},
        "spec": {"group": "muster.test", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await world.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    status = 0
    while status != 201:
        status, _ = await world.api.request("POST", collection, body=widget)
        await asyncio.sleep(0.05)
