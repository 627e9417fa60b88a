# SPDX-License-Identifier: Apache-2.0
"""Where the configuration is found, and what cannot be read."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest
import yaml

from app.domain.errors import InputError
from app.explain.config.source import find
from tests.deploy.manifests import DEPLOY
from tests.explain.config.looking import SHIPPED, shipped

V = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config_map(written: str, **more: Any) -> dict[str, Any]:
    meta = {"name": "sched", "namespace": "gpu"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"cfg.yaml": written}, **more}


def test_alone_as_yaml_and_as_json() -> None:
    assert find(SHIPPED.read_text()).raw == shipped()
    assert find(json.dumps(shipped(), indent="\t")).raw == shipped()
    assert find(SHIPPED.read_text()).where == ""


def test_in_the_shipped_manifest_with_the_replicas_beside_it() -> None:
    found = find((DEPLOY / "extender.yaml").read_text())
    assert (found.raw, found.replicas) == (shipped(), 2)
    assert found.where == "ConfigMap muster-system/muster-scheduler-config, key scheduler-config.yaml"


@pytest.mark.parametrize("kind", ["List", "ConfigMapList"])
def test_in_a_list_as_kubectl_prints_it(kind: str) -> None:
    listed = {"apiVersion": "v1", "kind": kind, "items": [7, config_map(V)]}
    found = find(json.dumps(listed))
    assert (found.where, found.replicas) == ("ConfigMap gpu/sched, key cfg.yaml", None)


def test_other_documents_and_keys_do_not_matter() -> None:
    data = {"a": "x: {", "b": V, "c": "", "script.sh": "cat: { KubeSchedulerConfiguration"}
    text = yaml.safe_dump_all([None, {"kind": "Pod"}, config_map("", data=data)])
    assert find(text).where == "ConfigMap gpu/sched, key b"


def test_a_workload_without_replicas_has_one() -> None:
    volume = {"name": "c", "configMap": {"name": "sched"}}
    workload: dict[str, Any] = {
        "kind": "Deployment",
        "metadata": {"name": "s", "namespace": "gpu"},
        "spec": {"template": {"spec": {"volumes": [volume]}}},
    }
    assert find(yaml.safe_dump_all([config_map(V), workload])).replicas == 1
    workload["metadata"]["namespace"] = "elsewhere"
    assert find(yaml.safe_dump_all([config_map(V), workload])).replicas is None


OWN = "a document of its own"
VERSION = "kube-scheduler reads kubescheduler.config.k8s.io/v1 alone"
NONE = "holds no KubeSchedulerConfiguration, neither as a document nor in a data key of a ConfigMap"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", NONE),
        ("kind: Pod", NONE),
        ("- 1", NONE),
        (f"{V}---\n{V}", f"holds 2 of kind KubeSchedulerConfiguration ({OWN}; {OWN}): give one of them"),
        (V.replace("/v1", "/v1beta3"), f"apiVersion is kubescheduler.config.k8s.io/v1beta3; {VERSION}"),
        ("kind: KubeSchedulerConfiguration", f"apiVersion is not set; {VERSION}"),
        (f"{V}parallelism: 1\nparallelism: 2\n", "has the key parallelism twice in one map, line 4"),
        ('{"kind": "A", "kind": "B"}', "has the key kind twice in one map"),
        ("{" * 5000, "is neither YAML nor JSON"),
        ("a: 2026-99-99", "is neither YAML nor JSON"),
        ("a: !!python/object:os.system x", "is neither YAML nor JSON"),
        (V + "extenders: [", "is neither YAML nor JSON: line 3: expected the node content, but found"),
        ("{\n\"kind\": ", "is neither YAML nor JSON: line 2: expected the node content, but found"),
        ("a: \x07", "is neither YAML nor JSON: unacceptable character"),
    ],
    ids=range(14),
)  # fmt: skip
def test_what_cannot_be_read_is_told_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        find(text)
    assert said in str(error.value)


def test_a_data_key_that_cannot_be_read_is_named() -> None:
    with pytest.raises(InputError, match=r"^ConfigMap gpu/sched, key cfg.yaml: is neither YAML nor JSON"):
        find(yaml.safe_dump(config_map(f"{V}a: [")))
    with pytest.raises(InputError, match=r"^ConfigMap gpu/sched, key cfg.yaml: apiVersion is .*v1beta3"):
        find(yaml.safe_dump(config_map(V.replace("/v1", "/v1beta3"))))


def test_anchors_and_merges_are_yaml_too() -> None:
    text = textwrap.dedent("""
        extenders:
          - &one {urlPrefix: "http://127.0.0.1:8888", filterVerb: filter}
          - {<<: *one, bindVerb: bind}
        """)
    assert find(V + text).raw["extenders"][1]["urlPrefix"] == "http://127.0.0.1:8888"
