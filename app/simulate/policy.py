# SPDX-License-Identifier: Apache-2.0
"""What the admission policy of deploy/admission-policy.yaml does to a pod that is created.

The same conditions in the same order; there are no bursts here. Changes nothing outside of the namespaces
that are labelled, as the API server would not.
"""

from __future__ import annotations

from typing import Any, Final

from app.codec.objects import GROUP_LABEL
from app.codec.snapshot import JsonObject
from app.domain.errors import QuantityError
from app.domain.pod import GATE, GATE_ANNOTATION, SCHEDULER
from app.domain.resources import is_device, parse_amount

ENABLED_LABEL: Final = "muster.dev/enabled"
ENABLED: Final = ("gangs", "gpus")
_SYSTEM: Final = ("system-cluster-critical", "system-node-critical")


def enabled(namespace: JsonObject | None) -> str:
    """The value of a Namespace's label if it switches Muster on, else empty."""
    value = str(((namespace or {}).get("metadata", {}).get("labels") or {}).get(ENABLED_LABEL, ""))
    return value if value in ENABLED else ""


def admit(pod: JsonObject, value: str, *, scheduler: str = SCHEDULER) -> None:
    """Change a new pod as the policy would in a namespace labelled with `value` (empty: not at all)."""
    spec = pod["spec"]
    if not value or not _considered(pod, scheduler) or not _covered(pod, value):
        return
    spec["schedulerName"] = scheduler
    gates = spec.get("schedulingGates") or []
    ungated = _in_group(pod) and (pod["metadata"].get("annotations") or {}).get(GATE_ANNOTATION) == "none"
    if ungated:
        spec["schedulingGates"] = [gate for gate in gates if gate.get("name") != GATE]
    elif all(gate.get("name") != GATE for gate in gates):
        spec["schedulingGates"] = [*gates, {"name": GATE}]


def _considered(pod: JsonObject, scheduler: str) -> bool:
    """The policy's match conditions."""
    spec, owners = pod["spec"], pod["metadata"].get("ownerReferences") or []
    daemon = any(o.get("kind") == "DaemonSet" and _is_apps(o.get("apiVersion")) for o in owners)
    chosen = spec.get("schedulerName") or "default-scheduler"
    system = spec.get("priorityClassName") in _SYSTEM
    return (
        chosen in ("default-scheduler", scheduler) and not spec.get("nodeName") and not daemon and not system
    )


def _is_apps(version: object) -> bool:
    return str(version).startswith("apps/")


def _covered(pod: JsonObject, value: str) -> bool:
    return _in_group(pod) or (value == "gpus" and _asks_for_device(pod["spec"]))


def _in_group(pod: JsonObject) -> bool:
    native = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    return bool((pod["metadata"].get("labels") or {}).get(GROUP_LABEL) or native)


def _asks_for_device(spec: JsonObject) -> bool:
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return bool(spec.get("resourceClaims")) or any(map(_has_device, containers))


def _has_device(container: JsonObject) -> bool:
    resources: dict[str, Any] = container.get("resources") or {}
    amounts = [*(resources.get("limits") or {}).items(), *(resources.get("requests") or {}).items()]
    return any(is_device(name) and _positive(name, amount) for name, amount in amounts)


def _positive(name: str, amount: object) -> bool:
    try:
        return parse_amount(name, amount) > 0
    except QuantityError:
        return False  # the codec refuses the pod, and says why
