# SPDX-License-Identifier: Apache-2.0
"""Paces the writes that only inform people: one queue, one rate, whatever the number of subjects.

Decides when a write happens and in which order: by rank, then oldest first, at most one per key in flight.
Never decides what is written (the write reads that when its turn comes, so the latest always wins), never
blocks who asks, and never lets the queue grow past its bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from enum import IntEnum
from random import Random
from typing import Final, TypeAlias

import structlog

from app.domain.errors import ApiError
from app.kube.backoff import Backoff

Key: TypeAlias = Hashable
Write: TypeAlias = Callable[[], Awaitable[None]]
"""Performs one write. Raises `ApiError`: with `retry` set it is tried again later, else it is given up."""

PER_SECOND: Final = 20.0
_GRAIN_SECONDS: Final = 0.001
_log = structlog.get_logger("muster.kube.writer")


class Rank(IntEnum):
    """Who goes first. A PodGroup's event says for all members what each of theirs says."""

    GROUP_EVENT = 0
    GROUP_STATUS = 1
    POD_EVENT = 2


class PacedWriter:
    """`put` and run `run()`. The pace is even: one write each 1/`per_second`, no bursts.

    `clock` must be the time that `asyncio.sleep` passes. When `may_write` turns false, what waits is dropped.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        rng: Random,
        may_write: Callable[[], bool] = lambda: True,
        per_second: float = PER_SECOND,
        in_flight: int = 8,
        capacity: int = 20_000,
    ) -> None:
        self.dropped = 0
        self.written = 0
        self._clock = clock
        self._may_write = may_write
        self._period = 1.0 / per_second
        self._capacity = capacity
        self._queues: dict[Rank, dict[Key, Write]] = {rank: {} for rank in Rank}
        self._busy: set[Key] = set()
        self._slots = asyncio.Semaphore(in_flight)
        self._work = asyncio.Event()
        self._backoff = Backoff(rng, first_seconds=2.0, most_seconds=30.0)
        self._not_before = 0.0

    def __len__(self) -> int:
        """Writes that wait."""
        return sum(len(queue) for queue in self._queues.values())

    def put(self, key: Key, rank: Rank, write: Write) -> bool:
        """Queue a write; one that waits under the same key keeps its place. False when the queue is full."""
        queue = self._queues[rank]
        if key not in queue and len(self) >= self._capacity:
            self.dropped += 1
            return False
        queue[key] = write
        self._work.set()
        return True

    def drop(self, key: Key) -> None:
        """Forget what waits under this key; a write in flight is not recalled."""
        for queue in self._queues.values():
            queue.pop(key, None)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._slots.acquire()
                key, rank, write = await self._next()
                tasks.create_task(self._perform(key, rank, write))

    async def _next(self) -> tuple[Key, Rank, Write]:
        while True:
            await self._work.wait()
            while (wait := self._not_before - self._clock()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(max(wait, _GRAIN_SECONDS))
            if not self._may_write():
                self._clear()
            elif (found := self._pop()) is not None:
                self._not_before = self._clock() + self._period
                return found
            self._work.clear()

    def _pop(self) -> tuple[Key, Rank, Write] | None:
        for rank, queue in self._queues.items():
            for key in queue:
                if key not in self._busy:
                    self._busy.add(key)
                    return key, rank, queue.pop(key)
        return None

    def _clear(self) -> None:
        for queue in self._queues.values():
            queue.clear()

    async def _perform(self, key: Key, rank: Rank, write: Write) -> None:
        try:
            await write()
            self.written += 1
            self._backoff.reset()
        except ApiError as error:
            if error.retry:
                self._again(key, rank, write, error)
            else:
                _log.warning("write given up", key=str(key), error=str(error))
        except Exception:
            _log.exception("write failed", key=str(key))
        finally:
            self._busy.discard(key)
            self._slots.release()
            self._work.set()

    def _again(self, key: Key, rank: Rank, write: Write, error: ApiError) -> None:
        """Everything waits: what one write was told (429, no answer) the next would be told too."""
        pause = self._backoff.next()
        self._not_before = max(self._not_before, self._clock() + pause)
        _log.warning("writes pause", seconds=round(pause, 1), waiting=len(self), error=str(error))
        if self._may_write() and key not in self._queues[rank]:
            self.put(key, rank, write)
