# SPDX-License-Identifier: Apache-2.0
"""All findings, in the order in which a report shows them. One module for each read or part of one."""

from __future__ import annotations

from typing import Final

from app.explain.finding import Topic
from app.explain.reads import (
    claims,
    claims_allocated,
    claims_asked,
    claims_devices,
    claims_holders,
    claims_pinned,
    claims_pools,
    devices,
)

FINDINGS: Final[tuple[Topic, ...]] = (
    *devices.FINDINGS,
    *claims.FINDINGS,
    *claims_asked.FINDINGS,
    *claims_pinned.FINDINGS,
    *claims_allocated.FINDINGS,
    *claims_devices.FINDINGS,
    *claims_pools.FINDINGS,
    *claims_holders.FINDINGS,
)
