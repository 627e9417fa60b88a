# SPDX-License-Identifier: Apache-2.0
"""All findings, in the order in which a report shows them. One module for each read or part of one."""

from __future__ import annotations

from typing import Final

from app.explain.case import Case
from app.explain.finding import Topic
from app.explain.reads import config, devices

FINDINGS: Final[tuple[Topic[Case], ...]] = (*devices.FINDINGS, *config.FINDINGS)
