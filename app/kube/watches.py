# SPDX-License-Identifier: Apache-2.0
"""The four resources Muster follows, as one: nodes, pods and the PodGroups of both APIs.

Decides which resources are optional and when the picture is too old to decide on. Never applies a change:
they go to `deliver` in the order each resource tells them (there is no order between resources).
Pods are followed in all namespaces and of all schedulers: every pod uses up its node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from app.codec.objects import ObjectDecoder
from app.codec.wire import NodeObject, PodGroupObject, PodObject
from app.domain.changes import Change, Kind, Value
from app.domain.gang import PodGroup
from app.kube.client import Api
from app.kube.known import Update
from app.kube.reflector import Reflector, Resource
from app.kube.wire import Object

W = TypeVar("W", bound=Object)
V = TypeVar("V", bound=Value)

STALE_SECONDS: Final = 150.0
"""Two and a half bookmark periods: a quiet but healthy watch is never this silent."""

_PATHS: Final = {
    Kind.NODE: "/api/v1/nodes",
    Kind.POD: "/api/v1/pods",
    Kind.LABEL_GROUP: "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    Kind.NATIVE_GROUP: "/apis/scheduling.k8s.io/v1beta1/podgroups",
}


class Watches:
    """`deliver` is called on the event loop with the changes that came together, at most 100 at once."""

    def __init__(
        self,
        api: Api,
        deliver: Callable[[list[Change]], None],
        *,
        decoder: ObjectDecoder | None = None,
        rng: Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        stale_seconds: float = STALE_SECONDS,
    ) -> None:
        decoder = decoder or ObjectDecoder()
        self._stale = stale_seconds
        rng = rng or Random()

        def follow(
            kind: Kind, wire: type[W], value: Callable[[W], V], *, optional: bool = False
        ) -> Reflector[W, V]:
            def hand_over(updates: list[Update[V]]) -> None:
                deliver([Change(value, gone) for value, gone in updates])

            resource = Resource(kind=kind.value, path=_PATHS[kind], wire=wire, value=value, optional=optional)
            return Reflector(api, resource, hand_over, rng=rng, clock=clock)

        def follow_groups(kind: Kind) -> Reflector[PodGroupObject, PodGroup]:
            value = partial(decoder.pod_group_of, native=kind is Kind.NATIVE_GROUP)
            return follow(kind, PodGroupObject, value, optional=True)

        self.nodes = follow(Kind.NODE, NodeObject, decoder.node_of)
        self.pods = follow(Kind.POD, PodObject, decoder.pod_of)
        self.label_groups = follow_groups(Kind.LABEL_GROUP)
        self.native_groups = follow_groups(Kind.NATIVE_GROUP)

    async def run(self) -> None:
        """Follow all until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.nodes.run())
            tasks.create_task(self.pods.run())
            tasks.create_task(self.label_groups.run())
            tasks.create_task(self.native_groups.run())

    async def wait_synced(self) -> None:
        """Return once every resource was listed, or is known to be absent."""
        for reflector in self._all():
            await reflector.synced.wait()

    @property
    def synced(self) -> bool:
        """Whether every resource was listed once."""
        return all(reflector.synced.is_set() for reflector in self._all())

    def ages(self) -> dict[str, float]:
        """Seconds since the API last said anything, by kind: the staleness metric."""
        return {reflector.resource.kind: reflector.age_seconds() for reflector in self._all()}

    def skipped(self) -> dict[str, int]:
        """Object states that could not be read since start, by kind."""
        return {reflector.resource.kind: reflector.skipped for reflector in self._all()}

    def events(self) -> dict[str, int]:
        """Watch events applied since start, by kind."""
        return {reflector.resource.kind: reflector.events for reflector in self._all()}

    def problems(self) -> list[str]:
        """Why the picture cannot be decided on, one sentence per kind; empty when all is well."""
        return [text for reflector in self._all() if (text := self._problem(reflector))]

    def _problem(self, reflector: Reflector[Any, Any]) -> str:
        kind, cause = reflector.resource.kind, f": {reflector.error}" if reflector.error else ""
        if not reflector.synced.is_set():
            return f"{kind} are not synced yet{cause}"
        if reflector.rejected:
            return f"{kind} cannot be applied to the cache: {reflector.rejected}"
        if reflector.age_seconds() > self._stale:
            return f"{kind} are stale, nothing heard for {reflector.age_seconds():.0f} s{cause}"
        return ""

    def _all(self) -> tuple[Reflector[Any, Any], ...]:
        return (self.nodes, self.pods, self.label_groups, self.native_groups)
