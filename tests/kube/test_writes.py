# SPDX-License-Identifier: Apache-2.0
"""Binding, admitting and the client itself when answers are lost, late, refused or shed."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kubernetes.aio.client import Configuration
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from app.domain.errors import ApiError, InputError
from app.domain.ids import NodeName
from app.domain.plan import PodRef
from app.domain.pod import GATE
from app.kube.admitter import Admitter
from app.kube.binder import Binder
from app.kube.client import Api, _proxy_from_environment
from app.kube.gatekeeper import Gatekeeper
from tests.kube.fake_api import FakeApi, Fault
from tests.kube.helpers import World, api_at, until

N1 = NodeName("n1")
in_cluster_loader: Any = InClusterConfigLoader  # not annotated


@pytest.fixture
async def ns(fake: FakeApi, fake_api: Api) -> AsyncIterator[World]:
    yield World(fake_api, "ns", real=False)


class TestBind:
    async def test_a_lost_answer_of_a_binding_that_was_made_is_success(
        self, fake: FakeApi, ns: World
    ) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("POST", "/binding", "lose"))
        assert (await Binder(ns.api).bind(pod, N1)).ok

    async def test_a_lost_answer_of_a_binding_that_was_not_made_is_an_error(
        self, fake: FakeApi, ns: World
    ) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("POST", "/binding", "drop"))
        outcome = await Binder(ns.api).bind(pod, N1)
        assert "no answer" in outcome.error
        assert not outcome.gone
        assert sum(r[0] == "POST" and "/binding" in r[1] for r in fake.requests) == 1

    async def test_an_error_after_success_is_success(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod(node="n1")
        fake.faults.append(Fault("POST", "/binding", 500))
        assert (await Binder(ns.api).bind(pod, N1)).ok

    async def test_a_pod_that_cannot_be_read_back_is_an_error_that_says_so(
        self, fake: FakeApi, ns: World
    ) -> None:
        pod = await ns.make_pod()
        fake.faults += [Fault("POST", "/binding", "drop"), Fault("GET", "/pods/p", 500)]
        outcome = await Binder(ns.api).bind(pod, N1)
        assert "reading the pod back failed" in outcome.error
        assert not outcome.gone

    async def test_a_refusal_is_an_error_without_reading_back(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("POST", "/binding", 403))
        assert "403" in (await Binder(ns.api).bind(pod, N1)).error
        assert not [r for r in fake.requests if r[0] == "GET"]


class TestAdmit:
    @pytest.mark.parametrize("action", [429, 503, 409, "drop", "lose"])
    async def test_tried_again_while_the_server_is_busy(
        self, fake: FakeApi, ns: World, action: int | str
    ) -> None:
        pod = await ns.make_pod(gates=(GATE,))
        fake.faults.append(Fault("PATCH", "/pods/p", action, times=2))
        assert (await Admitter(ns.api, rng=Random(1)).lift_gate(pod)).ok
        assert "schedulingGates" not in fake.get(ns.path("pods", "p"))["spec"]

    async def test_given_up_after_a_few_tries(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("PATCH", "/status", 500, times=100))
        outcome = await Admitter(ns.api, rng=Random(1)).nominate(pod, N1)
        assert "500" in outcome.error
        assert sum(r[0] == "PATCH" for r in fake.requests) == 4

    async def test_a_forbidden_patch_is_not_repeated(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("PATCH", "/status", 403))
        assert "403" in (await Admitter(ns.api).nominate(pod, N1)).error

    async def test_a_422_on_an_unbound_pod_is_an_error(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod()
        fake.faults.append(Fault("PATCH", "/status", 422))
        outcome = await Admitter(ns.api).nominate(pod, N1)
        assert "422" in outcome.error
        assert not outcome.gone

    async def test_nothing_is_sent_when_not_active(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod()
        outcome = await Admitter(ns.api, may_write=lambda: False).nominate(pod, N1)
        assert "not active" in outcome.error
        assert not [r for r in fake.requests if r[0] == "PATCH"]

    async def test_every_patch_names_its_manager_and_the_pod(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod(gates=(GATE,))
        await Admitter(ns.api).nominate(pod, N1)
        await Admitter(ns.api).lift_gate(pod)
        patches = [r for r in fake.requests if r[0] == "PATCH"]
        assert [r[2]["fieldManager"] for r in patches] == ["muster", "muster"]


class TestClient:
    async def test_any_status_is_an_answer(self, fake: FakeApi, fake_api: Api) -> None:
        assert (await fake_api.request("GET", "/api/v1/nothing"))[0] == 404

    async def test_no_answer_is_an_error_of_status_0(self, fake: FakeApi, fake_api: Api) -> None:
        fake.faults.append(Fault("GET", "/pods", "hang"))
        with pytest.raises(ApiError) as late:
            await fake_api.request("GET", "/api/v1/pods", timeout_seconds=0.1)
        assert (late.value.status, late.value.retry) == (0, True)
        nobody = api_at("http://127.0.0.1:1")
        with pytest.raises(ApiError, match="no answer from the Kubernetes API"):
            await nobody.request("GET", "/api/v1/pods")
        await nobody.close()

    async def test_a_line_of_three_megabytes_passes_and_five_do_not(
        self, fake: FakeApi, fake_api: Api
    ) -> None:
        query = {"watch": "true", "resourceVersion": "0"}
        got: list[int] = []

        async def read() -> None:
            async for lines in fake_api.stream("/api/v1/pods", query=query, inactivity_seconds=30):
                got.extend(len(line) for line in lines)

        task = asyncio.create_task(read())
        await until(lambda: fake.streams == 1, "watching")
        await fake.inject(b"x" * (3 << 20))
        await until(lambda: got == [3 << 20], "long line")
        await fake.inject(b"y" * (5 << 20))
        with pytest.raises(ApiError, match="longer than"):
            await task

    async def test_in_cluster_tokens_are_read_again(self, fake: FakeApi, tmp_path: Path) -> None:
        """The library's refresh hook runs on the raw path: a new token is sent once its minute is over."""
        token, ca = tmp_path / "token", tmp_path / "ca.crt"
        token.write_text("one")
        ca.write_text("unused: the fake speaks plain HTTP")
        where = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}
        loader: Any = in_cluster_loader(str(token), str(ca), environ=where)
        configuration = Configuration()
        loader.load_and_set(configuration)
        loader.host, loader.ssl_ca_cert = fake.url, None
        configuration.host, configuration.ssl_ca_cert = fake.url, None
        api = Api(configuration)
        await api.request("GET", "/api/v1/pods")
        token.write_text("two")
        await api.request("GET", "/api/v1/pods")
        loader.token_expires_at = datetime.datetime.now() - datetime.timedelta(seconds=1)
        await api.request("GET", "/api/v1/pods")
        await api.close()
        assert [r[3]["Authorization"] for r in fake.requests] == ["bearer one", "bearer one", "bearer two"]

    @pytest.mark.parametrize("text", ["", "{", "kind: Config\nclusters: []\n", "[1]"])
    async def test_an_unusable_kubeconfig_is_one_line(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "config"
        path.write_text(text)
        with pytest.raises(InputError, match=r"^kubeconfig: no usable Kubernetes credentials"):
            await Api.connect(kubeconfig=str(path))
        with pytest.raises(InputError):
            await Api.connect(kubeconfig=str(tmp_path / "none"))

    async def test_reads_do_not_wait_for_writes(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod(gates=(GATE,))
        fake.faults.append(Fault("PATCH", "/pods/p", "hang", times=2))
        few = api_at(fake.url, connection_pool_maxsize=2)
        async with asyncio.TaskGroup() as tasks:
            writing = [tasks.create_task(Admitter(few).lift_gate(pod)) for _ in range(3)]
            await until(lambda: fake.streams == 2, "all connections for writes are taken")
            assert (await few.request("GET", "/api/v1/pods"))[0] == 200
            assert sum(r[0] == "PATCH" for r in fake.requests) == 2, "the third waits"
            for task in writing:
                task.cancel()
        await few.close()

    async def test_every_write_is_counted_by_what_it_is_for(self, fake: FakeApi, ns: World) -> None:
        pod = await ns.make_pod(gates=(GATE,))
        fake.faults.append(Fault("PATCH", "/status", 503))
        await Admitter(ns.api, rng=Random(1)).nominate(pod, N1)
        await Admitter(ns.api).lift_gate(pod)
        await Binder(ns.api).bind(pod, N1)
        assert ns.api.writes == {"nomination": 2, "gate": 1, "binding": 1}

    async def test_bindings_of_a_gang_share_a_bounded_pool(self, fake: FakeApi, ns: World) -> None:
        few = api_at(fake.url, connection_pool_maxsize=4)
        pods: list[PodRef] = [await ns.make_pod(f"p{number}") for number in range(40)]
        outcomes = await asyncio.gather(*(Binder(few).bind(pod, N1) for pod in pods))
        await few.close()
        assert all(outcome.ok for outcome in outcomes)


@pytest.mark.parametrize(
    ("server", "no_proxy", "want"),
    [
        pytest.param("https://api.example.com:6443", "", "http://proxy:3128", id="through the proxy"),
        pytest.param("https://api.example.com:6443", "example.com", None, id="unless it is excepted"),
        pytest.param("http://127.0.0.1:8080", "", None, id="the proxy is for https"),
    ],
)
def test_a_proxy_in_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, want: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert _proxy_from_environment(server) == want


class TestGates:
    @pytest.mark.parametrize(("action", "why"), [(403, "403"), (500, "500"), ("lose", "no answer")])
    async def test_what_may_not_have_been_heard_is_an_error(
        self, fake: FakeApi, ns: World, action: int | str, why: str
    ) -> None:
        fake.faults.append(Fault("PATCH", "/namespaces/", action))
        outcome = await Gatekeeper(ns.api, ns.namespace).leave_gates_off(True)
        assert why in outcome.error
        assert not outcome.gone
