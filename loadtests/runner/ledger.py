# SPDX-License-Identifier: Apache-2.0
"""What has been seen of the pods under test, kept by task: lives, counts, tasks that are whole. No I/O."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from loadtests.runner.accounting import Course, Life
from loadtests.runner.scenario import Task
from loadtests.runner.sightings import Sighting

POLL_SECONDS = 0.2


class Ledger:
    """Pods are called `<task>-<number>`. `whole` lists (moment, task) as tasks become whole.

    One thread takes, others look and wait.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.whole: list[tuple[float, str]] = []
        self.created = self.bound = self.gone = 0
        self._changed = threading.Condition()
        self._tasks = {task.name: task for task in tasks}
        self._lives: dict[str, Life] = {}
        self._bound_of: Counter[str] = Counter()
        self._failed = ""

    def take(self, batch: Iterable[Sighting]) -> None:
        """Add sightings, in the order in which they were made."""
        with self._changed:
            for sighting in batch:
                self._take(sighting)
            self._changed.notify_all()

    def fail(self, reason: str) -> None:
        """Nothing more will be seen. The first reason counts."""
        with self._changed:
            self._failed = self._failed or reason
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], until: float, *, tick: Callable[[], None]) -> bool:
        """Until the condition, asked after each change, is true; False if `until` (monotonic) is first.

        Raises RuntimeError when nothing more will be seen.
        """
        with self._changed:
            while not condition():
                if self._failed:
                    raise RuntimeError(f"the witness sees no more: {self._failed}")
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, POLL_SECONDS))
                tick()
            return True

    def courses(self) -> list[Course]:
        """What was seen of every task of which a pod was seen."""
        lives: dict[str, list[Life]] = {}
        with self._changed:
            for pod, life in self._lives.items():
                lives.setdefault(_task(pod), []).append(msgspec.structs.replace(life))
        return [
            Course(gpus=task.gpus, members=task.members, lives=tuple(lives[name]))
            for name, task in self._tasks.items()
            if name in lives
        ]

    def _take(self, sighting: Sighting) -> None:
        moment, pod, what = sighting
        if what == "failed":
            self._failed = self._failed or pod
        elif what == "created":
            self._lives[pod] = Life(created=moment)
            self.created += 1
        elif what == "bound":
            self._lives[pod].bound = moment
            self.bound += 1
            self._count(_task(pod), moment)
        else:
            self._lives[pod].gone = moment
            self.gone += 1

    def _count(self, task: str, moment: float) -> None:
        self._bound_of[task] += 1
        if self._bound_of[task] == self._tasks[task].members:
            self.whole.append((moment, task))


def _task(pod: str) -> str:
    return pod.rpartition("-")[0]
