# SPDX-License-Identifier: Apache-2.0
"""An independent witness: when each pod under test was created, bound and gone, by a watch of its own.

It trusts nobody's own account: not the driver's answers, not Muster's cache, not the scheduler's metrics.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Self

import msgspec

from loadtests.accounting import Course, Life
from loadtests.scenario import Task
from loadtests.sightings import Sighting, follow
from tests.cluster import Cluster
from tests.cluster.credentials import ADMIN

POLL_SECONDS = 0.2
START_SECONDS = 30.0


class Witness:
    """Between `with` and its end it watches one namespace, whose pods are called `<task>-<number>`.

    `whole` lists (moment, task) as tasks become whole. What is counted changes under `changed`, which is
    notified each time.
    """

    def __init__(self, cluster: Cluster, namespace: str, tasks: Iterable[Task]) -> None:
        self.changed = threading.Condition()
        self.whole: list[tuple[float, str]] = []
        self.created = self.bound = self.gone = 0
        self._tasks = {task.name: task for task in tasks}
        self._lives: dict[str, Life] = {}
        self._bound_of: Counter[str] = Counter()
        self._failed = ""
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe(duplex=False)
        path = f"/api/v1/namespaces/{namespace}/pods"
        args = (cluster.port, cluster.credentials.token(ADMIN), cluster.ca_file, path, theirs)
        self._process = spawn.Process(target=follow, args=args, name="witness", daemon=True)
        self._theirs: Connection = theirs
        self._thread = threading.Thread(target=self._listen, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()  # so that the pipe ends with the process
        if not self._pipe.poll(START_SECONDS):
            raise RuntimeError("the witness did not start")
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._process.terminate()
        self._process.join()
        if self._thread.ident is not None:
            self._thread.join()
        self._pipe.close()
        self._process.close()

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def wait(self, condition: Callable[[], bool], until: float, *, tick: Callable[[], None]) -> bool:
        """Until the condition, asked after each change, is true; False if `until` (monotonic) is first."""
        with self.changed:
            while not condition():
                if self._failed:
                    raise RuntimeError(f"the witness saw no more: {self._failed}")
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(min(left, POLL_SECONDS))
                tick()
            return True

    def courses(self) -> list[Course]:
        """What was seen of every task of which a pod was seen."""
        with self.changed:
            lives: dict[str, list[Life]] = {}
            for pod, life in self._lives.items():
                lives.setdefault(_task(pod), []).append(msgspec.structs.replace(life))
        return [
            Course(gpus=task.gpus, members=task.members, lives=tuple(lives[name]))
            for name, task in self._tasks.items()
            if name in lives
        ]

    def _listen(self) -> None:
        while True:
            try:
                batch = self._pipe.recv()
            except EOFError:
                self._failed = self._failed or "its process ended"
                return
            with self.changed:
                for sighting in batch:
                    self._take(sighting)
                self.changed.notify_all()

    def _take(self, sighting: Sighting) -> None:
        moment, pod, what = sighting
        if what == "failed":
            self._failed = pod
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
