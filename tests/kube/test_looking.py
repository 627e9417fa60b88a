# SPDX-License-Identifier: Apache-2.0
"""What is read on demand for an explanation: near the subject all that matters, elsewhere next to nothing."""

from __future__ import annotations

from typing import Any

import pytest

from app.codec.kinds import KINDS
from app.codec.objects import GROUP_LABEL
from app.domain.errors import ApiError
from app.explain.facts import Unseen
from app.explain.objects import Objects
from app.explain.report import Subject
from app.explain.sight import Sight
from app.kube import looking as module
from app.kube.backoff import Backoff
from app.kube.client import Api
from app.kube.looking import Looker
from tests.kube.fake_api import FakeApi, Fault

Object = dict[str, Any]
CLAIMED: Object = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}


def path(plural: str, name: str, *, group: str = "api/v1", where: str = "team-a") -> str:
    return f"/{group}/namespaces/{where}/{plural}/{name}"


@pytest.fixture
async def cluster(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """All kinds are served; a Job with two pods and a gang of two stand in team-a, others in team-b."""
    monkeypatch.setattr(module, "PAGE", 1)
    monkeypatch.setattr(Backoff, "next", _failed_once_more)
    for kind in KINDS:
        root = f"/apis/{kind.group}/{kind.versions[0]}" if kind.group else "/api/v1"
        fake.served.add(f"{root}/{kind.plural}")
    await fake.store("/api/v1/namespaces/team-a", {"apiVersion": "v1", "kind": "Namespace"})
    job = {"spec": {"selector": {"matchLabels": {"job": "train"}}}}
    await fake.store(path("jobs", "train", group="apis/batch/v1"), job)
    await fake.store(path("resourcequotas", "quota"), {})
    await fake.store(path("resourcequotas", "elsewhere", where="team-b"), {})
    for name in ("t0", "t1"):
        await fake.store(path("pods", name), {"metadata": {"labels": {"job": "train"}}, "spec": {}})
    for name in ("g0", "g1"):
        await fake.store(path("pods", name), {"metadata": {"labels": {GROUP_LABEL: "g"}}, "spec": {}})
    for name in ("n0", "n1"):
        spec = {"schedulingGroup": {"podGroupName": "native"}, **CLAIMED}
        await fake.store(path("pods", name), {"spec": spec})
    await fake.store(path("pods", "alone"), {"apiVersion": "v1", "kind": "Pod", "spec": {}})
    await fake.store(path("resourceclaims", "c", group="apis/resource.k8s.io/v1", where="team-b"), {})
    return fake


def _failed_once_more(backoff: Any) -> float:
    """Counts as the real one does, and waits for nothing."""
    backoff.failures += 1
    return 0.0


async def look(api: Api, kind: str, name: str) -> Sight:
    return await Looker(api).read(Subject(kind, "team-a", name))


def names(sight: Sight, kind: str) -> list[str]:
    return sorted(item["metadata"]["name"] for item in Objects(sight.objects).of(kind))


@pytest.mark.parametrize(
    ("kind", "name", "pods"),
    [
        ("pod", "alone", ["alone"]),
        ("pod", "g1", ["g0", "g1"]),
        ("pod", "n0", ["n0", "n1"]),
        ("pod", "gone", []),
        ("podgroup", "g", ["g0", "g1"]),
        ("podgroup", "native", ["n0", "n1"]),
        ("job", "train", ["t0", "t1"]),
        ("job", "gone", []),
    ],
)
async def test_the_pods_that_belong_to_the_subject(
    cluster: FakeApi, fake_api: Api, kind: str, name: str, pods: list[str]
) -> None:
    sight = await look(fake_api, kind, name)
    assert names(sight, "Pod") == pods
    assert sight.unseen == ()


async def test_small_kinds_of_the_namespace_alone_and_neither_nodes_nor_all_claims(
    cluster: FakeApi, fake_api: Api
) -> None:
    sight = await look(fake_api, "job", "train")
    assert names(sight, "ResourceQuota") == ["quota"]
    assert names(sight, "Job.batch") == ["train"]
    assert names(sight, "Namespace") == ["team-a"]
    asked = {path for _, path, *_ in cluster.requests}
    assert not {one for one in asked if one.endswith(("/nodes", "/resourceclaims", "/resourceslices"))}
    assert "/api/v1/pods" not in asked


async def test_claims_of_all_are_read_where_a_pod_has_one(cluster: FakeApi, fake_api: Api) -> None:
    assert names(await look(fake_api, "pod", "n0"), "ResourceClaim.resource.k8s.io") == ["c"]


async def test_what_is_forbidden_is_told_and_the_rest_is_read(cluster: FakeApi, fake_api: Api) -> None:
    cluster.faults = [
        Fault("GET", "/resourcequotas", 403, times=99),
        Fault("GET", "/namespaces/team-a/pods", 403, times=99),
    ]
    sight = await look(fake_api, "job", "train")
    why = "not allowed to list it"
    assert set(sight.unseen) == {Unseen("ResourceQuota", why), Unseen("Pod", why)}
    assert names(sight, "Job.batch") == ["train"]


async def test_without_an_api_there_is_nothing_to_tell(cluster: FakeApi, fake_api: Api) -> None:
    cluster.faults = [Fault("GET", "/", "drop", times=99)]
    with pytest.raises(ApiError):
        await look(fake_api, "job", "train")
