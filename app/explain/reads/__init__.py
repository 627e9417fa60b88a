# SPDX-License-Identifier: Apache-2.0
"""All findings, in the order in which a report shows them. One module for each read or part of one."""

from __future__ import annotations

from typing import Final

from app.explain.finding import Topic
from app.explain.reads import devices, health, holders, names, nodes, plugins, reserved, selectors, shortages

FINDINGS: Final[tuple[Topic, ...]] = (
    *devices.FINDINGS,
    *shortages.FINDINGS,
    *selectors.FINDINGS,
    *plugins.FINDINGS,
    *nodes.FINDINGS,
    *names.FINDINGS,
    *reserved.FINDINGS,
    *holders.FINDINGS,
    *health.FINDINGS,
)
