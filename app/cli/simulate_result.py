# SPDX-License-Identifier: Apache-2.0
"""What a simulation has come to: who was bound where and when, and why the rest waits, in Muster's sentences.

Reads the service and the driver once, when all is over.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from app.domain.gang import GangState
from app.domain.ids import GangKey
from app.domain.pod import Pod
from app.domain.reasons import Reason
from app.explain.blocker import mixed_apis
from app.extender.service import Service
from app.extender.standing import DIAGNOSIS_SECONDS
from app.extender.states import state_of
from app.inventory.reservations import Booking, Phase
from app.simulate.driver import Driver
from app.simulate.frame import Total, natural
from app.simulate.submit import Submission

IGNORED = "Ignored"
"""State of a submitted pod that Muster has nothing to do with."""


class BoundPod(msgspec.Struct):
    """`order` counts from 1; `seconds` is virtual time since the snapshot."""

    order: int
    namespace: str
    name: str
    node: str
    gang: str | None
    seconds: float
    submitted: bool


class PendingPod(msgspec.Struct):
    """`state` is the gang's, or for a pod of no gang as kubectl has it; or `Ignored`."""

    namespace: str
    name: str
    gang: str | None
    state: str
    reason: str
    submitted: bool


class Free(msgspec.Struct):
    """A device resource before and after."""

    before: Total
    after: Total


class Result(msgspec.Struct):
    """`seconds`: when the last change was, in virtual time."""

    bound: list[BoundPod]
    pending: list[PendingPod]
    devices: list[Free]
    seconds: float
    notes: list[str]

    @property
    def states(self) -> Counter[str]:
        """How many pending pods are in each state."""
        return Counter(pod.state for pod in self.pending)


def result_of(service: Service, driver: Driver, submission: Submission, devices: list[Free]) -> Result:
    """The result as of now."""
    bound = [
        BoundPod(
            order=number, namespace=pod.namespace, name=pod.name, node=node, gang=_gang(pod),
            seconds=seconds, submitted=pod.uid in submission.pods,
        )
        for number, (pod, node, seconds) in enumerate(driver.bound, start=1)
    ]  # fmt: skip
    notes = list(submission.notes)
    if driver.gave_up:
        notes.append("things still changed when the time that is simulated was over")
    driver.clock.now += (
        DIAGNOSIS_SECONDS  # sentences of this age are made anew: they tell how it is at the end
    )
    pending = _Waiting(service, driver, submission).all()
    return Result(bound=bound, pending=pending, devices=devices, seconds=driver.seconds, notes=notes)


class _Waiting:
    """Looks at each gang once: an exact reason costs a plan or two."""

    def __init__(self, service: Service, driver: Driver, submission: Submission) -> None:
        self._service = service
        self._inventory = service.inventory
        self._driver = driver
        self._submission = submission
        self._reasons: dict[GangKey, str] = {}

    def all(self) -> list[PendingPod]:
        """By namespace and name."""
        waiting = [pod for pod in self._inventory.pods.values() if self._concerns(pod)]
        return [self._one(pod) for pod in sorted(waiting, key=lambda p: (p.namespace, natural(p.name)))]

    def _concerns(self, pod: Pod) -> bool:
        ours = pod.scheduler == self._inventory.scheduler or pod.uid in self._submission.pods
        return ours and pod.alive and pod.node is None

    def _one(self, pod: Pod) -> PendingPod:
        alone = self._submission.left_alone.get(pod.uid)
        return PendingPod(
            namespace=pod.namespace,
            name=pod.name,
            gang=_gang(pod),
            state=IGNORED if alone else self._state(pod),
            reason=alone or self._reason(pod),
            submitted=pod.uid in self._submission.pods,
        )

    def _state(self, pod: Pod) -> str:
        gang = self._inventory.gangs.get(pod.gang) if pod.gang is not None else None
        if gang is None:
            return "SchedulingGated" if pod.gates else "Pending"
        state = state_of(gang, self._inventory)
        return GangState.WAITING if state is GangState.RUNNING else state  # it runs, and this member waits

    def _reason(self, pod: Pod) -> str:
        if (mixed := mixed_apis(pod)) is not None:
            return mixed.text
        booking = self._inventory.book.get(pod.uid)
        if booking is not None:
            return _seated(booking)
        told = self._told(pod.gang) if pod.gang is not None else ""
        return (
            told
            or _gate(pod)
            or self._driver.refusals.get(pod.uid, "")
            or "kube-scheduler has not tried it yet"
        )

    def _told(self, key: GangKey) -> str:
        """Muster's sentence about the gang; empty where it has none but that it is about to look."""
        if key not in self._reasons:
            refusal = self._service.roster.refusal(key)
            self._reasons[key] = "" if refusal.reason is Reason.PENDING else refusal.text
        return self._reasons[key]


def _seated(booking: Booking) -> str:
    if booking.phase is Phase.HELD:
        return f"has a seat on {booking.node} and waits at the barrier for the rest of its gang"
    return f"has a seat on {booking.node} and is not bound yet"


def _gate(pod: Pod) -> str:
    return f"the pod is held by gate {pod.foreign_gates[0]}" if pod.foreign_gates else ""


def _gang(pod: Pod) -> str | None:
    return str(pod.gang) if pod.gang is not None and pod.grouped else None
