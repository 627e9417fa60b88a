# SPDX-License-Identifier: Apache-2.0
"""The test control plane itself, on the real thing: what every other real test takes for granted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import RUNS_FOR, ApiError, Cluster, WaitTimeout, wait_for
from tests.cluster.binaries import kubernetes_version
from tests.cluster.client import Object

pytestmark = pytest.mark.real

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(nodes=3, native_groups=True, runtime_dir=tmp_path_factory.mktemp("cluster")) as running:
        running.start_scheduler(running.plain_scheduler_config(), "plain")
        yield running


def make_pod(name: str, *, gpus: int = 1, annotations: dict[str, str] | None = None) -> Object:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {
            "containers": [{"name": "main", "image": "none", "resources": resources}],
            "restartPolicy": "Never",
        },
    }


def phase(cluster: Cluster, name: str) -> str:
    return str(cluster.get(f"{PODS}/{name}")["status"]["phase"])


def test_server_and_kubectl_are_the_pinned_version(cluster: Cluster) -> None:
    version = cluster.get("/version")
    assert (version["gitVersion"], version["major"], version["minor"]) == (kubernetes_version(), "1", "37")
    assert kubernetes_version() in cluster.kubectl("version")


def test_pods_of_a_replica_set_run_on_the_nodes(cluster: Cluster) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": make_pod("ignored")["spec"]}
    template["spec"].pop("restartPolicy")
    selector = {"matchLabels": {"app": "web"}}
    web = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"}}
    cluster.apply([{**web, "spec": {"replicas": 5, "selector": selector, "template": template}}])

    def all_run() -> bool:
        pods = cluster.api.items(f"{PODS}?labelSelector=app%3Dweb")
        return len(pods) == 5 and all(pod["status"]["phase"] == "Running" for pod in pods)

    cluster.wait_for(all_run, 60, "five pods of the ReplicaSet run")
    cluster.delete("/apis/apps/v1/namespaces/default/replicasets/web")
    cluster.wait_for(
        lambda: not cluster.api.items(f"{PODS}?labelSelector=app%3Dweb"), 60, "its pods are collected"
    )


def test_a_pod_told_to_end_succeeds_and_its_watch_shows_it(cluster: Cluster) -> None:
    phases: list[str] = []
    watch = cluster.watch(f"{PODS}?fieldSelector=metadata.name%3Dshort")
    reader = threading.Thread(
        target=lambda: phases.extend(e["object"]["status"].get("phase", "") for e in watch)
    )
    reader.start()
    cluster.create_many([make_pod("short", annotations={RUNS_FOR: "1s"})])
    cluster.wait_for(lambda: "Succeeded" in phases, 30, "the watch shows the end of the pod")
    watch.close()
    reader.join(10)
    assert not reader.is_alive()
    assert list(dict.fromkeys(phases)) == ["Pending", "Running", "Succeeded"]


def test_native_pod_groups_are_served(cluster: Cluster) -> None:
    resources = cluster.get("/apis/scheduling.k8s.io/v1beta1")["resources"]
    assert "podgroups" in {resource["name"] for resource in resources}


def test_a_service_account_has_no_rights_until_rbac_gives_some(cluster: Cluster) -> None:
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "reader", "namespace": "default"},
    }
    cluster.apply([account])
    token = cluster.service_account_token("default", "reader")
    with pytest.raises(ApiError, match="system:serviceaccount:default:reader") as refused:
        cluster.client(token).get(PODS)
    assert refused.value.status == 403
    cluster.kubectl(
        "create", "rolebinding", "reader", "--clusterrole=view", "--serviceaccount=default:reader"
    )
    kubeconfig = cluster.kubeconfig_for_service_account("default", "reader")
    cluster.wait_for(lambda: cluster.client(token).get(PODS), 10, "the binding is in force")
    assert '"items"' in cluster.kubectl("get", "pods", "-o", "json", kubeconfig=kubeconfig)


def test_the_api_server_keeps_its_data_over_a_stop(cluster: Cluster) -> None:
    cluster.create_many([make_pod("kept")])
    cluster.wait_for(lambda: phase(cluster, "kept") == "Running", 30, "the pod runs")
    uid = cluster.get(f"{PODS}/kept")["metadata"]["uid"]
    cluster.apiserver.stop()
    with pytest.raises(ConnectionRefusedError):
        cluster.get(f"{PODS}/kept")
    cluster.apiserver.start()
    assert cluster.get(f"{PODS}/kept")["metadata"]["uid"] == uid
    cluster.create_many([make_pod("after")])
    cluster.wait_for(lambda: phase(cluster, "after") == "Running", 60, "scheduler and kwok came back")


def test_a_supervised_scheduler_with_its_own_host_name_is_restarted(cluster: Cluster) -> None:
    if os.geteuid() != 0:
        pytest.skip("a host name of its own needs root")
    text = (
        cluster.plain_scheduler_config("other").read_text().replace("leaderElect: false", "leaderElect: true")
    )
    config = Path(cluster.runtime_dir, "other.yaml")
    config.write_text(text)
    scheduler = cluster.start_scheduler(config, "other", hostname="muster-a", supervise=True)

    def holder() -> str:
        lease = cluster.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler")
        return str(lease["spec"]["holderIdentity"])

    cluster.wait_for(lambda: holder().startswith("muster-a_"), 30, "the scheduler leads under its host name")
    first = scheduler.pid
    scheduler.kill()
    cluster.wait_for(lambda: scheduler.running and scheduler.pid != first, 10, "it is started again")
    scheduler.stop()
    assert not scheduler.running


def test_a_failed_wait_says_what_and_why() -> None:
    with pytest.raises(WaitTimeout, match=r"not within 0.1 s: rain .last error: ZeroDivisionError"):
        wait_for(lambda: 1 // 0, seconds=0.1, what="rain")


def test_nothing_is_left_after_the_end(tmp_path: Path) -> None:
    with Cluster(controller_manager=False, runtime_dir=tmp_path / "short") as short:
        short.start_scheduler(short.plain_scheduler_config(), "plain")
        short.create_many([make_pod("waits")])  # without ServiceAccounts pods can be created all the same
        pids = [component.pid for component in short.components]
        assert len(pids) == 4  # etcd, API server, kwok, scheduler
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
