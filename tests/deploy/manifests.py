# SPDX-License-Identifier: Apache-2.0
"""The shipped manifests as plain objects. Reads files, talks to nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
EXAMPLES = ROOT / "examples"

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GATE = "muster.dev/gang"
ENABLED_LABEL = "muster.dev/enabled"
NAMESPACE = "muster-system"

MANIFESTS = [
    DEPLOY / "extender.yaml",
    DEPLOY / "admission-policy.yaml",
    DEPLOY / "explain.yaml",
    DEPLOY / "podgroup-crd.yaml",
    *sorted(EXAMPLES.glob("*.yaml")),
]


def documents(path: Path) -> list[Object]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item is not None]


def one(path: Path, kind: str, name: str) -> Object:
    found = [item for item in documents(path) if item["kind"] == kind and item["metadata"]["name"] == name]
    assert len(found) == 1, f"{path.name} holds {len(found)} of {kind}/{name}"
    return found[0]


def pod_templates(items: list[Object]) -> Iterator[tuple[Object, int]]:
    """Every pod shape with the number of pods that exist of it at the same time."""
    for item in items:
        match item["kind"]:
            case "Pod":
                yield item, 1
            case "Job":
                yield item["spec"]["template"], item["spec"].get("parallelism", 1)
            case "ReplicaSet" | "Deployment":
                yield item["spec"]["template"], item["spec"].get("replicas", 1)
            case _:
                pass
