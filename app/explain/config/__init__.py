# SPDX-License-Identifier: Apache-2.0
"""Pure: from a KubeSchedulerConfiguration to what in it breaks or weakens Muster's guarantee.

`CHECKS` are all findings, in the order in which they are told: what kube-scheduler would not start with, then
the way to Muster, then what is lost on it.
"""

from __future__ import annotations

from typing import Final

from app.explain.config import address, election, profiles, refused, stanzas, throughput, timeouts
from app.explain.config.configuration import Configuration
from app.explain.finding import Topic

CHECKS: Final[tuple[Topic[Configuration], ...]] = (
    *refused.FINDINGS,
    *stanzas.FINDINGS,
    *address.FINDINGS,
    *timeouts.FINDINGS,
    *election.FINDINGS,
    *profiles.FINDINGS,
    *throughput.FINDINGS,
)
