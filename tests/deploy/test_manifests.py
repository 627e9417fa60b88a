# SPDX-License-Identifier: Apache-2.0
"""What the shipped manifests promise, judged from the files alone."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.codec.kinds import KINDS
from app.kube import gatekeeper
from app.settings import load
from tests.deploy.manifests import (
    DEPLOY,
    ENABLED_LABEL,
    EXAMPLES,
    GROUP_LABEL,
    MANIFESTS,
    NAMESPACE,
    ROOT,
    Object,
    documents,
    one,
    pod_templates,
)

kubernetes_validate: Any = importlib.import_module("kubernetes_validate")  # it brings no types
EXTENDER = DEPLOY / "extender.yaml"
POLICY = DEPLOY / "admission-policy.yaml"
EXPLAIN = DEPLOY / "explain.yaml"
LINT = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"
YAML_FILES = sorted([*DEPLOY.glob("*.yaml"), *EXAMPLES.glob("*.yaml")])
VERBS = ("filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb")
GROUP_FILES = [path for path in YAML_FILES if any(item["kind"] == "PodGroup" for item in documents(path))]


def file_id(path: Path) -> str:
    return path.name


def test_yamllint_has_nothing_to_say() -> None:
    argv = [sys.executable, "-m", "yamllint", "--strict", "-d", LINT, *map(str, YAML_FILES)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize("path", MANIFESTS, ids=file_id)
def test_every_object_fits_the_schema_of_its_kind(path: Path) -> None:
    for item in documents(path):
        if item["apiVersion"] == "scheduling.x-k8s.io/v1alpha1":
            continue  # a CRD; the real API server judges those
        kubernetes_validate.validate(item, "1.37", strict=True)


# --- scheduler-config.yaml ---


@pytest.fixture
def config() -> Object:
    (item,) = documents(DEPLOY / "scheduler-config.yaml")
    return item


def test_the_config_map_holds_the_very_bytes_of_scheduler_config() -> None:
    data = one(EXTENDER, "ConfigMap", "muster-scheduler-config")["data"]
    assert data["scheduler-config.yaml"].encode() == (DEPLOY / "scheduler-config.yaml").read_bytes()


def test_all_verbs_but_bind_answer_soon_and_bind_may_be_held(config: Object) -> None:
    first, second = config["extenders"]
    assert {key: first.get(key) for key in VERBS} == {
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "bindVerb": None,
    }
    assert {key: second.get(key) for key in VERBS} == {**dict.fromkeys(VERBS), "bindVerb": "bind"}
    assert (first["httpTimeout"], second["httpTimeout"]) == ("5s", "10m")
    assert first["weight"] > 0


def test_no_pod_is_kept_from_muster_and_none_is_placed_without_it(config: Object) -> None:
    for extender in config["extenders"]:
        assert extender["urlPrefix"] == "http://127.0.0.1:8888"
        assert extender["enableHTTPS"] is False
        assert extender["ignorable"] is False
        assert extender["nodeCacheCapable"] is True
        assert "managedResources" not in extender


def test_the_scheduler_keeps_apart_from_the_one_of_the_cluster(config: Object) -> None:
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["muster"]
    assert config["leaderElection"] == {
        "leaderElect": True,
        "resourceName": "muster",
        "resourceNamespace": NAMESPACE,
    }


def test_waiting_is_short_and_requests_are_not_throttled(config: Object) -> None:
    assert (config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"]) == (1, 1)
    assert config["clientConnection"]["qps"] > 50
    assert config["clientConnection"]["burst"] > 100
    assert "percentageOfNodesToScore" not in config


def test_every_value_of_the_config_is_under_a_comment() -> None:
    """Comments explain the lines that follow, up to the next blank one. Type and repeated keys need none."""
    plain = {
        "apiVersion",
        "kind",
        "profiles",
        "extenders",
        "urlPrefix",
        "enableHTTPS",
        "ignorable",
        "nodeCacheCapable",
    }
    explained, missing = False, []
    for line in (DEPLOY / "scheduler-config.yaml").read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            explained = bool(text)
        elif not explained and text.removeprefix("- ").split(":")[0] not in plain:
            missing.append(line)
    assert missing == []


# --- extender.yaml ---


@pytest.fixture
def pod() -> Object:
    template: Object = one(EXTENDER, "Deployment", "muster")["spec"]["template"]["spec"]
    return template


def container(pod: Object, name: str) -> Object:
    (found,) = [item for item in pod["containers"] if item["name"] == name]
    assert isinstance(found, dict)
    return found


def test_no_service_can_put_words_into_the_settings() -> None:
    assert one(EXTENDER, "Deployment", "muster")["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_the_rights_of_muster_are_exactly_these() -> None:
    granted = {
        (group, resource, verb)
        for rule in one(EXTENDER, "ClusterRole", "muster")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    read = ("get", "list", "watch")
    assert granted == {
        *(("", kind, verb) for kind in ("nodes", "pods") for verb in read),
        *(
            (group, "podgroups", verb)
            for group in ("scheduling.x-k8s.io", "scheduling.k8s.io")
            for verb in read
        ),
        ("", "pods", "patch"),
        ("", "pods/status", "patch"),
        ("", "pods/binding", "create"),
        *(("", "events", verb) for verb in ("create", "patch")),
        ("scheduling.x-k8s.io", "podgroups/status", "patch"),
    }


def test_the_rights_to_explain_are_to_read_what_a_snapshot_is_made_of() -> None:
    """With Muster's own they cover every kind of a snapshot, no other, and no write."""
    explain = one(EXPLAIN, "ClusterRole", "muster-explain")["rules"]
    own = one(EXTENDER, "ClusterRole", "muster")["rules"]

    def readable(rules: list[Object]) -> set[tuple[str, str]]:
        return {
            (group, resource)
            for rule in rules
            if "list" in rule["verbs"]
            for group in rule.get("apiGroups", [])
            for resource in rule["resources"]
        }

    wanted = {(kind.group, kind.plural) for kind in KINDS}
    assert readable(own) | readable(explain) == wanted
    assert not readable(own) & readable(explain)
    assert {verb for rule in explain for verb in rule["verbs"]} == {"get", "list"}
    assert [rule["nonResourceURLs"] for rule in explain if "nonResourceURLs" in rule] == [["/metrics"]]
    named = {
        resource: rule["resourceNames"]
        for rule in explain
        if "resourceNames" in rule
        for resource in rule["resources"]
    }
    for kind in KINDS:
        names = [selector.removeprefix("metadata.name=") for selector in kind.selectors]
        assert kind.plural not in named or named[kind.plural] == names


def test_explain_is_bound_to_the_one_account() -> None:
    binding = one(EXPLAIN, "ClusterRoleBinding", "muster-explain")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "muster", "namespace": NAMESPACE}]
    assert binding["roleRef"]["name"] == "muster-explain"


def test_the_rights_in_its_own_namespace_are_one_lease_and_one_label() -> None:
    assert one(EXTENDER, "Role", "muster")["rules"] == [
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["muster"],
            "verbs": ["update"],
        },
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": [""],
            "resources": ["namespaces"],
            "resourceNames": [NAMESPACE],
            "verbs": ["patch"],
        },
    ]


def test_the_admission_policy_looks_for_the_label_where_muster_puts_it() -> None:
    where = one(POLICY, "MutatingAdmissionPolicyBinding", "muster-burst")["spec"]["paramRef"]
    assert where["name"] == NAMESPACE == load().namespace
    conditions = one(POLICY, "MutatingAdmissionPolicy", "muster")["spec"]["matchConditions"]
    assert f"params.metadata.?labels[?'{gatekeeper.LABEL}']" in conditions[0]["expression"]
    assert gatekeeper.LABEL not in one(EXTENDER, "Namespace", NAMESPACE)["metadata"]["labels"]


def test_every_binding_names_the_one_account_and_a_known_role() -> None:
    bindings = [item for item in documents(EXTENDER) if item["kind"].endswith("RoleBinding")]
    account = {"kind": "ServiceAccount", "name": "muster", "namespace": NAMESPACE}
    assert all(item["subjects"] == [account] for item in bindings)
    assert {
        (item["roleRef"]["kind"], item["roleRef"]["name"], item["metadata"].get("namespace"))
        for item in bindings
    } == {
        ("ClusterRole", "system:kube-scheduler", None),
        ("ClusterRole", "system:volume-scheduler", None),
        ("Role", "extension-apiserver-authentication-reader", "kube-system"),
        ("ClusterRole", "muster", None),
        ("Role", "muster", NAMESPACE),
    }


def test_scheduler_and_muster_share_one_pod_that_keeps_to_itself(pod: Object) -> None:
    assert [item["name"] for item in pod["containers"]] == ["kube-scheduler", "muster"]
    assert not pod.get("hostNetwork")
    assert pod["schedulerName"] == "default-scheduler"
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert pod["serviceAccountName"] == "muster"
    assert pod["terminationGracePeriodSeconds"] >= 10
    assert container(pod, "muster")["args"] == ["serve", "--host=127.0.0.1", "--port=8888", "--ops-port=8889"]


def test_only_the_port_for_probes_and_metrics_is_offered(pod: Object) -> None:
    muster = container(pod, "muster")
    assert muster["ports"] == [{"name": "ops", "containerPort": 8889}]
    assert [muster[probe]["httpGet"] for probe in ("readinessProbe", "livenessProbe", "startupProbe")] == [
        {"port": "ops", "path": "/readyz"},
        {"port": "ops", "path": "/healthz"},
        {"port": "ops", "path": "/healthz"},
    ]
    assert muster["env"] == [
        {"name": "MUSTER_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
    ]


def test_the_scheduler_reads_the_config_map(pod: Object) -> None:
    scheduler = container(pod, "kube-scheduler")
    (mount,) = scheduler["volumeMounts"]
    assert f"--config={mount['mountPath']}/scheduler-config.yaml" in scheduler["command"]
    (volume,) = pod["volumes"]
    assert volume == {"name": mount["name"], "configMap": {"name": "muster-scheduler-config"}}


def test_the_pod_keeps_to_the_restricted_profile(pod: Object) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for item in pod["containers"]:
        assert item["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= item["resources"]["requests"].keys()
        assert "memory" in item["resources"]["limits"]


def test_selectors_meet_the_pod_and_a_drain_leaves_one_replica() -> None:
    deployment = one(EXTENDER, "Deployment", "muster")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    budget = one(EXTENDER, "PodDisruptionBudget", "muster")["spec"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert deployment["spec"]["replicas"] - budget["maxUnavailable"] >= 1


def test_everything_namespaced_lies_in_the_namespace_the_file_creates() -> None:
    assert one(EXTENDER, "Namespace", NAMESPACE)["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "muster",
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    clusterwide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    places = {
        (item["kind"], item["metadata"].get("namespace"))
        for item in documents(EXTENDER)
        if item["kind"] not in clusterwide
    }
    assert {place for _, place in places} == {NAMESPACE, "kube-system"}
    assert [kind for kind, place in places if place == "kube-system"] == ["RoleBinding"]


# --- images ---


def images(item: Any) -> list[str]:
    if isinstance(item, dict):
        own = [item["image"]] if isinstance(item.get("image"), str) else []
        return own + [name for value in item.values() for name in images(value)]
    return [name for value in item for name in images(value)] if isinstance(item, list) else []


def test_images_name_a_version_and_no_registry() -> None:
    found = {name for path in MANIFESTS for item in documents(path) for name in images(item)}
    assert {"muster:0.1.0", "kube-scheduler:v1.37.2"} <= found
    assert all(re.fullmatch(r"[a-z0-9-]+:v?[0-9.]+", name) for name in found)


def test_kustomize_can_replace_every_image_of_the_pod(pod: Object) -> None:
    (item,) = documents(DEPLOY / "kustomization.yaml")
    assert {f"{image['name']}:{image['newTag']}" for image in item["images"]} == set(images(pod))
    assert all((DEPLOY / name).exists() for name in item["resources"])


def test_the_image_is_built_from_the_lock_and_runs_as_the_user_of_the_pod(pod: Object) -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["python:3.12-slim"] * 2
    assert "--requirement requirements.lock" in text
    assert f"USER {pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" in text
    assert 'ENTRYPOINT ["muster"]' in text


# --- podgroup-crd.yaml ---


def test_the_crd_is_the_known_api() -> None:
    crd = one(DEPLOY / "podgroup-crd.yaml", "CustomResourceDefinition", "podgroups.scheduling.x-k8s.io")
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    assert (crd["spec"]["group"], version["name"], crd["spec"]["names"]["kind"]) == (
        "scheduling.x-k8s.io",
        "v1alpha1",
        "PodGroup",
    )
    assert crd["spec"]["names"]["shortNames"] == ["pg", "pgs"]
    assert version["subresources"] == {"status": {}}
    assert {name: field["type"] for name, field in schema["spec"]["properties"].items()} == {
        "minMember": "integer",
        "minResources": "object",
        "scheduleTimeoutSeconds": "integer",
    }
    assert {name: field["type"] for name, field in schema["status"]["properties"].items()} == {
        "phase": "string",
        "occupiedBy": "string",
        "scheduled": "integer",
        "running": "integer",
        "succeeded": "integer",
        "failed": "integer",
        "scheduleStartTime": "string",
    }


# --- examples and docs/submit.md ---


@pytest.mark.parametrize("path", [path for path in GROUP_FILES if path.parent == EXAMPLES], ids=file_id)
def test_every_example_has_as_many_members_as_its_group_needs(path: Path) -> None:
    items = documents(path)
    (group,) = [item for item in items if item["kind"] == "PodGroup"]
    policy = group["spec"].get("schedulingPolicy", {}).get("gang", {})
    minimum = policy.get("minCount", group["spec"].get("minMember"))
    members = 0
    for template, count in pod_templates(items):
        label = template.get("metadata", {}).get("labels", {}).get(GROUP_LABEL)
        native = template["spec"].get("schedulingGroup", {}).get("podGroupName")
        assert (label, native) in {(group["metadata"]["name"], None), (None, group["metadata"]["name"])}
        members += count
    assert 1 <= minimum <= members


def test_examples_leave_scheduler_and_gate_to_the_policy() -> None:
    for path in EXAMPLES.glob("*.yaml"):
        for template, _ in pod_templates(documents(path)):
            assert not {"schedulerName", "schedulingGates", "nodeName"} & template["spec"].keys()


def test_both_values_of_the_label_have_an_example() -> None:
    values = {item["metadata"]["labels"][ENABLED_LABEL] for item in documents(EXAMPLES / "namespaces.yaml")}
    assert values == {"gangs", "gpus"}


def test_the_manifests_in_submit_md_are_the_job_example() -> None:
    blocks = re.findall(r"```yaml\n(.*?)\n *```", (ROOT / "docs" / "submit.md").read_text(), re.DOTALL)
    group, job = (yaml.safe_load(textwrap.dedent(block)) for block in blocks)
    real_group, real_job = documents(EXAMPLES / "job-gang.yaml")
    assert group["spec"]["minMember"] == real_group["spec"]["minMember"]
    assert group["metadata"] == real_group["metadata"]
    assert job["spec"]["template"]["metadata"] == real_job["spec"]["template"]["metadata"]
    assert {key: job["spec"][key] for key in ("completions", "parallelism", "completionMode")} == {
        key: real_job["spec"][key] for key in ("completions", "parallelism", "completionMode")
    }


def test_files_that_submit_md_points_to_exist() -> None:
    text = (ROOT / "docs" / "submit.md").read_text()
    links = re.findall(r"\]\((\.\./[^)#]+)\)", text)
    assert links
    assert all((ROOT / "docs" / link).resolve().exists() for link in links)
