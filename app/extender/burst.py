# SPDX-License-Identifier: Apache-2.0
"""Whether new members get our gate: not while they come in a burst, there is room for all, and none waits.

A gate costs two writes, its lifting and a nomination. It saves failed attempts, and of those a burst has few:
members come faster than kube-scheduler asks about them, and mostly a gang is complete when it asks for the
first. Decides that alone, and ends it as soon as it does not hold: members without the gate are placed by the
same rules. What the API server does when it is told is in deploy/admission-policy.yaml.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from app.domain.ids import PodUid
from app.domain.pod import Pod
from app.domain.reasons import Reason
from app.extender.admission import Spawn
from app.extender.ports import Gatekeeper
from app.extender.roster import Roster
from app.inventory.inventory import Inventory

WINDOW_SECONDS: Final = 1.0
ROOM_WINDOWS: Final = 5
"""There is room when what came in one window could come this many times again."""

SLOWER: Final = 4
"""A burst is over when members come this many times slower than one begins at."""

WORTH: Final = 4
"""It is not worth it when of so many members that come more than one attempt fails."""

REST_SECONDS: Final = 10.0
"""From the end of one burst to the beginning of the next: a word costs a write, too."""

REPEAT_SECONDS: Final = 60.0
"""The last word is said again: somebody else may have said something, or a late answer was another's."""

HOPELESS: Final = (Reason.NEVER_FITS, Reason.NO_PACKING)
"""Why a gang waits that nothing which comes free will help: nobody waits behind it."""


class Burst:
    """`tick` while this process is active, `rest` while it is not."""

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
        self._enough = pods_per_second * WINDOW_SECONDS
        self._clock = clock
        self._spawn = spawn
        self._looking = False
        self._came: deque[tuple[float, Pod]] = deque()
        self._failed: deque[float] = deque()
        self._waived: dict[PodUid, Pod] = {}
        """Members without the gate that are not bound: they will need room, seats or not."""
        self._ended_at = -REST_SECONDS
        self._word = asyncio.Lock()
        self._failures, self._said_at = 0, 0.0
        self.told: bool | None = None
        """Whether gates are left off; None while that is not certain."""

    def observed(self, before: Pod | None, after: Pod | None) -> None:
        """A pod appeared, changed or went. Those of the first list have not come now, but long ago."""
        if before is not None:
            self._waived.pop(before.uid, None)
        if after is None or not after.grouped or after.node is not None or not after.alive:
            return
        if after.waived:
            self._waived[after.uid] = after
        if not self._looking or after.scheduler != self._inventory.scheduler:
            return
        if before is None:
            self._came.append((self._clock(), after))
        elif after.outcome != before.outcome and not after.gated:
            self._failed.append(self._clock())

    def rest(self) -> None:
        """This process does not act: whoever does may say something else."""
        self._looking, self.told = False, None
        self._came.clear()
        self._failed.clear()

    def tick(self, *, ready: bool) -> None:
        """Look at the last second, and have the API server told when it should do otherwise.

        A process that is not `ready` sees no burst.
        """
        self._looking = ready
        now = self._clock()
        while self._came and self._came[0][0] <= now - WINDOW_SECONDS:
            self._came.popleft()
        while self._failed and self._failed[0] <= now - WINDOW_SECONDS:
            self._failed.popleft()
        lasts = ready and self._lasts()
        due = lasts is not self.told or now - self._said_at >= REPEAT_SECONDS
        if due and not self._word.locked() and now - self._said_at >= self._pause():
            self._spawn(self._tell(lasts))

    async def end(self) -> None:
        """The process ends: from now on every member is gated."""
        async with self._word:  # one that is still on its way would have the last word
            if self.told is not False:
                await self._say(False)

    # -- what is seen

    def _lasts(self) -> bool:
        enough = self._enough / (SLOWER if self.told else 1)
        rested = self.told or self._clock() - self._ended_at >= REST_SECONDS
        many = rested and 0 < enough <= len(self._came)
        return many and len(self._failed) * WORTH <= len(self._came) and not self._crowded() and self._room()

    def _crowded(self) -> bool:
        """Whether some gang waits for room that it may get: those that come now would wait behind it."""
        told = (self._roster.remembered(place.key).reason for place in self._roster.backlog)
        return any(reason not in HOPELESS for reason in told)

    def _room(self) -> bool:
        """On all nodes together; where that is too kind a measure, somebody waits soon, and it is over."""
        unseated = (pod for uid, pod in self._waived.items() if self._inventory.book.get(uid) is None)
        asked = _asked(unseated)
        for name, amount in _asked(pod for _, pod in self._came).items():
            asked[name] += ROOM_WINDOWS * amount
        columns = self._inventory.columns
        return all(
            np.maximum(columns.allocatable(name) - columns.used(name) - columns.reserved(name), 0).sum()
            >= amount
            for name, amount in asked.items()
        )

    # -- what is said

    def _pause(self) -> float:
        """After words that were not heard: longer each time in a row."""
        return min(2.0 ** (self._failures - 1), REPEAT_SECONDS) if self._failures else 0.0

    async def _tell(self, lasts: bool) -> None:
        async with self._word:
            await self._say(lasts)

    async def _say(self, lasts: bool) -> None:
        before, self.told = self.told, None
        self._failures, self._said_at = self._failures + 1, self._clock()
        outcome = await self._gatekeeper.leave_gates_off(lasts)
        if outcome.ok:
            self._failures = 0
        if outcome.ok or outcome.gone:  # with nothing there to be told every member is gated
            self.told = lasts and outcome.ok
        if before and not lasts:
            self._ended_at = self._clock()


def _asked(pods: Iterable[Pod]) -> Counter[str]:
    asked: Counter[str] = Counter()
    for pod in pods:
        for name, amount in pod.template.requests:
            asked[name] += amount
    return asked
