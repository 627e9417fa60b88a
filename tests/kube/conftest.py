# SPDX-License-Identifier: Apache-2.0
"""The two worlds that the contract is checked in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from app.kube.client import Api
from tests.kube.fake_api import FakeApi
from tests.kube.helpers import World, api_at, fresh_name

if TYPE_CHECKING:
    from tests.cluster import Cluster

CRD = Path(__file__).resolve().parents[2] / "deploy" / "podgroup-crd.yaml"


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Cluster]:
    """etcd and kube-apiserver, nothing that acts on objects. User `nobody` has no rights."""
    from tests.cluster import Cluster  # noqa: PLC0415 - building the binaries is for the real tests alone

    with Cluster(native_groups=True, controller_manager=False, kwok=False, users={"nobody": []}) as cluster:
        cluster.api.create(yaml.safe_load(CRD.read_text()))
        cluster.wait_for(
            lambda: cluster.api.exists("/apis/scheduling.x-k8s.io/v1alpha1/podgroups"),
            30,
            "PodGroups are served",
        )
        yield cluster


@pytest.fixture
async def fake() -> AsyncIterator[FakeApi]:
    async with FakeApi() as server:
        yield server


@pytest.fixture
async def fake_api(fake: FakeApi) -> AsyncIterator[Api]:
    api = api_at(fake.url)
    yield api
    await api.close()


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.real)])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """A namespace of its own on the fake server, then on the real one."""
    real = request.param == "real"
    if real:
        cluster = request.getfixturevalue("real_cluster")
        api = await Api.connect(kubeconfig=str(cluster.admin_kubeconfig))
        server = None
    else:
        server = await FakeApi().__aenter__()
        api = api_at(server.url)
    found = World(api, fresh_name(), real=real)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.namespace}}
    await found.call("POST", "/api/v1/namespaces", body)
    yield found
    await api.close()
    if server is not None:
        await server.__aexit__()
