# SPDX-License-Identifier: Apache-2.0
"""What the service has written, in order: patches (and bindings) as short lines, events as they were told.

Put it on a world before the objects that matter are there: `world = World(node)`, `diary = Diary(world)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from app.domain.gang import PodGroup
from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from tests.extender.world import World


class Told(NamedTuple):
    """One event."""

    name: str
    reason: str
    message: str
    warning: bool


class Diary:
    """`written` holds "lift a", "nominate a n1", "clear a".

    `refuse` makes writes of a kind fail, `hold` makes all wait until it is set.
    """

    def __init__(self, world: World) -> None:
        self.written: list[str] = []
        self.told: list[Told] = []
        self.refuse: set[str] = set()
        self.hold: asyncio.Event | None = None
        cluster = world.cluster
        nominate, lift = cluster.nominate, cluster.lift_gate

        async def _nominate(pod: PodRef, node: NodeName | None) -> Outcome:
            line = f"nominate {pod.name} {node}" if node else f"clear {pod.name}"
            return await self._write(line, lambda: nominate(pod, node))

        async def _lift(pod: PodRef, *, single: bool = False) -> Outcome:
            return await self._write(f"lift {pod.name}", lambda: lift(pod, single=single))

        for name, stand_in in (("nominate", _nominate), ("lift_gate", _lift), ("event", self._event)):
            setattr(cluster, name, stand_in)

    async def _write(self, line: str, write: Callable[[], Awaitable[Outcome]]) -> Outcome:
        self.written.append(line)
        if self.hold is not None:
            await self.hold.wait()
        if line.partition(" ")[0] in self.refuse:
            return Outcome(error="403: forbidden")
        return await write()

    def _event(self, subject: PodRef | PodGroup, *, reason: str, message: str, warning: bool = False) -> None:
        name = subject.name if isinstance(subject, PodRef) else f"group {subject.key.name}"
        self.told.append(Told(name, reason, message, warning))

    def take(self) -> list[str]:
        """What was written since the last time."""
        written, self.written = self.written, []
        return written

    def hear(self) -> list[Told]:
        """What was told since the last time."""
        told, self.told = self.told, []
        return told
