# SPDX-License-Identifier: Apache-2.0
"""Whether new members get our gate: not while they come in a burst and nobody waits for room.

A gate costs two writes, its lifting and a nomination. It saves failed attempts, and of those a burst has few:
pods come faster than kube-scheduler asks about them, and mostly a gang is complete when it asks for the
first. Decides that alone: members without the gate are placed by the same rules. The API server is told by a
label on one object; what it does with that is deploy/admission-policy.yaml.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import numpy as np

from app.domain.pod import Pod
from app.domain.reasons import Reason
from app.extender.admission import Spawn
from app.extender.ports import Gatekeeper
from app.extender.roster import Roster
from app.inventory.inventory import Inventory

WINDOW_SECONDS: Final = 1.0
ROOM_WINDOWS: Final = 5
"""There is room when what came in one window could come this many times again."""

OVER: Final = 4
"""A burst is over when pods come this many times slower than one begins at."""

HOPELESS: Final = (Reason.NEVER_FITS, Reason.NO_PACKING)
AGAIN_SECONDS: Final = 30.0
"""After the API server could not be told."""


class Burst:
    """`tick` while this process is ready and active, `rest` while it is not."""

    def __init__(
        self,
        inventory: Inventory,
        roster: Roster,
        gatekeeper: Gatekeeper,
        *,
        pods_per_second: int,
        clock: Callable[[], float],
        spawn: Spawn,
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._gatekeeper = gatekeeper
        self._pods_per_second = pods_per_second
        self._clock = clock
        self._spawn = spawn
        self._looking = self._telling = False
        self._came: deque[tuple[float, Pod]] = deque()
        self._not_before = 0.0
        self.told: bool | None = None
        """Whether gates are left off; None before the first word of this life."""

    def arrived(self, pod: Pod) -> None:
        """A pod has appeared. Those of the first list do not count: they were created long ago."""
        ours = pod.grouped and pod.scheduler == self._inventory.scheduler
        if self._looking and ours and pod.node is None and pod.alive:
            self._came.append((self._clock(), pod))

    def rest(self) -> None:
        """This process does not act: whoever does may say something else."""
        self._looking, self.told = False, None
        self._came.clear()

    def tick(self) -> None:
        """Look at the last second, and have the API server told when it should do otherwise."""
        self._looking = True
        now = self._clock()
        while self._came and self._came[0][0] <= now - WINDOW_SECONDS:
            self._came.popleft()
        lasts = self._lasts()
        if lasts is not self.told and not self._telling and now >= self._not_before:
            self._telling = True
            self._spawn(self._tell(lasts))

    async def end(self) -> None:
        """The process ends: from now on every pod is gated."""
        if self.told:
            await self._tell(False)

    def _lasts(self) -> bool:
        enough = self._pods_per_second * WINDOW_SECONDS / (OVER if self.told else 1)
        return 0 < enough <= len(self._came) and not self._crowded() and self._room()

    def _crowded(self) -> bool:
        """Whether some gang waits for room that it may get: those that come now would wait behind it."""
        told = (self._roster.remembered(place.key).reason for place in self._roster.backlog)
        return any(reason not in HOPELESS for reason in told)

    def _room(self) -> bool:
        """On all nodes together; where that is too kind a measure, somebody waits soon, and it is over."""
        asked: Counter[str] = Counter()
        for _, pod in self._came:
            for name, amount in pod.template.requests:
                asked[name] += amount
        columns = self._inventory.columns
        return all(
            np.maximum(columns.allocatable(name) - columns.used(name) - columns.reserved(name), 0).sum()
            >= amount * ROOM_WINDOWS
            for name, amount in asked.items()
        )

    async def _tell(self, lasts: bool) -> None:
        try:
            outcome = await self._gatekeeper.leave_gates_off(lasts)
        finally:
            self._telling = False
        if outcome.ok:
            self.told = lasts
        elif outcome.gone:  # there is nothing that could say so: every pod is gated
            self.told = False
        if not outcome.ok:
            self._not_before = self._clock() + AGAIN_SECONDS
