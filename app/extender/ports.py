# SPDX-License-Identifier: Apache-2.0
"""What the verbs need from the outside. `app.kube` meets these with the real API, `app.simulate` with a
snapshot; neither imports this file, and nothing here knows which of the two it is.

None of these raise for an expected failure: they answer with an `Outcome`. All are safe to repeat.
"""

from __future__ import annotations

from typing import Protocol

from app.domain.gang import PodGroup
from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef


class Binder(Protocol):
    """POSTs `pods/binding`. Source: core/v1 Binding."""

    async def bind(self, pod: PodRef, node: NodeName) -> Outcome:
        """Bind this very pod (its UID is part of the request).

        A 409 or a lost answer is read back: on this node with this UID is success; still unbound, bound
        elsewhere, or not readable is an error. `gone` when the pod does not exist any more.
        """
        ...


class Admitter(Protocol):
    """Nominates and lifts the gate. Every patch carries the pod's UID and the field manager `muster`."""

    async def nominate(self, pod: PodRef, node: NodeName | None) -> Outcome:
        """Set `status.nominatedNodeName`; None clears it. On a bound pod this has no effect and is ok."""
        ...

    async def lift_gate(self, pod: PodRef, *, single: bool = False) -> Outcome:
        """Remove `muster.dev/gang` from `spec.schedulingGates`, and no other gate.

        `single` also labels the pod as a gang of one.
        """
        ...


class Gatekeeper(Protocol):
    """Tells whoever creates members whether they get our gate. The embedded cluster has none: what it is
    given is created already."""

    async def leave_gates_off(self, off: bool) -> Outcome:
        """From now on new members are created without `muster.dev/gang`, or with it again.

        `gone` when there is nothing to tell: then every member is gated.
        """
        ...


class Reporter(Protocol):
    """Tells people. Returns at once; writing is rate-limited, merged and done later."""

    def event(self, subject: PodRef | PodGroup, *, reason: str, message: str, warning: bool = False) -> None:
        """An event on a pod or PodGroup. The latest message of one subject and reason wins."""
        ...

    def counts(self, group: PodGroup, counts: dict[str, int]) -> None:
        """`status` counts of a scheduling.x-k8s.io PodGroup: scheduled, running, succeeded, failed."""
        ...

    def forget(self, subject: PodRef | PodGroup) -> None:
        """Drop what is not written yet: the subject is gone or no longer waits."""
        ...


class Leadership(Protocol):
    """Whether this process may plan and write (design: *active*)."""

    @property
    def active(self) -> bool:
        """As of the last look."""
        ...

    async def confirm(self) -> bool:
        """Look again now, at most once per call, and say whether active."""
        ...


class Cluster(Binder, Admitter, Reporter, Leadership, Protocol):
    """All of it in one: a cluster in this process."""
