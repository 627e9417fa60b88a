# SPDX-License-Identifier: Apache-2.0
"""Node selectors, required node affinity, taints and tolerations, as kube-scheduler judges them.

Sources: component-helpers `scheduling/corev1/nodeaffinity`, core/v1 `Toleration.ToleratesTaint`, and the
plugins NodeAffinity, TaintToleration and NodeUnschedulable. Never looks at resources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from app.domain.node import Node
from app.domain.placement import Requirement, Taint, Template, Term, Toleration

_HARD: Final = ("NoSchedule", "NoExecute")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,19}")


def admits(template: Template, node: Node) -> bool:
    """Whether the node takes such a pod as far as labels and taints go."""
    return tolerated(template.tolerations, node.taints) and selected(template, node.name, node.labels)


def selected(template: Template, name: str, labels: Mapping[str, str]) -> bool:
    """`nodeSelector` and required node affinity; both must hold."""
    if any(labels.get(key) != value for key, value in template.selector):
        return False
    if template.affinity is None:
        return True
    return any(_term(term, name, labels) for term in template.affinity)


def tolerated(tolerations: tuple[Toleration, ...], taints: tuple[Taint, ...]) -> bool:
    """Whether every NoSchedule and NoExecute taint is tolerated; PreferNoSchedule never excludes."""
    return all(any(_tolerates(t, taint) for t in tolerations) for taint in taints if taint.effect in _HARD)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and toleration.value == taint.value
        case "Gt" | "Lt":
            return bool(toleration.key) and _compare(toleration.operator, taint.value, toleration.value)
    return False


def _term(term: Term, name: str, labels: Mapping[str, str]) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(_holds(r, labels) for r in term.labels) and all(_field(r, name) for r in term.fields)


def _field(requirement: Requirement, name: str) -> bool:
    return requirement.key == "metadata.name" and _holds(requirement, {"metadata.name": name})


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or len(requirement.values) != 1:
                return False
            return _compare(requirement.operator, value, requirement.values[0])
    return False


def _compare(operator: str, value: str, bound: str) -> bool:
    """Integers only; anything else does not match."""
    if not _INTEGER.fullmatch(value) or not _INTEGER.fullmatch(bound):
        return False
    return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
