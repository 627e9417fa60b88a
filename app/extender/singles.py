# SPDX-License-Identifier: Apache-2.0
"""Gangs of one that found no seat: which of them are handed to kube-scheduler, whose preemption may help.

Only lifts gates. What may be evicted is for the preempt verb to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.domain.ids import GangApi, GangKey
from app.domain.pod import Pod
from app.extender.admission import Admission
from app.inventory.inventory import Inventory


def let_preempt(keys: Iterable[GangKey], inventory: Inventory, admission: Admission) -> None:
    """Lift the gates of those among refused gangs that preemption would help. All of `keys` ask for the
    same, at the same priority."""
    pods = [pod for key in keys if (pod := _preemptor(key, inventory)) is not None]
    if pods and _would_preempt(pods[0], inventory):
        for pod in pods:
            admission.release_gate(pod)


def _preemptor(key: GangKey, inventory: Inventory) -> Pod | None:
    """The gated pod of a gang of one that may preempt."""
    gang = inventory.gangs.get(key) if key.api is GangApi.SINGLE else None
    ready = gang.roll.ready if gang is not None else []
    return ready[0] if ready and ready[0].gated and ready[0].preempts else None


def _would_preempt(pod: Pod, inventory: Inventory) -> bool:
    """Whether pods of lower priority hold what it needs, on a node that admits it, and the preempt verb would
    let them go."""
    free = inventory.free_after_preempting(pod.priority)
    if free is None:
        return False
    rows = inventory.admitting(pod.template).nonzero()[0]
    return bool(inventory.fits(pod.template, free, rows).any())
