# SPDX-License-Identifier: Apache-2.0
"""The preempt verb, in its safe form: a subset of kube-scheduler's own candidates.

A gang member preempts nobody (gangs do not preempt yet). For any other pod, candidates whose victims
would take a gang below its minimum are left out; if only such candidates remain, those are kept whose
victims include everything of that gang, because a whole gang is at least not left behind crippled.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.pod import Pod
from app.inventory.inventory import Inventory
from app.inventory.reservations import Phase

Victims = dict[str, tuple[list[str], int]]


def preempt(inventory: Inventory, pod: Pod, candidates: Victims) -> Victims:
    """Candidates that may be preempted, each with its victims unchanged. Empty means: preempt nobody."""
    if pod.mixed is not None or pod.grouped:
        return {}
    harmless: Victims = {}
    whole: Victims = {}
    for node, (uids, violations) in candidates.items():
        if not uids or not _makes_room(inventory, pod, node, uids):
            continue
        harm = _harm(inventory, uids)
        if harm == 0:
            harmless[node] = (uids, violations)
        elif harm == 1:
            whole[node] = (uids, violations)
    return harmless or whole


def _makes_room(inventory: Inventory, pod: Pod, node: str, uids: list[str]) -> bool:
    """Whether the pod fits beside what is reserved once the victims are gone: nobody is evicted for nothing.
    Of a node or a victim that is not known yet nothing can be said against it."""
    row = inventory.columns.row_of.get(NodeName(node))
    victims = [inventory.pods.get(PodUid(uid)) for uid in uids]
    if row is None or not all(victims):
        return True
    free = inventory.free_for(pod, np.array([row]))
    for victim in victims:
        booking = inventory.book.get(victim.uid) if victim is not None else None
        if victim is not None and node in (victim.node, booking.node if booking is not None else None):
            inventory.columns.shift(free, 0, victim.template.requests, sign=1)
    return bool(inventory.fits(pod.template, free).all())


def _harm(inventory: Inventory, uids: list[str]) -> int:
    """0: every gang keeps its minimum. 1: gangs end, but whole ones. 2: a gang would be left crippled."""
    taken: Counter[GangKey] = Counter()
    for uid in uids:
        victim = inventory.pods.get(PodUid(uid))
        booking = inventory.book.get(PodUid(uid))
        gang = booking.gang if booking is not None else victim.gang if victim is not None else None
        if gang is not None:
            taken[gang] += 1
    worst = 0
    for key, count in taken.items():
        gang_now = inventory.gangs.get(key)
        if gang_now is None:
            continue
        standing = len(gang_now.roll.bound) + _on_the_way(inventory, key)
        left = standing - count
        if left > 0 and left + gang_now.roll.succeeded >= gang_now.roll.minimum:
            continue
        worst = max(worst, 1 if count >= standing else 2)
    return worst


def _on_the_way(inventory: Inventory, key: GangKey) -> int:
    return sum(booking.phase >= Phase.HELD for booking in inventory.book.of(key))
