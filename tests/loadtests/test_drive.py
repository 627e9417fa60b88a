# SPDX-License-Identifier: Apache-2.0
"""What a driver creates and ends, and when, against a scheduler that places whole gangs, first come first."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

import pytest

from loadtests.runner.accounting import wake_figures
from loadtests.runner.drive import Driver, Told, interleaved
from loadtests.runner.ledger import Ledger
from loadtests.runner.scenario import Arrivals, Backlog, Batch, Runs, Scenario, Task
from loadtests.runner.sightings import What
from loadtests.runner.testbed import Testbed

Object = dict[str, Any]


class Bed:
    """A testbed whose scheduler starts the oldest complete gang while fewer than `room` run.

    It is its own cluster and client.
    """

    def __init__(self, tasks: list[Task], *, nodes: int, room: int, stuck: bool = False) -> None:
        self.ledger, self.nodes = Ledger(tasks), nodes
        self.cluster = self.client = self
        self.order: list[str] = []
        self.ended: list[str] = []
        self._sizes = {task.name: task.members for task in tasks}
        self._room, self._stuck = room, stuck
        self._waiting: dict[str, int] = defaultdict(int)
        self._running: list[str] = []
        self._lock = threading.Lock()

    def group(self, task: Task) -> list[Object]:
        return [{"group": task.name}] if task.grouped else []

    def pods(self, task: Task) -> list[Object]:
        return [{"pod": f"{task.name}-{index}", "task": task.name} for index in range(task.members)]

    def create_many(self, objects: Iterable[Object], *, threads: int) -> None:
        for item in objects:
            self.create(item)

    def create(self, item: Object) -> None:
        with self._lock:
            self.order.append(item.get("pod") or item["group"])
            if "pod" in item:
                self._see("created", item["pod"])
                self._waiting[item["task"]] += 1
                self._place()

    def end(self, task: str) -> None:
        with self._lock:
            self.ended.append(task)
            self._running.remove(task)
            self._see("gone", *self._pods_of(task))
            self._place()

    def _place(self) -> None:
        for task in list(self._waiting):
            whole = self._waiting[task] == self._sizes[task]
            if whole and len(self._running) < self._room and not self._stuck:
                del self._waiting[task]
                self._running.append(task)
                self._see("bound", *self._pods_of(task))

    def _pods_of(self, task: str) -> list[str]:
        return [f"{task}-{index}" for index in range(self._sizes[task])]

    def _see(self, what: What, *pods: str) -> None:
        self.ledger.take([(time.monotonic(), pod, what) for pod in pods])


def scenario(**how: Any) -> Scenario:
    return Scenario(about="", measure=(), sets={"short": Runs(nodes=(1,), contenders=())}, **how)


def drive(
    bed: Bed, one: Scenario, tasks: list[Task], *, limit_seconds: float = 30.0, share: float = 1.0
) -> bool:
    told: Told = lambda what, done, total: None  # noqa: E731
    standing_in = cast(Testbed, bed)
    driver = Driver(standing_in, one, tasks, bed.ledger, limit_seconds=limit_seconds, share=share, told=told)
    finished = driver.run()
    assert not finished or time.monotonic() < driver.until - limit_seconds / 2, (
        "it did not end when all was over"
    )
    return finished


def test_a_burst_creates_groups_before_pods_and_waits_for_all() -> None:
    one = scenario(burst=(Batch(count=2, members=2, gpus=1), Batch(count=1)))
    tasks = one.tasks(nodes=1, seed=1)
    bed = Bed(tasks, nodes=1, room=9)
    assert drive(bed, one, tasks)
    assert bed.order == ["a0000", "a0001", "a0000-0", "a0000-1", "a0001-0", "a0001-1", "b0000-0"]
    assert bed.ledger.bound == 5


@pytest.mark.parametrize(
    "one",
    [
        scenario(burst=(Batch(count=1, members=2, gpus=1),)),
        scenario(backlog=Backlog(waiting=1, members=8, gpus=1, ends=1)),
        scenario(arrivals=Arrivals(workload="deadlock", gangs=2)),
    ],
    ids=["burst", "backlog", "arrivals"],
)
def test_a_scheduler_that_places_nothing_runs_into_the_time_limit(one: Scenario) -> None:
    tasks = one.tasks(nodes=2, seed=1)
    began = time.monotonic()
    assert not drive(Bed(tasks, nodes=2, room=9, stuck=True), one, tasks, limit_seconds=0.3)
    assert time.monotonic() - began >= 0.3


def test_of_a_backlog_the_longest_running_gang_ends_each_time() -> None:
    one = scenario(backlog=Backlog(waiting=5, members=4, gpus=1, ends=3, every_seconds=0.02))
    tasks = one.tasks(nodes=1, seed=1)
    bed = Bed(tasks, nodes=1, room=2)
    assert one.fitting(nodes=1) == 2
    assert drive(bed, one, tasks)
    assert bed.ended == ["g0000", "g0001", "g0002"]
    assert [task for _, task in bed.ledger.whole] == ["g0000", "g0001", "g0002", "g0003", "g0004"]
    assert wake_figures(bed.ledger.courses(), fitting=2)["wakes_missed"] == 0


def test_a_share_of_a_backlog_ends_fewer_gangs() -> None:
    one = scenario(backlog=Backlog(waiting=8, members=4, gpus=1, ends=8, every_seconds=0.02))
    tasks = one.tasks(nodes=1, seed=1, share=0.25)
    bed = Bed(tasks, nodes=1, room=2)
    assert drive(bed, one, tasks, share=0.25)
    assert len(bed.ended) == 2


def test_gangs_arrive_at_their_time_run_for_their_time_and_go() -> None:
    first = Task(name="first", members=2, gpus=1, run_seconds=0.2)
    second = Task(name="second", members=1, gpus=1, arrival_seconds=0.1, run_seconds=0.1)
    bed = Bed([first, second], nodes=1, room=1)
    began = time.monotonic()
    assert drive(bed, scenario(arrivals=Arrivals(workload="contended", gangs=2)), [first, second])
    one, two = bed.ledger.courses()
    assert bed.ended == ["first", "second"]
    assert one.gone is not None and one.whole is not None and two.whole is not None
    assert one.gone - one.whole >= 0.2
    assert two.created - began >= 0.1
    assert two.whole >= one.gone


def test_groups_come_before_the_members_of_gangs_that_arrive_together() -> None:
    tasks = [Task(name=name, members=2, gpus=1) for name in ("a", "b", "c")]
    bed = Bed(tasks, nodes=1, room=9)
    assert drive(bed, scenario(arrivals=Arrivals(workload="deadlock", gangs=3)), tasks)
    assert sorted(bed.order[:3]) == ["a", "b", "c"]


def test_members_are_interleaved() -> None:
    columns = [[{"pod": f"{name}{n}"} for n in range(size)] for name, size in (("a", 2), ("b", 1), ("c", 3))]
    assert [pod["pod"] for pod in interleaved(columns)] == ["a0", "b0", "c0", "a1", "c1", "c2"]


def test_a_witness_that_sees_no_more_ends_the_run() -> None:
    one = scenario(burst=(Batch(count=1),))
    tasks = one.tasks(nodes=1, seed=1)
    bed = Bed(tasks, nodes=1, room=9, stuck=True)
    bed.ledger.take([(0.0, "the watch is gone", "failed")])
    with pytest.raises(RuntimeError, match="the watch is gone"):
        drive(bed, one, tasks)
