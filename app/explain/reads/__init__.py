# SPDX-License-Identifier: Apache-2.0
"""All findings, in the order in which a report shows them. One module for each read or part of one."""

from __future__ import annotations

from typing import Final

from app.explain.case import Case
from app.explain.finding import Topic
from app.explain.reads import (
    admission,
    ahead,
    claims,
    claims_allocated,
    claims_asked,
    claims_devices,
    claims_holders,
    claims_pinned,
    claims_pools,
    config,
    devices,
    enabled,
    group,
    health,
    holders,
    jobs,
    members,
    names,
    nodes,
    packing,
    plugins,
    pods,
    scheduler,
    selectors,
    shortages,
)

FINDINGS: Final[tuple[Topic[Case], ...]] = (
    *devices.FINDINGS,
    *shortages.FINDINGS,
    *selectors.FINDINGS,
    *plugins.FINDINGS,
    *nodes.FINDINGS,
    *names.FINDINGS,
    *holders.FINDINGS,
    *health.FINDINGS,
    *jobs.FINDINGS,
    *admission.FINDINGS,
    *group.FINDINGS,
    *members.FINDINGS,
    *scheduler.FINDINGS,
    *enabled.FINDINGS,
    *packing.FINDINGS,
    *ahead.FINDINGS,
    *pods.FINDINGS,
    *config.FINDINGS,
    *claims.FINDINGS,
    *claims_asked.FINDINGS,
    *claims_pinned.FINDINGS,
    *claims_allocated.FINDINGS,
    *claims_devices.FINDINGS,
    *claims_pools.FINDINGS,
    *claims_holders.FINDINGS,
)
