# SPDX-License-Identifier: Apache-2.0
"""The service behind the verbs: takes in what the watch shows, runs rounds, answers kube-scheduler.

Bytes in, bytes out; HTTP is not its business. Everything here runs on one event loop, so each step sees
the inventory whole. An answer never waits for the planner of another call: rounds are synchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Self

from app.codec import extender as wire
from app.codec.objects import ObjectDecoder
from app.codec.scores import NO_SCORES
from app.domain.changes import Change
from app.domain.errors import InputError
from app.domain.ids import PodUid
from app.domain.pod import SCHEDULER, Pod
from app.domain.reasons import Reason, Refusal
from app.extender.admission import Admission
from app.extender.bind import NOT_ACTIVE, Bind, HungUp
from app.extender.burst import Burst
from app.extender.filter import Filter
from app.extender.narrator import Narrator
from app.extender.offers import Offers
from app.extender.ports import Admitter, Binder, Cluster, Gatekeeper, Leadership, Reporter
from app.extender.preempt import preempt
from app.extender.prioritize import Prioritize
from app.extender.roster import Roster
from app.extender.rounds import Rounds
from app.extender.tenure import Tenure
from app.extender.timing import Timing
from app.inventory.inventory import Inventory

TICK_SECONDS = 0.1
NARRATE_SECONDS = 1.0
STOP_SECONDS = 1.5
"""For bindings under way, and again for nominations to be cleared, when the process ends."""


class Service:
    """One Muster: inventory, rounds, verbs."""

    def __init__(
        self,
        *,
        inventory: Inventory,
        binder: Binder,
        admitter: Admitter,
        reporter: Reporter,
        leadership: Leadership,
        problems: Callable[[], list[str]],
        clock: Callable[[], float],
        timing: Timing | None = None,
        gatekeeper: Gatekeeper | None = None,
    ) -> None:
        timing = timing or Timing()
        self.inventory = inventory
        self.decoder = ObjectDecoder()
        self._leadership = leadership
        self._problems = problems
        self._timing = timing
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission = Admission(
            inventory, admitter, leadership=leadership, timing=timing, clock=clock, spawn=self._spawn
        )
        self.roster = Roster(inventory, clock=clock)
        self.rounds = Rounds(
            inventory, self.roster, self.admission, leadership=leadership, timing=timing, clock=clock
        )
        self.tenure = Tenure(inventory, self.roster, self.admission, timing=timing, clock=clock)
        self.bind = Bind(
            inventory,
            self.roster,
            self.admission,
            self.tenure,
            binder,
            leadership=leadership,
            timing=timing,
            clock=clock,
        )
        self.burst: Burst | None = None
        if gatekeeper is not None:
            self.burst = Burst(
                inventory,
                self.roster,
                gatekeeper,
                pods_per_second=timing.burst_pods_per_second,
                clock=clock,
                spawn=self._spawn,
            )
        self.narrator = Narrator(inventory, self.roster, reporter, clock=clock)
        offers = Offers(inventory)
        self._filter = Filter(inventory, self.roster, self.rounds, self.tenure, self.admission, offers)
        self._prioritize = Prioritize(inventory, offers)
        self._active = False
        self._round_due = False
        self._arrivals: dict[PodUid, asyncio.Event] = {}
        self._next_narration = 0.0

    @classmethod
    def embedded(
        cls,
        cluster: Cluster,
        *,
        clock: Callable[[], float],
        timing: Timing | None = None,
        scheduler: str = SCHEDULER,
    ) -> Self:
        """On a cluster in this process: it takes every write, and no other replica acts on it."""
        return cls(
            inventory=Inventory(scheduler=scheduler),
            binder=cluster,
            admitter=cluster,
            reporter=cluster,
            leadership=cluster,
            problems=list,
            clock=clock,
            timing=timing,
        )

    # -- the watch

    def observe(self, changes: Iterable[Change]) -> None:
        """Take in events; a round follows when the loop is free."""
        touched = self.inventory.apply(changes)
        self.tenure.changed(touched)
        for before, after in touched.pods:
            self.narrator.observed(before, after)
            if self.burst is not None:
                self.burst.observed(before, after)
            if after is not None:
                self._arrived(after)
                if self._active:
                    self._release(after)
        for key in touched.gangs:
            self.bind.review(key)
            if self._active:  # who becomes active looks at everybody
                self.narrator.changed(key)
        self._plan_soon()

    def _arrived(self, pod: Pod) -> None:
        event = self._arrivals.pop(pod.uid, None)
        if event is not None:
            event.set()

    def _release(self, pod: Pod) -> None:
        """A gated pod that is not ours to place must not wait for us."""
        if not pod.gated or not pod.alive or pod.node is not None:
            return
        if pod.scheduler != self.inventory.scheduler:
            why = f"spec.schedulerName is {pod.scheduler}"
        elif pod.single and not pod.wants_devices:
            why = "the pod belongs to no gang and asks for no device"
        else:
            return
        self.admission.release_gate(pod)
        self.narrator.released(pod, why)

    def _plan_soon(self) -> None:
        if not self._round_due:
            self._round_due = True
            asyncio.get_running_loop().call_soon(self._plan_now)

    def _plan_now(self) -> None:
        self._round_due = False
        if self.ready:
            self.rounds.run()

    # -- time

    @property
    def active(self) -> bool:
        """Whether this process plans and writes."""
        return self._active

    @property
    def ready(self) -> bool:
        """Whether the cache is complete and fresh enough to decide."""
        return not self._problems()

    def unready(self) -> list[str]:
        """Why not, one sentence each; empty when ready."""
        return self._problems()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Everything that happens because time passes."""
        self._follow_leadership()
        self.bind.tick()  # deadlines and hand-overs do not wait for a fresh picture
        ready = self.ready
        if ready and self._active:
            self._act()
        if self.burst is not None and self._active:
            self.burst.tick(ready=ready)
        elif self.burst is not None:
            self.burst.rest()

    def _act(self) -> None:
        self.admission.tick()
        self.tenure.tick()
        self.roster.retry()
        self.rounds.run()
        if self._clock() >= self._next_narration:
            self._next_narration = self._clock() + NARRATE_SECONDS
            self.admission.sweep()  # a nomination without a seat keeps GPUs from everybody
            self.narrator.tick()

    def _follow_leadership(self) -> None:
        was, self._active = self._active, self._leadership.active
        if self._active and not was:
            self._plan_now()
            self.admission.sweep()
            self.narrator.resume()
            for pod in list(self.inventory.pods.values()):
                self._release(pod)
        elif was and not self._active:
            self._withdraw("another replica is active now")

    async def stop(self) -> None:
        """Answer held calls, clear our nominations, and come to rest; a few seconds at most."""
        self.rounds.closed = True
        await self.bind.stop(seconds=STOP_SECONDS)
        if self.burst is not None and self._leadership.active:
            self._spawn(self.burst.end())
        self._withdraw("Muster is shutting down")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)

    def _withdraw(self, why: str) -> None:
        self.tenure.abandon(Refusal(reason=Reason.WITHDRAWN, subject=why))
        self.rounds.recovering = True

    def _spawn(self, work: Coroutine[Any, Any, None]) -> object:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.result()  # a fault of ours: the loop's handler logs it

    # -- the verbs

    async def filter(self, body: bytes) -> bytes:
        """ExtenderArgs → ExtenderFilterResult."""
        args = None
        try:
            args = wire.nodes_args(body)
            pod = self._asked(args.pod)
            problem = await self._unable()
            if problem:
                return wire.filter_reply(wire.FilterAnswer(error=problem), args)
            if pod.gang is not None:
                await self._see(pod.uid)
            return wire.filter_reply(self._filter(pod, args.offer), args)
        except InputError as error:
            return wire.filter_reply(wire.FilterAnswer(error=f"filter: {error}"), args)

    async def prioritize(self, body: bytes) -> bytes:
        """ExtenderArgs → HostPriorityList. Has no error field; an unusable body scores nothing."""
        try:
            args = wire.nodes_args(body)
            return self._prioritize(self._asked(args.pod), args.offer)
        except InputError:
            return NO_SCORES

    async def bind_call(self, body: bytes, *, hung_up: HungUp | None = None) -> bytes:
        """ExtenderBindingArgs → ExtenderBindingResult."""
        try:
            args = wire.bind_args(body)
        except InputError as error:
            return wire.bind_reply(f"bind: {error}")
        problem = await self._unable()
        if problem:
            return wire.bind_reply(problem)
        await self._see(PodUid(args.uid))
        return wire.bind_reply(await self.bind(args, hung_up=hung_up))

    async def preempt(self, body: bytes) -> bytes:
        """ExtenderPreemptionArgs → ExtenderPreemptionResult. Unusable input preempts nobody."""
        try:
            args = wire.preempt_args(body)
            pod = self._asked(args.pod)
        except InputError:
            return wire.preempt_reply({})
        if await self._unable():
            return wire.preempt_reply({})
        return wire.preempt_reply(preempt(self.inventory, pod, args.victims))

    def _asked(self, raw: bytes) -> Pod:
        """The pod of a call: what the watch has shown of it, if it has."""
        return self.inventory.pods.get(wire.pod_uid(raw)) or self.decoder.pod(raw)

    async def _unable(self) -> str:
        problems = self._problems()
        if problems:
            return f"Muster is not ready: {problems[0]}"
        if not self._leadership.active and not await self._leadership.confirm():
            return NOT_ACTIVE
        if not self._active:
            self._follow_leadership()
        return ""

    async def _see(self, uid: PodUid) -> None:
        """The scheduler's watch may be a moment ahead of ours."""
        if uid in self.inventory.pods:
            return
        event = self._arrivals.setdefault(uid, asyncio.Event())
        try:
            await asyncio.wait_for(event.wait(), self._timing.seen_seconds)
        except TimeoutError:
            self._arrivals.pop(uid, None)
