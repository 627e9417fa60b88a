# SPDX-License-Identifier: Apache-2.0
"""What kwok plays in place of kubelets, and the Node objects it plays them for.

A pod bound to a node runs at once. Annotations on the pod script the rest (Go durations: `1s`, `250ms`):
`muster.test/runs-for` then Succeeded, `muster.test/fails-after` then Failed. A deleted pod is gone at once.
A node renews its Lease if there are leases. Nothing here decides anything about scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from tests.cluster.client import Object

RUNS_FOR = "muster.test/runs-for"
FAILS_AFTER = "muster.test/fails-after"

_NODE_CONDITIONS = """
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
phase: Running
"""

_POD_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range ( list "Initialized" "ContainersReady" "Ready" ) }}
- type: {{ . | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ range .spec.readinessGates }}
- type: {{ .conditionType | Quote }}
  status: "True"
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: true
  restartCount: 0
  state:
    running:
      startedAt: {{ $now | Quote }}
{{ end }}
"""


def _pod_over(*, phase: str, exit_code: int, reason: str) -> str:
    return f"""
{{{{ $now := Now }}}}
phase: {phase}
conditions:
{{{{ range ( list "ContainersReady" "Ready" ) }}}}
- type: {{{{ . | Quote }}}}
  status: "False"
  reason: {"PodCompleted" if phase == "Succeeded" else "PodFailed"}
  lastTransitionTime: {{{{ $now | Quote }}}}
{{{{ end }}}}
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {exit_code}
      reason: {reason}
      startedAt: {{{{ $now | Quote }}}}
      finishedAt: {{{{ $now | Quote }}}}
{{{{ end }}}}
"""


def _stage(name: str, kind: str, match: list[Object], **spec: Any) -> Object:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": match},
            **spec,
        },
    }


def _is(key: str, *values: str, negate: bool = False) -> Object:
    return {"key": key, "operator": "NotIn" if negate else "In", "values": list(values)}


def _has(key: str, *, negate: bool = False) -> Object:
    return {"key": key, "operator": "DoesNotExist" if negate else "Exists"}


def _status(template: str) -> list[Object]:
    # Strategic, so that conditions are merged by type: PodScheduled belongs to the scheduler and must stay.
    return [{"patch": {"subresource": "status", "root": "status", "type": "strategic", "template": template}}]


def _pod_over_stage(name: str, annotation: str, *, template: str) -> Object:
    match = [
        _has(".metadata.deletionTimestamp", negate=True),
        _is(".status.phase", "Running"),
        _has(f'.metadata.annotations["{annotation}"]'),
    ]
    delay = {
        "durationMilliseconds": 0,
        "durationFrom": {"expressionFrom": f'.metadata.annotations["{annotation}"]'},
    }
    return _stage(name, "Pod", match, delay=delay, steps=_status(template))


def kwok_config(*, lease_seconds: int) -> str:
    """The file for `kwok --config`: how hard it works, and the stages. `lease_seconds` 0 means no leases."""
    alive = _has(".metadata.deletionTimestamp", negate=True)
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    done = _pod_over(phase="Succeeded", exit_code=0, reason="Completed")
    failed = _pod_over(phase="Failed", exit_code=1, reason="Error")
    documents = [
        {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            "options": {
                "manageAllNodes": True,
                # With options given, kwok fills in no defaults: all that it needs is here.
                "cidr": "10.0.0.1/8",
                "nodeLeaseDurationSeconds": lease_seconds,
                "nodeLeaseParallelism": 16,
                "podsOnNodeSyncParallelism": 8,
                "enablePodsOnNodeSyncListPager": False,
                "podPlayStageParallelism": 16,
                "nodePlayStageParallelism": 16,
            },
        },
        _stage("node-ready", "Node", [_is(ready, "True", negate=True)], steps=_status(_NODE_CONDITIONS)),
        _stage("pod-running", "Pod", [alive, _is(".status.phase", "Pending")], steps=_status(_POD_RUNNING)),
        _pod_over_stage("pod-succeeded", RUNS_FOR, template=done),
        _pod_over_stage("pod-failed", FAILS_AFTER, template=failed),
        _stage("pod-gone", "Pod", [_has(".metadata.deletionTimestamp")], steps=[{"delete": True}]),
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)


def make_node(
    name: str,
    *,
    gpus: int = 8,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
    resources: Mapping[str, str] | None = None,
) -> Object:
    """A Node that is Ready from birth, so that the node lifecycle controller has nothing to taint.

    `resources` adds to, or replaces, the default capacity; `gpus=0` leaves the GPU resource out altogether.
    """
    capacity = {"cpu": "128", "memory": "2Ti", "pods": "250", "ephemeral-storage": "1Ti"}
    capacity |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    capacity |= dict(resources or {})
    usual = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": usual | dict(labels or {}),
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "phase": "Running",
        },
    }
