# SPDX-License-Identifier: Apache-2.0
"""A gang's PodGroup and its life cycle.

                quorum               seats                  gates lifted, filter answered
FORMING ───────────────▶ WAITING ───────────▶ PLANNED ──────────────────────▶ GATHERING
   ▲    ◀───────────────    ▲   ◀───────────────┘  plan dropped  ◀──────────────┤
   │       quorum lost      │                                                   │ min at the barrier
   │                        └──────────── all members gone                      ▼
WOUNDED ◀────────────────────────────── RUNNING ◀──────────────────────────  BINDING
           bound and alive < min                    min bound
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from app.domain.ids import GangApi, GangKey


class GangState(StrEnum):
    """The words used in events, metrics and tables."""

    FORMING = "forming"
    WAITING = "waiting"
    PLANNED = "planned"
    GATHERING = "gathering"
    BINDING = "binding"
    RUNNING = "running"
    WOUNDED = "wounded"


class PodGroup(msgspec.Struct, frozen=True, gc=False):
    """A PodGroup of either API.

    `declared` is the minimum as written (scheduling.x-k8s.io `spec.minMember`, scheduling.k8s.io
    `spec.schedulingPolicy.gang.minCount`); None when absent. `timeout_seconds` is
    `spec.scheduleTimeoutSeconds`. `created` is in Unix seconds.
    """

    key: GangKey
    uid: str
    created: int = 0
    declared: int | None = None
    timeout_seconds: int | None = None
    status: tuple[tuple[str, int], ...] = ()
    status_owner: str = ""

    @property
    def minimum(self) -> int:
        """Members that must be there at once; anything unusable counts as 1."""
        return max(1, self.declared or 1)

    @property
    def suspicious(self) -> bool:
        """Whether the minimum is absent or not positive, which deserves a warning."""
        return self.key.api is GangApi.LABEL and (self.declared is None or self.declared < 1)
