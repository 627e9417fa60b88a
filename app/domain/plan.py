# SPDX-License-Identifier: Apache-2.0
"""Seats and plans: where the members of one gang go, decided together or not at all."""

from __future__ import annotations

import msgspec

from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.placement import Template


class Member(msgspec.Struct, frozen=True, gc=False):
    """A pod that asks for a seat."""

    uid: PodUid
    template: Template


class Seat(msgspec.Struct, frozen=True, gc=False):
    """One member's place on one node."""

    uid: PodUid
    node: NodeName
    template: Template


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What a gang asks of the planner: seats for as many `members` as fit, at least `need` (≥ 1) of them.

    `priority` decides whose nominations count as used.
    """

    gang: GangKey
    members: tuple[Member, ...]
    need: int
    priority: int = 0


class Plan(msgspec.Struct, frozen=True, gc=False):
    """Seats for a whole gang (or for what it still lacks), at least the demand's `need` of them."""

    gang: GangKey
    seats: tuple[Seat, ...]


class PodRef(msgspec.Struct, frozen=True, gc=False):
    """Enough to address one very pod: a recreated pod of the same name has another UID."""

    namespace: str
    name: str
    uid: PodUid


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one write. `error` is empty on success; `gone` when its object no longer exists."""

    error: str = ""
    gone: bool = False

    @property
    def ok(self) -> bool:
        """Whether the write took effect."""
        return not self.error
