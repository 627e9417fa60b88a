# SPDX-License-Identifier: Apache-2.0
"""A pod as scheduling sees it, and the few questions asked about one."""

from __future__ import annotations

from typing import Final

import msgspec

from app.domain.ids import GangApi, GangKey, NodeName, PodUid
from app.domain.placement import Template
from app.domain.resources import is_device

GATE: Final = "muster.dev/gang"
"""Our own scheduling gate: set by the admission policy, lifted by us alone."""

GATE_ANNOTATION: Final = "muster.dev/gate"
"""`none` on a member: the policy sets no gate. It puts that on members itself while they come in a burst."""

SINGLE_LABEL: Final = "muster.dev/gang-of-one"
"""Set in the same patch that lifts the gate of a gang of one: without it nothing would tell, after a restart,
that the pod had queued with the gangs."""

FIELD_MANAGER: Final = "muster"
"""The field manager on every patch we send."""

SCHEDULER: Final = "muster"
"""Default `spec.schedulerName` of the pods that are ours to place."""


class DeviceHealth(msgspec.Struct, frozen=True, gc=False):
    """One device of a container that is not reported as healthy (`allocatedResourcesStatus`, KEP-4680).

    `resource` is the name asked for, or `claim:NAME` for a device of a claim; `health` is Unhealthy or
    Unknown. `message` is the driver's, if it gives one.
    """

    resource: str
    device: str
    health: str
    message: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The fields of core/v1 Pod that scheduling reads. `created` is in Unix seconds.

    `gang` is None for an ordinary pod. `mixed` names both PodGroups when a pod carries both APIs; such a
    pod belongs to no gang and is refused. `outcome` is the `PodScheduled` condition's message and times:
    it changes when kube-scheduler records an attempt. `preempts` is false for `preemptionPolicy: Never`.
    `expiry` is the deletionTimestamp of a pod that is being deleted: when its grace period is over, in Unix
    seconds. `stuck` is why a container on a node waits (CrashLoopBackOff, ErrImagePull, ...), empty where
    none does or it is still being created. `waived` tells that the annotation `muster.dev/gate` says none.
    """

    uid: PodUid
    namespace: str
    name: str
    template: Template
    created: int = 0
    scheduler: str = "default-scheduler"
    priority: int = 0
    preempts: bool = True
    phase: str = "Pending"
    deleting: bool = False
    expiry: int = 0
    node: NodeName | None = None
    nominated: NodeName | None = None
    nominated_by_us: bool = False
    gates: tuple[str, ...] = ()
    waived: bool = False
    gang: GangKey | None = None
    mixed: tuple[str, str] | None = None
    failure: str = ""
    outcome: str = ""
    stuck: str = ""
    sick: tuple[DeviceHealth, ...] = ()

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def alive(self) -> bool:
        """Counts as a member: neither finished nor being deleted."""
        return not self.deleting and not self.finished

    @property
    def gated(self) -> bool:
        """Whether our own gate is still on."""
        return GATE in self.gates

    @property
    def foreign_gates(self) -> tuple[str, ...]:
        """Gates of others; we wait for them and never touch them."""
        return tuple(gate for gate in self.gates if gate != GATE)

    @property
    def ready(self) -> bool:
        """Could be given a seat now."""
        return self.alive and self.node is None and not self.foreign_gates

    @property
    def wants_devices(self) -> bool:
        """Whether it requests any extended resource or a DRA claim."""
        return "resource claims" in self.template.unmodelled or any(
            amount > 0 and is_device(name) for name, amount in self.template.requests
        )

    @property
    def grouped(self) -> bool:
        """Whether it is a member of a gang that has, or waits for, a PodGroup."""
        return self.gang is not None and not self.single

    @property
    def single(self) -> bool:
        """Whether it is a gang of one."""
        return self.gang is not None and self.gang.api is GangApi.SINGLE


def seniority(pod: Pod) -> tuple[int, str]:
    """Key to sort by: oldest first."""
    return pod.created, pod.name
