# SPDX-License-Identifier: Apache-2.0
"""Reading every kind once: pages, versions, rights, and lists that break off or grow too old."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.codec.kinds import KINDS, ApiKind
from app.codec.snapshot import Unseen
from app.domain.errors import ApiError
from app.kube import collect as module
from app.kube.backoff import Backoff
from app.kube.client import Api
from app.kube.collect import Absent, Page, collect
from tests.kube.fake_api import FakeApi, Fault
from tests.kube.helpers import api_at

Object = dict[str, Any]

NODES = ApiKind("Node", "nodes", namespaced=False)
PODS = ApiKind("Pod", "pods")
EVENTS = ApiKind("Event", "events", selectors=("reason=A", "reason=B,type!=Normal"))
GROUPS = ApiKind("PodGroup", "podgroups", "scheduling.x-k8s.io", ("v2", "v1alpha1"), optional=True)
CLAIMS = ApiKind("ResourceClaim", "resourceclaims", "resource.k8s.io", ("v1", "v1beta1"), optional=True)


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(Backoff, "next", _failed_once_more)


def _failed_once_more(backoff: Any) -> float:
    """Counts as the real one does, and waits for nothing."""
    backoff.failures += 1
    return 0.0


@pytest.fixture
def api(fake: FakeApi, fake_api: Api) -> Api:
    fake.served.add("/api/v1/nodes")
    return fake_api


async def read(api: Api, *kinds: ApiKind, namespace: str | None = None) -> list[Page | Absent | Unseen]:
    return [one async for one in collect(api, kinds=kinds, namespace=namespace)]


def names(found: list[Page | Absent | Unseen], kind: ApiKind) -> list[str]:
    items = [item for one in found if isinstance(one, Page) and one.kind is kind for item in one.items]
    return [json.loads(item)["metadata"]["name"] for item in items]


def asked(fake: FakeApi, part: str) -> int:
    return sum(part in path for method, path, *_ in fake.requests)


async def fill(fake: FakeApi, count: int = 5) -> list[str]:
    for index in range(count):
        await fake.store(f"/api/v1/nodes/n{index}", {"metadata": {}})
    return [f"n{index}" for index in range(count)]


async def test_every_page_comes_once_and_in_order(fake: FakeApi, api: Api) -> None:
    wanted = await fill(fake)
    found = await read(api, NODES)
    assert names(found, NODES) == wanted
    assert [len(page.items) for page in found if isinstance(page, Page)] == [2, 2, 1]


async def test_kinds_come_in_the_order_asked_for_and_an_empty_one_is_seen_to_be(
    fake: FakeApi, api: Api
) -> None:
    await fill(fake)
    kinds = (PODS, NODES, EVENTS, GROUPS)
    found = await read(api, *kinds)
    order = [one.kind for one in found if isinstance(one, Page)]
    assert list(dict.fromkeys(order)) == list(kinds)
    assert Page(PODS, []) in found


async def test_items_are_objects_of_their_own(fake: FakeApi, api: Api) -> None:
    """Built-in kinds come without apiVersion and kind, custom ones bring theirs."""
    await fake.store("/api/v1/nodes/bare", {"metadata": {}, "spec": {"x": 1}})
    await fake.store("/api/v1/nodes/whole", {"apiVersion": "v1", "kind": "Node", "metadata": {}})
    await fake.store("/api/v1/nodes/other", {"spec": {}, "metadata": {}})
    items = [item for page in await read(api, NODES) if isinstance(page, Page) for item in page.items]
    assert [(json.loads(i)["apiVersion"], json.loads(i)["kind"]) for i in items] == [("v1", "Node")] * 3
    assert all(item.count(b'"apiVersion"') == 1 for item in items)
    assert json.loads(items[0])["spec"] == {"x": 1}


async def test_the_newest_version_that_is_served_is_read(fake: FakeApi, api: Api) -> None:
    await fake.store("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/g", {"metadata": {}})
    (page,) = await read(api, GROUPS)
    assert isinstance(page, Page)
    assert json.loads(page.items[0])["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert asked(fake, "/apis/scheduling.x-k8s.io/v2/podgroups") == 1


async def test_a_kind_that_is_not_served_is_absent_and_no_gap(fake: FakeApi, api: Api) -> None:
    assert await read(api, CLAIMS) == [Absent(CLAIMS)]


async def test_every_selector_is_a_list_of_its_own(fake: FakeApi, api: Api) -> None:
    for name, reason, kind in (("a", "A", "Normal"), ("b", "B", "Warning"), ("c", "B", "Normal")):
        event = {"metadata": {}, "reason": reason, "type": kind}
        await fake.store(f"/api/v1/namespaces/ns/events/{name}", event)
    assert names(await read(api, EVENTS), EVENTS) == ["a", "b"]


async def test_one_namespace_and_what_is_in_none(fake: FakeApi, api: Api) -> None:
    wanted = await fill(fake)
    for namespace in ("mine", "other"):
        await fake.store(f"/api/v1/namespaces/{namespace}/pods/{namespace}", {"metadata": {}})
    found = await read(api, NODES, PODS, namespace="mine")
    assert names(found, PODS) == ["mine"]
    assert names(found, NODES) == wanted


async def test_what_is_not_allowed_is_said_and_the_rest_goes_on(fake: FakeApi, api: Api) -> None:
    await fill(fake)
    fake.faults.append(Fault("GET", "/api/v1/pods", 403))
    found = await read(api, PODS, NODES)
    assert found[0] == Unseen("pods", "not allowed to list it")
    assert len(names(found, NODES)) == 5


async def test_not_allowed_and_not_served_are_told_apart(fake: FakeApi, api: Api) -> None:
    """The API server judges rights first: without any, also a kind that it does not serve is forbidden."""
    fake.faults.append(Fault("GET", "/resourceclaims", 403))
    assert await read(api, CLAIMS) == [Absent(CLAIMS)]
    fake.faults.append(Fault("GET", "/v2/podgroups", 403))
    fake.faults.append(Fault("GET", "/apis/scheduling.x-k8s.io/v2", 403))  # discovery is closed, too
    assert await read(api, GROUPS) == [Unseen(GROUPS.name, "not allowed to list it")]


@pytest.mark.parametrize("action", [500, 503, 429, "drop"])
async def test_a_page_that_fails_once_is_asked_for_again(fake: FakeApi, api: Api, action: int | str) -> None:
    wanted = await fill(fake)
    fake.faults.append(Fault("GET", "/api/v1/nodes?limit=2&continue=2", action))
    assert names(await read(api, NODES), NODES) == wanted


async def test_a_list_that_breaks_off_says_how_much_was_read(fake: FakeApi, api: Api) -> None:
    await fill(fake)
    fake.faults.append(Fault("GET", "continue=4", 500, times=99))
    found = await read(api, NODES, PODS)
    assert names(found, NODES) == ["n0", "n1", "n2", "n3"]
    (gap,) = [one for one in found if isinstance(one, Unseen)]
    assert gap.kind == "nodes"
    assert gap.why.startswith("only 4 were read: GET /api/v1/nodes: 500 ")
    assert asked(fake, "/api/v1/nodes") == 2 + module.TRIES
    assert found[-1] == Page(PODS, [])


async def test_a_list_that_grew_too_old_goes_on_and_brings_nothing_twice(fake: FakeApi, api: Api) -> None:
    wanted = await fill(fake)
    pages = collect(api, kinds=[NODES])
    found: list[Page | Absent | Unseen] = [await anext(pages)]
    fake.compact()
    found += [page async for page in pages]
    assert names(found, NODES) == wanted


async def test_a_server_that_has_gone_silent_is_not_asked_again_and_again(fake: FakeApi, api: Api) -> None:
    fake.faults.append(Fault("GET", "/api/v1/", "drop", times=999))
    kinds = [ApiKind("Thing", f"things{index}") for index in range(8)]
    found = await read(api, *kinds)
    assert found == [Unseen(kind.name, "no answer from the API server") for kind in kinds]
    assert asked(fake, "/api/v1/") < module.TRIES * len(kinds)


async def test_without_an_api_or_a_name_there_it_raises(fake: FakeApi, api: Api) -> None:
    fake.faults.append(Fault("GET", "/version", 401))
    with pytest.raises(ApiError, match="401"):
        await read(api, NODES)
    nowhere = api_at("http://127.0.0.1:1")
    with pytest.raises(ApiError, match="no answer from the Kubernetes API"):
        await read(nowhere, NODES)
    await nowhere.close()


def test_each_kind_has_a_name_of_its_own_and_is_asked_for_politely() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert {"nodes", "pods", "jobs.batch", "podgroups.scheduling.k8s.io"} <= {kind.name for kind in KINDS}
    assert not {"secrets", "configmaps"} & {kind.plural for kind in KINDS}
