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
from random import Random
from typing import Final, TypeVar

from msgspec import Raw

from app.codec.objects import ObjectDecoder
from app.domain.changes import Change, Kind, Value
from app.domain.gang import PodGroup
from app.domain.node import Node
from app.domain.pod import Pod
from app.kube.client import Api
from app.kube.known import Update
from app.kube.reflector import Reflector, Resource

V = TypeVar("V", bound=Value)

STALE_SECONDS: Final = 150.0
"""Two and a half bookmark periods: a quiet but healthy watch is never this silent."""

_PATHS: Final = {
    Kind.NODE: "/api/v1/nodes",
    Kind.POD: "/api/v1/pods",
    Kind.LABEL_GROUP: "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
    Kind.NATIVE_GROUP: "/apis/scheduling.k8s.io/v1beta1/podgroups",
}
_NATIVE_VERSION: Final = b'{"apiVersion":"scheduling.k8s.io/v1beta1",'


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

        def follow(kind: Kind, decode: Callable[[bytes | Raw], V], *, optional: bool = False) -> Reflector[V]:
            def hand_over(updates: list[Update[V]]) -> None:
                deliver([Change(value, gone) for value, gone in updates])

            resource = Resource(kind=kind.value, path=_PATHS[kind], decode=decode, optional=optional)
            return Reflector(api, resource, hand_over, rng=rng, clock=clock)

        self.nodes = follow(Kind.NODE, decoder.node)
        self.pods = follow(Kind.POD, decoder.pod)
        self.label_groups = follow(Kind.LABEL_GROUP, decoder.pod_group, optional=True)
        self.native_groups = follow(Kind.NATIVE_GROUP, _native(decoder), optional=True)

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

    def problems(self) -> list[str]:
        """Why the picture cannot be decided on, one sentence per kind; empty when all is well."""
        return [text for reflector in self._all() if (text := self._problem(reflector))]

    def _problem(self, reflector: Reflector[Node] | Reflector[Pod] | Reflector[PodGroup]) -> str:
        kind, cause = reflector.resource.kind, f": {reflector.error}" if reflector.error else ""
        if not reflector.synced.is_set():
            return f"{kind} are not synced yet{cause}"
        if reflector.rejected:
            return f"{kind} cannot be applied to the cache: {reflector.rejected}"
        if reflector.age_seconds() > self._stale:
            return f"{kind} are stale, nothing heard for {reflector.age_seconds():.0f} s{cause}"
        return ""

    def _all(self) -> tuple[Reflector[Node], Reflector[Pod], Reflector[PodGroup], Reflector[PodGroup]]:
        return (self.nodes, self.pods, self.label_groups, self.native_groups)


def _native(decoder: ObjectDecoder) -> Callable[[bytes | Raw], PodGroup]:
    """Items of a built-in resource's list carry no apiVersion; the decoder tells the APIs apart by it."""

    def decode(raw: bytes | Raw) -> PodGroup:
        return decoder.pod_group(_NATIVE_VERSION + bytes(raw).lstrip()[1:])

    return decode
