# SPDX-License-Identifier: Apache-2.0
"""What one look at a running Muster shows: the body of `GET /overview`, for `muster top` and the page.

Values alone. Light to import: a command reads them without any of what makes them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from app.domain.gang import GangState

SIZES: Final = (1, 2, 4, 8)
"""Devices per member for which it is said how large a gang would fit."""

ORDER: Final = (
    GangState.WOUNDED, GangState.WAITING, GangState.FORMING, GangState.PLANNED, GangState.GATHERING,
    GangState.BINDING, GangState.RUNNING,
)  # fmt: skip
"""In which order people look at gangs: what wants attention first, what runs last."""


class GangLine(msgspec.Struct, frozen=True):
    """One gang. `api` is where its minimum comes from, `kind` and `name` what to ask `explain` about.

    `created` and `since` are Unix seconds; 0 when not known. `reason` (a stable code) and `text` say why
    members lack seats, as they were last worked out, and `since` when this process last saw the gang get on;
    all three are empty while nobody waits. `held` members are at the barrier; `seats` are reserved.
    """

    namespace: str
    name: str
    kind: str
    api: str
    state: GangState
    min: int
    ready: int
    bound: int
    held: int
    seats: int
    priority: int
    created: int
    reason: str = ""
    text: str = ""
    since: int = 0


class DeviceLine(msgspec.Struct, frozen=True):
    """One device resource, over all nodes that have some; counted in devices.

    `reserved` are set aside for gangs and nominated pods. `free` are what is left on nodes that take pods;
    `closed` the same on nodes that take none (cordoned, not ready). Of `free` alone: `largest_pod` is the
    most on one node, `whole_nodes` counts nodes with all their devices free, and `fits[n]` is the largest
    gang of members with n devices each that could be seated now, as far as devices decide.
    """

    name: str
    nodes: int
    capacity: int
    allocatable: int
    used: int
    reserved: int
    free: int
    closed: int
    largest_pod: int
    whole_nodes: int
    fits: dict[int, int]


class Overview(msgspec.Struct, frozen=True):
    """All of it. `at` is the Unix time of the look. `states` counts all gangs; `gangs` holds the first of
    them in the order of `ORDER`, then as they are planned, and `left_out` counts the others.
    `problems` say why the service is not ready. Only an `active` replica knows reasons."""

    at: int
    version: str
    replica: str
    active: bool
    problems: list[str]
    nodes: int
    closed_nodes: int
    pods: int
    states: dict[GangState, int]
    devices: list[DeviceLine]
    gangs: list[GangLine]
    left_out: int
