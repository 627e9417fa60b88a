# SPDX-License-Identifier: Apache-2.0
"""A node as scheduling sees it."""

from __future__ import annotations

from typing import Final

import msgspec

from app.domain.ids import NodeName
from app.domain.placement import Taint
from app.domain.resources import Amounts

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""What a cordon amounts to (kube-scheduler's NodeUnschedulable plugin)."""

NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
"""What a false Ready condition amounts to before the node lifecycle controller has set its taint."""


_BY_KUBERNETES: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of the taints that Kubernetes sets of itself: cordoned, not ready, out of memory or disk."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """`allocatable` decides, `capacity` only explains. `taints` include cordon and readiness."""

    name: NodeName
    uid: str
    allocatable: Amounts
    capacity: Amounts
    labels: dict[str, str]
    taints: tuple[Taint, ...] = ()

    @property
    def shape(self) -> tuple[object, ...]:
        """Everything but the amounts: what selectors, affinity and tolerations look at."""
        return (self.uid, self.labels, self.taints)

    @property
    def closed(self) -> bool:
        """Whether it takes no pods for the time being, as opposed to being kept for some."""
        return any(t.effect != "PreferNoSchedule" and t.key.startswith(_BY_KUBERNETES) for t in self.taints)
