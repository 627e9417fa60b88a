# SPDX-License-Identifier: Apache-2.0
"""Tells people why their pods wait: one sentence on every waiting member and on its PodGroup.

Decides what is worth saying and when to say it again; the reporter paces and writes. Works through the
waiting gangs a few at a time, so that ten thousand of them never cost more than a few.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from app.domain.gang import PodGroup
from app.domain.ids import GangApi, GangKey, PodUid
from app.domain.plan import PodRef
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.explain.blocker import mixed_apis
from app.extender.admission import ref
from app.extender.ports import Reporter
from app.extender.roster import Roster
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory

PER_TICK = 20
"""Gangs looked at in one tick."""

FRESH_PER_TICK = 15
"""Of these, gangs that have just changed come first, but leave some places for those whose turn it is."""

BUDGET_SECONDS = 0.005
"""Longest that one tick may keep the event loop from a filter call."""

RENEW_SECONDS = 600.0
"""An unchanged sentence is said again this often, so that it outlives the API's event TTL of an hour."""


class Said(msgspec.Struct):
    """The last sentence about a gang, and to whom it was said."""

    text: str = ""
    at: float = 0.0
    to: frozenset[PodUid] = frozenset()


class Narrator:
    """Watches the waiting gangs and speaks through the reporter."""

    def __init__(
        self, inventory: Inventory, roster: Roster, reporter: Reporter, *, clock: Callable[[], float]
    ) -> None:
        self._inventory = inventory
        self._roster = roster
        self._reporter = reporter
        self._clock = clock
        self._said: dict[GangKey, Said] = {}
        self._mixed: dict[PodUid, float] = {}
        self._queue: list[GangKey] = []
        self._fresh: dict[GangKey, None] = {}
        """Changed, and not told yet. They wait for a tick: most gangs that have just been created are
        complete and have their seats a moment later, and nobody needs to read that they were not."""
        self._warned: dict[tuple[GangKey, str], tuple[str, str]] = {}
        self._changed: dict[GangKey, None] = {}

    def resume(self) -> None:
        """This process may speak from now on: what was said before has reached nobody."""
        self._said.clear()
        self._mixed.clear()
        self._warned.clear()
        self._changed = {gang.key: None for gang in self._inventory.gangs}
        for pod in self._inventory.pods.values():
            if pod.mixed is not None:  # the others are told with their gangs, a few at a time
                self.observed(None, pod)

    def tick(self) -> None:
        """Look at what has changed, then at a few waiting gangs: the fresh ones, and the next in turn."""
        began = self._clock()
        fresh = [key for key in self._fresh if self._roster.waits(key)]
        self._fresh = dict.fromkeys(fresh[FRESH_PER_TICK:])
        self._inspect(began)  # what changed just now is told from the next tick on: see _fresh
        if not self._queue:
            self._next_turn()
        rest = PER_TICK - len(fresh[:FRESH_PER_TICK])
        turn = [key for key in self._queue[:rest] if key not in self._fresh]
        now, self._queue = fresh[:FRESH_PER_TICK] + turn, self._queue[rest:]
        for spot, key in enumerate(now):
            gang = self._inventory.gangs.get(key)
            if gang is not None:
                self._waits(gang)
            if self._clock() - began > BUDGET_SECONDS:
                self._queue = now[spot + 1 :] + self._queue
                break
        self._renew_mixed()

    def _next_turn(self) -> None:
        """Everybody has had a turn: begin again with those that wait now, and forget who does not."""
        self._queue = sorted(set(self._roster.waiting()))
        for key in self._said.keys() - set(self._queue):
            del self._said[key]
        for about in [about for about in self._warned if self._inventory.gangs.get(about[0]) is None]:
            del self._warned[about]

    def _inspect(self, began: float) -> None:
        """Gangs that changed since the last tick, each once however many events there were."""
        while self._changed and self._clock() - began <= BUDGET_SECONDS:
            key = next(iter(self._changed))
            del self._changed[key]
            gang = self._inventory.gangs.get(key)
            if gang is not None:
                self._fresh[key] = None
                self._warn_and_count(gang)

    def _renew_mixed(self) -> None:
        for uid, at in list(self._mixed.items()):
            pod = self._inventory.pods.get(uid)
            if pod is None:
                del self._mixed[uid]
            elif self._clock() - at > RENEW_SECONDS:
                del self._mixed[uid]
                self.observed(None, pod)

    def _waits(self, gang: Gang) -> None:
        refusal = self._roster.refusal(gang.key)
        members = [*gang.roll.ready, *gang.roll.gated_by_others]
        if refusal.reason is Reason.PENDING or not members:
            return
        said = self._said.get(gang.key, Said())
        to = frozenset(pod.uid for pod in members if self._inventory.book.get(pod.uid) is None)
        now = self._clock()
        due = said.text != refusal.text or now - said.at > RENEW_SECONDS
        if due or to - said.to:
            if gang.group is not None and due:
                self._say(gang.group, refusal)
            for pod in members:
                if pod.uid in to and (due or pod.uid not in said.to):
                    self._say(ref(pod), refusal)
            self._said[gang.key] = Said(text=refusal.text, at=now if due else said.at, to=to)

    def _say(self, subject: PodRef | PodGroup, refusal: Refusal) -> None:
        warning = refusal.reason in (Reason.NEVER_FITS, Reason.NO_PACKING, Reason.MIXED_APIS)
        self._reporter.event(
            subject, reason=f"Gang{refusal.reason.code}", message=refusal.text, warning=warning
        )

    # -- what is said at once

    def observed(self, before: Pod | None, after: Pod | None) -> None:
        """A pod appeared, changed or went."""
        if after is None or after.node is not None:
            gone = after or before
            if gone is not None and (gone.gang is not None or gone.mixed is not None):
                self._mixed.pop(gone.uid, None)
                self._reporter.forget(ref(gone))
        elif after.alive and after.uid not in self._mixed and (mixed := mixed_apis(after)) is not None:
            self._mixed[after.uid] = self._clock()
            self._say(ref(after), mixed)

    def changed(self, key: GangKey) -> None:
        """A gang's PodGroup or members changed; the next tick looks at it."""
        self._changed[key] = None

    def _warn_and_count(self, gang: Gang) -> None:
        """Warn of what is probably a mistake, and have the status say how many there are."""
        group = gang.group
        if group is None or group.key.api is GangApi.SINGLE:
            return
        if group.suspicious:
            self._warn(group, "GangMinimum", "spec.minMember is absent or below 1: it counts as 1")
        if len(gang.roll.priorities) > 1:
            text = f"members have different priorities: the gang queues with the lowest, {gang.roll.priority}"
            self._warn(group, "GangPriorities", text)
        if group.key.api is GangApi.LABEL:
            self._reporter.counts(group, counts(gang))

    def released(self, pod: Pod, why: str) -> None:
        """A gate was lifted for another reason than a seat."""
        self._reporter.event(ref(pod), reason="GateReleased", message=f"{why}: muster.dev/gang is lifted")

    def _warn(self, group: PodGroup, reason: str, text: str) -> None:
        if self._warned.get((group.key, reason)) != (group.uid, text):
            self._warned[group.key, reason] = (group.uid, text)
            self._reporter.event(group, reason=reason, message=text, warning=True)


def counts(gang: Gang) -> dict[str, int]:
    """Status counts of scheduling.x-k8s.io PodGroups."""
    members = gang.roll.members
    return {
        "scheduled": sum(pod.node is not None for pod in members),
        "running": sum(pod.phase == "Running" for pod in members),
        "succeeded": sum(pod.phase == "Succeeded" for pod in members),
        "failed": sum(pod.phase == "Failed" for pod in members),
    }
