# SPDX-License-Identifier: Apache-2.0
"""The manifests applied as users apply them: kubectl, the real API server, real controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.cluster import ApiClient, ApiError, Cluster, free_port
from tests.deploy.manifests import (
    DEPLOY,
    EXAMPLES,
    GATE,
    GROUP_LABEL,
    NAMESPACE,
    Object,
    documents,
    pod_templates,
)

pytestmark = pytest.mark.real

ACCOUNT = f"system:serviceaccount:{NAMESPACE}:muster"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team-a/podgroups"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/muster"


@pytest.fixture(scope="module", params=[False, True], ids=["no-native-api", "native-api"])
def native(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def cluster(native: bool) -> Iterator[Cluster]:
    with Cluster(nodes=1, native_groups=native) as started:
        for name in ("extender", "podgroup-crd", "admission-policy"):
            started.kubectl("apply", "-f", str(DEPLOY / f"{name}.yaml"))
        started.kubectl("apply", "-f", str(EXAMPLES / "namespaces.yaml"))
        for namespace in ("team-a", "team-b", NAMESPACE):
            started.wait_for_service_account(namespace)
        started.wait_for(lambda: policy_works(started), 60, "the policy works")
        yield started


def policy_works(cluster: Cluster) -> bool:
    pod = {
        "metadata": {"name": "p", "labels": {GROUP_LABEL: "g"}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1.37"}]},
    }
    answer = cluster.post("/api/v1/namespaces/team-a/pods?dryRun=All", pod)
    return bool(answer["spec"]["schedulerName"] == "muster")


@pytest.fixture(scope="module")
def muster(cluster: Cluster) -> ApiClient:
    """The API as the account of the manifest sees it."""
    return cluster.client(cluster.service_account_token(NAMESPACE, "muster"))


# --- the install ---


def test_the_deployment_makes_pods_that_admission_accepts(cluster: Cluster) -> None:
    """Pod security `restricted` and the priority class are judged when the pods are created."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    pods = cluster.wait_for(lambda: exactly(2, cluster.api.items(path)), 60, "both replicas exist")
    assert all(pod["spec"]["schedulerName"] == "default-scheduler" for pod in pods)
    assert all(pod["spec"]["priority"] == 2_000_000_000 for pod in pods)
    assert all("schedulingGates" not in pod["spec"] for pod in pods)


def test_the_api_server_keeps_every_field_as_shipped(cluster: Cluster) -> None:
    """kubectl diff fails when applying again would change anything: nothing was dropped or rewritten."""
    for name in ("extender", "podgroup-crd", "admission-policy"):
        assert cluster.kubectl("diff", "-f", str(DEPLOY / f"{name}.yaml")) == ""


def test_kustomize_renders_the_same_objects(cluster: Cluster) -> None:
    rendered = documents_of(cluster.kubectl("kustomize", str(DEPLOY)))
    files = ("extender.yaml", "admission-policy.yaml", "explain.yaml")
    shipped = [document for name in files for document in documents(DEPLOY / name)]
    assert sorted(rendered, key=identity) == sorted(shipped, key=identity)


def test_kustomize_renames_both_images(cluster: Cluster, tmp_path: Path) -> None:
    for path in DEPLOY.glob("*.yaml"):
        text = path.read_text()
        if path.name == "kustomization.yaml":
            text = text.replace("newName: ", "newName: team/")
        (tmp_path / path.name).write_text(text)
    (deployment,) = [
        item
        for item in documents_of(cluster.kubectl("kustomize", str(tmp_path)))
        if item["kind"] == "Deployment"
    ]
    assert [item["image"] for item in deployment["spec"]["template"]["spec"]["containers"]] == [
        "team/kube-scheduler:v1.37.2",
        "team/muster:0.1.0",
    ]


def documents_of(text: str) -> list[Object]:
    return [item for item in yaml.safe_load_all(text) if item is not None]


def identity(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


# --- rights ---

ALLOWED = [
    # (verb, group, resource, namespace, name)
    *(("list", "", kind, "", "") for kind in ("namespaces", "nodes", "pods")),
    *(("watch", "", kind, "", "") for kind in ("namespaces", "nodes", "pods")),
    *(
        (verb, group, "podgroups", "", "")
        for verb in ("get", "list", "watch")
        for group in ("scheduling.x-k8s.io", "scheduling.k8s.io")
    ),
    ("patch", "", "pods", "team-a", "x"),
    ("patch", "", "pods/status", "team-a", "x"),
    ("create", "", "pods/binding", "team-a", "x"),
    ("create", "", "events", "team-a", ""),
    ("patch", "", "events", "team-a", "x"),
    ("create", "events.k8s.io", "events", "team-a", ""),
    ("patch", "events.k8s.io", "events", "team-a", "x"),
    ("patch", "scheduling.x-k8s.io", "podgroups/status", "team-a", "x"),
    *(("list", "coordination.k8s.io", "leases", NAMESPACE, ""),),
    *((verb, "coordination.k8s.io", "leases", NAMESPACE, "muster") for verb in ("get", "watch", "update")),
    ("create", "coordination.k8s.io", "leases", NAMESPACE, ""),
    # From the built-in roles, for kube-scheduler.
    ("delete", "", "pods", "team-a", "x"),
    ("list", "storage.k8s.io", "storageclasses", "", ""),
    ("update", "", "persistentvolumeclaims", "team-a", "x"),
    ("list", "resource.k8s.io", "resourceslices", "", ""),
    ("create", "authentication.k8s.io", "tokenreviews", "", ""),
    ("get", "", "configmaps", "kube-system", "extension-apiserver-authentication"),
]

DENIED = [
    ("create", "", "pods", "team-a", ""),
    ("update", "", "pods", "team-a", "x"),
    ("patch", "", "nodes", "", "n"),
    ("update", "", "nodes", "", "n"),
    ("delete", "", "nodes", "", "n"),
    ("list", "", "secrets", "", ""),
    ("get", "", "secrets", NAMESPACE, "x"),
    ("get", "", "configmaps", "kube-system", "other"),
    ("get", "", "configmaps", "team-a", "x"),
    ("patch", "", "namespaces", "", "team-a"),
    ("create", "", "pods/exec", "team-a", "x"),
    ("delete", "", "events", "team-a", "x"),
    ("create", "scheduling.x-k8s.io", "podgroups", "team-a", ""),
    ("patch", "scheduling.x-k8s.io", "podgroups", "team-a", "x"),
    ("delete", "scheduling.x-k8s.io", "podgroups", "team-a", "x"),
    ("delete", "scheduling.k8s.io", "podgroups", "team-a", "x"),
    ("update", "coordination.k8s.io", "leases", NAMESPACE, "other"),
    ("update", "coordination.k8s.io", "leases", "kube-system", "muster"),
    ("delete", "coordination.k8s.io", "leases", NAMESPACE, "muster"),
    ("list", "coordination.k8s.io", "leases", "kube-system", ""),
    ("patch", "admissionregistration.k8s.io", "mutatingadmissionpolicies", "", "muster"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
]


def may(cluster: Cluster, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
    kind, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": kind,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review = {"spec": {"user": ACCOUNT, "resourceAttributes": attributes}}
    answer = cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_the_account_may_do_what_muster_and_the_scheduler_do(cluster: Cluster) -> None:
    assert [case for case in ALLOWED if not may(cluster, *case)] == []


def test_the_account_may_do_nothing_beyond(cluster: Cluster) -> None:
    assert [case for case in DENIED if may(cluster, *case)] == []


def test_the_builtin_role_alone_would_not_give_the_lease(cluster: Cluster) -> None:
    """Why the Role on leases is there: the built-in one names the Lease of the cluster's own scheduler."""
    rules = cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler")["rules"]
    on_leases = [rule for rule in rules if "leases" in rule["resources"] and "update" in rule["verbs"]]
    assert [rule["resourceNames"] for rule in on_leases] == [["kube-scheduler"]]


def test_muster_can_lift_its_gate_nominate_and_bind(cluster: Cluster, muster: ApiClient) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "rights", "namespace": "team-a", "labels": {GROUP_LABEL: "rights"}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1.37"}]},
    }
    created = cluster.api.create(pod)
    assert created["spec"]["schedulingGates"] == [{"name": GATE}]
    path = "/api/v1/namespaces/team-a/pods/rights"
    uid = {"metadata": {"uid": created["metadata"]["uid"]}}
    strategic = "application/strategic-merge-patch+json"
    muster.patch(f"{path}/status", {**uid, "status": {"nominatedNodeName": "node-0"}}, strategic)
    lift = {**uid, "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    assert "schedulingGates" not in muster.patch(path, lift, strategic)["spec"]
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "rights"}, "target": target}
    muster.post(f"{path}/binding", binding)
    assert cluster.get(path)["spec"]["nodeName"] == "node-0"
    with pytest.raises(ApiError) as refused:
        muster.post("/api/v1/namespaces/team-a/pods", {**pod, "metadata": {"name": "rights-2"}})
    assert refused.value.status == 403


def test_the_scheduler_works_with_the_shipped_config_and_account_alone(cluster: Cluster) -> None:
    """It gets its Lease, schedules, and its log has no refused request. Extenders are left out."""
    kubeconfig = cluster.kubeconfig_for_service_account(NAMESPACE, "muster")
    config = cluster.render_scheduler_config(
        DEPLOY / "scheduler-config.yaml", extender_port=None, kubeconfig=kubeconfig
    )
    scheduler = cluster.start_scheduler(config, "muster-rbac", kubeconfig=kubeconfig)
    try:
        cluster.wait_for(lambda: cluster.get(LEASE)["spec"]["holderIdentity"], 60, "it holds the Lease")
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plain", "namespace": "default"},
            "spec": {"schedulerName": "muster", "containers": [{"name": "c", "image": "busybox:1.37"}]},
        }
        cluster.api.create(pod)
        path = "/api/v1/namespaces/default/pods/plain"
        cluster.wait_for(lambda: cluster.get(path)["spec"].get("nodeName"), 60, "the pod is bound")
    finally:
        scheduler.stop()
    log = scheduler.log.read_text()
    assert [line for line in log.splitlines() if "forbidden" in line.lower()] == []


def test_the_scheduler_accepts_both_extender_stanzas(cluster: Cluster) -> None:
    """A config that it would not load ends it at once."""
    config = cluster.render_scheduler_config(
        DEPLOY / "extender.yaml", extender_port=free_port(), leader_elect=False
    )
    scheduler = cluster.start_scheduler(config, "muster-config")
    try:
        assert scheduler.running
        assert "Creating extender" in scheduler.log.read_text()
    finally:
        scheduler.stop()


# --- the CRD ---


def test_the_crd_is_established_and_needs_no_approval(cluster: Cluster) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io"
    conditions = {item["type"]: item["status"] for item in cluster.get(path)["status"]["conditions"]}
    assert (
        "KubernetesAPIApprovalPolicyConformant" not in conditions
    )  # no protected group, no approval to show
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert conditions.get("NonStructuralSchema", "False") == "False"


def test_the_crd_takes_every_field_and_keeps_spec_and_status_apart(cluster: Cluster) -> None:
    spec = {
        "minMember": 4,
        "minResources": {"nvidia.com/gpu": 8, "memory": "1.5Gi", "cpu": "100m"},
        "scheduleTimeoutSeconds": 30,
    }
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "all-fields"},
        "spec": spec,
        "status": {"phase": "Running"},
    }
    created = cluster.post(f"{GROUPS}?fieldValidation=Strict", group)
    assert created["spec"] == spec
    assert "status" not in created
    status = {
        "phase": "Running",
        "occupiedBy": "uid",
        "scheduled": 4,
        "running": 3,
        "succeeded": 1,
        "failed": 0,
        "scheduleStartTime": "2030-01-01T00:00:00Z",
    }
    change = {"spec": {"minMember": 1}, "status": status}
    patched = cluster.patch(f"{GROUPS}/all-fields/status?fieldValidation=Strict", change)
    assert (patched["spec"], patched["status"]) == (spec, status)
    rows = cluster.kubectl("get", "pg.scheduling.x-k8s.io", "all-fields", "-n", "team-a").splitlines()
    assert rows[0].split() == ["NAME", "MIN", "PHASE", "SCHEDULED", "RUNNING", "AGE"]
    assert rows[1].split()[:5] == ["all-fields", "4", "Running", "4", "3"]


@pytest.mark.parametrize("minimum", [0, -1, None])
def test_the_crd_does_not_judge_the_minimum(cluster: Cluster, minimum: int | None) -> None:
    spec = {} if minimum is None else {"minMember": minimum}
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"generateName": "odd-"},
        "spec": spec,
    }
    assert cluster.post(GROUPS, group)["spec"] == spec


@pytest.mark.parametrize("spec", [{"minMember": "4"}, {"minMember": 1.5}, {"minMember": 2**31}])
def test_the_crd_refuses_what_is_no_int32(cluster: Cluster, spec: Object) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "bad"},
        "spec": spec,
    }
    with pytest.raises(ApiError) as refused:
        cluster.post(GROUPS, group)
    assert refused.value.status == 422


# --- the examples ---


@pytest.mark.parametrize("name", ["job-gang", "three-seats", "launcher-workers"])
def test_the_pods_of_every_example_gang_are_gated_members(cluster: Cluster, name: str) -> None:
    assert_gated_members(cluster, EXAMPLES / f"{name}.yaml")


def test_the_native_example_works_where_the_api_is_and_fails_loudly_elsewhere(
    cluster: Cluster, native: bool
) -> None:
    path = EXAMPLES / "native-group.yaml"
    if native:
        assert_gated_members(cluster, path)
    else:
        with pytest.raises(RuntimeError, match='no matches for kind "PodGroup"'):
            cluster.kubectl("apply", "-n", "team-a", "-f", str(path))
        cluster.kubectl("delete", "-n", "team-a", "job", "native", "--wait=false")


def assert_gated_members(cluster: Cluster, path: Path) -> None:
    items = documents(path)
    wanted = sum(count for _, count in pod_templates(items))
    (group,) = [item for item in items if item["kind"] == "PodGroup"]
    try:
        cluster.kubectl("apply", "-n", "team-a", "-f", str(path))
        pods = cluster.wait_for(
            lambda: exactly(wanted, members(cluster, group)), 60, f"{wanted} members of {path.name} exist"
        )
        assert all(pod["spec"]["schedulerName"] == "muster" for pod in pods)
        assert all(pod["spec"]["schedulingGates"] == [{"name": GATE}] for pod in pods)
    finally:
        cluster.kubectl("delete", "-n", "team-a", "-f", str(path), "--wait=false")


def members(cluster: Cluster, group: Object) -> list[Object]:
    name, native = group["metadata"]["name"], group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    return [
        pod
        for pod in cluster.api.items("/api/v1/namespaces/team-a/pods")
        if name
        == (
            pod["spec"].get("schedulingGroup", {}).get("podGroupName")
            if native
            else pod["metadata"].get("labels", {}).get(GROUP_LABEL)
        )
    ]


def exactly(wanted: int, found: list[Object]) -> list[Object]:
    return found if len(found) == wanted else []


def test_the_single_gpu_pod_is_gated_in_gpus_and_plain_in_gangs(cluster: Cluster) -> None:
    path = str(EXAMPLES / "single-gpu.yaml")
    for namespace, scheduler in (("team-b", "muster"), ("team-a", "default-scheduler")):
        output = cluster.kubectl(
            "create", "-n", namespace, "-f", path, "--dry-run=server", "-o", "jsonpath={.spec.schedulerName}"
        )
        assert output == scheduler
