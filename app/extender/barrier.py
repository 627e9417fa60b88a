# SPDX-License-Identifier: Apache-2.0
"""Where bind calls of a gang wait for each other. Holds calls and answers them; decides nothing itself.

Every call that enters is answered exactly once: opened by its gang, or turned away with a sentence.
"""

from __future__ import annotations

import asyncio

import msgspec

from app.domain.ids import GangKey, PodUid


class Held(msgspec.Struct):
    """One waiting bind call. `answer` resolves to the error text, empty for success."""

    uid: PodUid
    gang: GangKey
    arrived: float
    answer: asyncio.Future[str]


class Barrier:
    """The waiting calls, by gang and pod. A second call of the same pod replaces the first."""

    def __init__(self) -> None:
        self._by_gang: dict[GangKey, dict[PodUid, Held]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_gang.values()))

    def enter(self, uid: PodUid, gang: GangKey, *, now: float) -> Held:
        """Start to wait."""
        self.turn_away(uid, gang, "a newer bind call for this pod has arrived")
        held = Held(uid=uid, gang=gang, arrived=now, answer=asyncio.get_running_loop().create_future())
        self._by_gang.setdefault(gang, {})[uid] = held
        return held

    def gangs(self) -> list[GangKey]:
        """Gangs with at least one waiting call."""
        return list(self._by_gang)

    def of(self, gang: GangKey) -> list[Held]:
        """The waiting calls of a gang, in order of arrival."""
        return list(self._by_gang.get(gang, {}).values())

    def count(self, gang: GangKey) -> int:
        """How many calls of a gang wait."""
        return len(self._by_gang.get(gang, ()))

    def leave(self, held: Held) -> None:
        """The caller hung up, or the call goes on to be posted."""
        gang = self._by_gang.get(held.gang, {})
        if gang.get(held.uid) is held:
            del gang[held.uid]
            if not gang:
                del self._by_gang[held.gang]

    def turn_away(self, uid: PodUid, gang: GangKey, error: str) -> None:
        """Answer a waiting call with an error, if there is one."""
        held = self._by_gang.get(gang, {}).get(uid)
        if held is not None:
            self.leave(held)
            if not held.answer.done():
                held.answer.set_result(error)
