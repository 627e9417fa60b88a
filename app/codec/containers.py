# SPDX-License-Identifier: Apache-2.0
"""What ails the containers of a pod: why one waits, and which devices are not reported as healthy.

Every status update of every pod passes here, and nearly all have nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.codec import wire
from app.domain.pod import DeviceHealth

HEALTHY: Final = "Healthy"
STARTING: Final = (None, "", "ContainerCreating", "PodInitializing")
"""Reasons to wait that pass by themselves."""


def ailments(status: wire.PodStatus) -> tuple[str, tuple[DeviceHealth, ...]]:
    """Why the first container that waits does so, and the devices that are not healthy."""
    stuck: str = ""
    sick: tuple[DeviceHealth, ...] = ()
    for containers in (status.init_container_statuses, status.container_statuses):
        for container in containers or ():
            waiting = container.state.waiting if container.state is not None else None
            if waiting is not None and not stuck and waiting.reason not in STARTING:
                stuck = waiting.reason or ""
            if container.allocated_resources_status is not None:
                sick += tuple(_sick(container.allocated_resources_status))
    return stuck, sick


def _sick(allocated: Iterable[wire.ResourceStatus]) -> Iterable[DeviceHealth]:
    for status in allocated:
        for one in status.resources or ():
            if one.health and one.health != HEALTHY:
                yield DeviceHealth(
                    resource=status.name or "",
                    device=one.resource_id or "",
                    health=one.health,
                    message=one.message or "",
                )
