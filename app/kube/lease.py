# SPDX-License-Identifier: Apache-2.0
"""Whether this process is *active*: the kube-scheduler beside it holds the scheduler's Lease.

    active  ⇔  holderIdentity starts with "<hostname>_"  and  less than leaseDurationSeconds passed
               on our monotonic clock since we saw the holder or its renewTime change

Decides nothing about leadership itself: it only reads, and never writes the Lease. Wall clocks are never
compared, so skew between machines does not matter (a Lease seen for the first time counts as just renewed:
had somebody else taken over, it would not name us). Assumes what kube-scheduler does: a holder that cannot
renew stops within renewDeadline, which is shorter than leaseDuration.

It watches instead of polling: a hand-over is seen in milliseconds. Streams are short, so that a broken one
is noticed soon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from app.codec.wire import Identity
from app.domain.errors import ApiError
from app.kube.client import Api, object_path
from app.kube.known import Update
from app.kube.reflector import Reflector, Resource

_PREFIX: Final = "/apis/coordination.k8s.io/v1"
_INACTIVITY_SECONDS: Final = 15.0
_WATCH_SECONDS: Final = (8, 12)
_CONFIRM_SECONDS: Final = 2.0
_log = structlog.get_logger("muster.kube.lease")


class LeaseSpec(Struct, rename="camel", gc=False):
    """coordination.k8s.io/v1 LeaseSpec, as far as read."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Struct, gc=False):
    """coordination.k8s.io/v1 Lease, as far as read."""

    metadata: Identity
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


_LEASE = msgspec.json.Decoder(Lease)


class AlwaysActive:
    """For a scheduler without leader election (MUSTER_ACTIVE=always)."""

    active = True

    async def confirm(self) -> bool:
        """Always."""
        return True

    def problems(self) -> list[str]:
        """None."""
        return []

    async def run(self) -> None:
        """Nothing to follow."""


class LeaseWatch:
    """Follows one Lease. `on_change(active)` is called on the loop whenever the answer changes."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        *,
        hostname: str,
        name: str = "muster",
        on_change: Callable[[bool], None] = lambda active: None,
        rng: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._path = object_path(_PREFIX, namespace, "leases", name)
        self._prefix = f"{hostname}_"
        self._on_change = on_change
        self._clock = clock
        self._spec = LeaseSpec()
        self._version = -1
        self._seen = 0.0
        self._told = False
        self._news = asyncio.Event()
        resource = Resource(
            kind="the scheduler's lease",
            path=self._path.rpartition("/")[0],
            wire=Lease,
            value=lambda lease: lease,
            query={"fieldSelector": f"metadata.name={name}"},
        )
        self._reflector = Reflector(
            api,
            resource,
            self._deliver,
            rng=rng,
            clock=clock,
            inactivity_seconds=_INACTIVITY_SECONDS,
            watch_seconds=_WATCH_SECONDS,
        )

    @property
    def active(self) -> bool:
        """As of the last look, with the time that passed since taken into account."""
        return self._ours and self._left_seconds() > 0

    @property
    def holder(self) -> str:
        """Identity of the holder last seen; empty when there is none."""
        return self._spec.holder_identity or ""

    @property
    def synced(self) -> asyncio.Event:
        """Set once the Lease, or its absence, was seen."""
        return self._reflector.synced

    def problems(self) -> list[str]:
        """Why it cannot be told who is active, in one sentence; empty when it can."""
        error = self._reflector.error
        return (
            [f"{self._reflector.resource.kind} cannot be read: {error}"] if error and not self.active else []
        )

    async def confirm(self) -> bool:
        """Read the Lease once, within 2 s; when it cannot be read, the answer is as of the last look."""
        try:
            status, body = await self._api.request("GET", self._path, timeout_seconds=_CONFIRM_SECONDS)
            if status == 200:
                self._observe(_LEASE.decode(body))
            elif status == 404:
                self._forget()
        except (ApiError, msgspec.DecodeError) as error:
            _log.warning("the scheduler's lease cannot be read", error=str(error))
        self._tell()
        return self.active

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._reflector.run())
            tasks.create_task(self._watch_expiry())

    async def _watch_expiry(self) -> None:
        while True:
            self._news.clear()
            self._tell()
            try:
                async with asyncio.timeout(self._left_seconds() if self.active else None):
                    await self._news.wait()
            except TimeoutError:
                continue

    def _deliver(self, updates: list[Update[Lease]]) -> None:
        for lease, gone in updates:
            if gone:
                self._forget()
            else:
                self._observe(lease)
        self._tell()

    def _observe(self, lease: Lease) -> None:
        if -1 < lease.metadata.version < self._version:
            return  # confirm() had read a later state already
        self._version = lease.metadata.version
        before, self._spec = self._spec, lease.spec
        if (before.holder_identity, before.renew_time) != (lease.spec.holder_identity, lease.spec.renew_time):
            self._seen = self._clock()
            self._news.set()

    def _forget(self) -> None:
        self._spec = LeaseSpec()
        self._news.set()

    @property
    def _ours(self) -> bool:
        return self.holder.startswith(self._prefix)

    def _left_seconds(self) -> float:
        return self._seen + (self._spec.lease_duration_seconds or 0) - self._clock()

    def _tell(self) -> None:
        if self.active != self._told:
            self._told = self.active
            _log.info("active" if self._told else "passive", holder=self.holder)
            self._on_change(self._told)
