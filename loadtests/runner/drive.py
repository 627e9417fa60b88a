# SPDX-License-Identifier: Apache-2.0
"""Create the load of a scenario and end what is to end. Looks only at what the witness saw; measures nothing.

Every drive returns True when all that could happen has happened, False when its time limit came first.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final

from loadtests.runner.ledger import Ledger
from loadtests.runner.scenario import Scenario, Task, part
from loadtests.runner.testbed import Testbed
from tests.real.workloads import Object

WRITERS: Final = 32
Told = Callable[[str, int, int], None]
"""Progress: what, how much of it is done, of how much."""


class Driver:
    """One run of one scenario. `until` is the moment (monotonic) at which it is ended."""

    def __init__(
        self,
        bed: Testbed,
        scenario: Scenario,
        tasks: list[Task],
        witness: Ledger,
        *,
        share: float,
        limit_seconds: float,
        told: Told,
    ) -> None:
        self.bed, self.scenario, self.tasks, self.witness = bed, scenario, tasks, witness
        self.total = sum(task.members for task in tasks)
        self.until = time.monotonic() + limit_seconds
        self._share, self._told = share, told

    def run(self) -> bool:
        """The drive that the scenario asks for."""
        if self.scenario.backlog:
            ends = part(self.scenario.backlog.ends, self._share)
            return self._backlog(ends, self.scenario.backlog.every_seconds)
        if self.scenario.arrivals:
            return self._arrivals()
        return self._burst()

    def _burst(self) -> bool:
        """Everything at once."""
        self._create_all()
        return self._wait(lambda: self.witness.bound == self.total, "pods bound", self._bound)

    def _backlog(self, ends: int, every_seconds: float) -> bool:
        """More gangs than fit; then one that runs ends at a time, the longest running first."""
        fitting = self.scenario.fitting(nodes=self.bed.nodes)
        self._create_all()
        if not self._wait(
            lambda: self._all_seen() and self._whole() >= fitting, "gangs running", self._gangs
        ):
            return False
        began = time.monotonic()
        for number in range(ends):
            due = began + number * every_seconds
            self._pause(due)
            if not self._wait(partial(self._more_than, number), "gangs running", self._gangs):
                return False
            self.bed.end(self.witness.whole[number][1])
            self._told("gangs ended", number + 1, ends)
        return self._wait(lambda: self._whole() >= fitting + ends, "gangs running", self._gangs)

    def _arrivals(self) -> bool:
        """Gangs come at their time, run for their time once whole, and are deleted then."""
        began = time.monotonic()
        runs = {task.name: task.run_seconds for task in self.tasks}
        coming = deque(sorted(self.tasks, key=lambda task: task.arrival_seconds))
        ending: list[tuple[float, str]] = []
        seen = ended = 0
        with _Writers(self.bed) as writers:
            while True:
                now = time.monotonic()
                due = _due(coming, now - began)
                writers.create(self._groups(due), interleaved([self.bed.pods(task) for task in due]))
                for moment, name in self.witness.whole[seen:]:
                    heapq.heappush(ending, (moment + runs[name], name))
                    seen += 1
                while ending and ending[0][0] <= now:
                    writers.end(heapq.heappop(ending)[1])
                    ended += 1
                self._told("gangs over", ended, len(self.tasks))
                if ended == len(self.tasks) or now >= self.until:
                    break
                moments = [began + coming[0].arrival_seconds] if coming else []
                moments += [ending[0][0]] if ending else []
                self.witness.wait(partial(self._more_than, seen), min([*moments, self.until]), tick=_nothing)
            writers.wait()
        return self._wait(self._all_gone, "gangs over", lambda: (ended, len(self.tasks)))

    # -- creating

    def _create_all(self) -> None:
        self.bed.cluster.create_many(self._groups(self.tasks), threads=WRITERS)
        self.bed.cluster.create_many(self._in_order(self.tasks), threads=WRITERS)

    def _groups(self, tasks: list[Task]) -> list[Object]:
        return [group for task in tasks for group in self.bed.group(task)]

    def _in_order(self, tasks: list[Task]) -> list[Object]:
        return [pod for task in tasks for pod in self.bed.pods(task)]

    # -- waiting

    def _wait(self, condition: Callable[[], bool], what: str, done: Callable[[], tuple[int, int]]) -> bool:
        return self.witness.wait(condition, self.until, tick=lambda: self._told(what, *done()))

    def _pause(self, until: float) -> None:
        self.witness.wait(lambda: False, until, tick=_nothing)

    def _bound(self) -> tuple[int, int]:
        return self.witness.bound, self.total

    def _gangs(self) -> tuple[int, int]:
        return len(self.witness.whole), len(self.tasks)

    def _whole(self) -> int:
        return len(self.witness.whole)

    def _more_than(self, whole: int) -> bool:
        return self._whole() > whole

    def _all_seen(self) -> bool:
        return self.witness.created == self.total

    def _all_gone(self) -> bool:
        return self.witness.gone == self.total


def _due(coming: deque[Task], seconds: float) -> list[Task]:
    """Take those that have arrived by then."""
    due = []
    while coming and coming[0].arrival_seconds <= seconds:
        due.append(coming.popleft())
    return due


def interleaved(columns: Sequence[Sequence[Object]]) -> list[Object]:
    """The first member of each, then the second of each: the order in which half gangs are likeliest."""
    longest = max(map(len, columns), default=0)
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


class _Writers:
    """Requests beside the loop that decides about them: it must not be late because one is slow."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix="writer")
        self._running: list[Future[object]] = []

    def __enter__(self) -> _Writers:
        return self

    def __exit__(self, *failure: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def create(self, groups: list[Object], pods: list[Object]) -> None:
        """Groups now, pods soon and in this order."""
        list(self._pool.map(self._bed.client.create, groups))
        self._running += [self._pool.submit(self._bed.client.create, pod) for pod in pods]

    def end(self, task: str) -> None:
        """Delete its pods soon."""
        self._running.append(self._pool.submit(self._bed.end, task))

    def wait(self) -> None:
        """Until all is answered; raises the first error."""
        for future in self._running:
            future.result()


def _nothing() -> None:
    pass
