# SPDX-License-Identifier: Apache-2.0
"""What a gang asks for in a round, worked out once and kept until the gang or its seats change.

Pure: reads the inventory, changes nothing.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from app.domain.ids import GangKey
from app.domain.plan import Demand, Member
from app.domain.pod import Pod
from app.domain.reasons import Refusal
from app.explain.blocker import unplannable
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory

Signature = tuple[object, ...]
Rank = tuple[bool, int, int, GangKey]


class Claim(msgspec.Struct, frozen=True):
    """`blocked` says why the gang cannot be planned at all; `demand` is None if nobody lacks a seat.

    Gangs of equal `signature` ask for the same thing; `names` are the columns that matter to them.
    `rank` orders gangs in a round, lowest first.
    """

    version: int
    seats: int
    blocked: Refusal | None
    demand: Demand | None
    names: tuple[str, ...]
    signature: Signature
    rank: Rank

    @property
    def stands(self) -> bool:
        """Whether there is something to plan, or to explain."""
        return self.demand is not None


def claim_of(gang: Gang, inventory: Inventory, known: Claim | None) -> Claim:
    """The claim as of now; `known` itself if it still holds."""
    seats = inventory.book.count(gang.key)
    if known is not None and (known.version, known.seats) == (gang.version, seats):
        return known
    roll = gang.roll
    lacking = unseated(gang, inventory)
    blocked = unplannable(gang)
    explain = lacking or (roll.gated_by_others if blocked is not None else [])
    members = tuple(Member(uid=pod.uid, template=pod.template) for pod in explain)
    need = min(max(1, roll.missing - seats), max(1, len(members)))
    demand = Demand(gang=gang.key, members=members, need=need, priority=roll.priority) if members else None
    return Claim(
        version=gang.version,
        seats=seats,
        blocked=blocked,
        demand=demand,
        names=tuple(sorted({name for member in members for name, _ in member.template.requests})),
        signature=(need, roll.priority, frozenset(Counter(member.template for member in members).items())),
        rank=(not (roll.wounded or 0 < seats < roll.missing), -roll.priority, roll.created, gang.key),
    )


def whole(gang: Gang) -> Demand:
    """What a gang would ask for if none of its members had a seat."""
    roll = gang.roll
    members = tuple(Member(uid=pod.uid, template=pod.template) for pod in roll.ready)
    need = min(roll.missing, len(members))
    return Demand(gang=gang.key, members=members, need=need, priority=roll.priority)


def unseated(gang: Gang, inventory: Inventory) -> list[Pod]:
    """Ready members without a seat, oldest first."""
    others = gang.roll.ready_but(inventory.book.uids(gang.key))
    return [pod for pod in others if inventory.book.get(pod.uid) is None]
