# SPDX-License-Identifier: Apache-2.0
"""What the rounds remember of a gang from one to the next. Losing it costs time, never correctness."""

from __future__ import annotations

import msgspec

from app.domain.plan import Demand
from app.domain.reasons import Reason, Refusal
from app.extender.claims import Claim
from app.extender.timing import Timing

DIAGNOSIS_SECONDS = 3.0
"""How long the sentence that names a blocker stands before it is asked for again."""


class Standing(msgspec.Struct):
    """`source` is the verdict on the gang's line that `refusal` was made from, if it was.

    `exact` tells that the refusal needs no diagnosis; `found` is the planner's own refusal behind one that
    was diagnosed at `diagnosed_at`. `group` is the UID of the PodGroup all this is about.
    """

    group: str = ""
    refusal: Refusal | None = None
    found: Refusal | None = None
    claim: Claim | None = None
    demand: Demand | None = None
    source: Refusal | None = None
    exact: bool = False
    diagnosed_at: float = 0.0
    failures: int = 0
    misses: int = 0
    retry_at: float = 0.0
    progress_at: float = 0.0
    called: bool = False

    def blocked(self, refusal: Refusal) -> None:
        """Cannot be planned, whatever is free."""
        self.refusal, self.exact, self.demand, self.source = refusal, True, None, None

    def refused(self, verdict: Refusal, demand: Demand) -> None:
        """The planner found no seats for what the gang asks for."""
        self.refusal = self.found = msgspec.structs.replace(verdict, gang=demand.gang)
        self.demand, self.source, self.exact = demand, verdict, False

    def seated(self, now: float) -> None:
        """Seats were reserved."""
        self.refusal, self.source, self.progress_at = None, None, now

    def pauses(self, now: float) -> bool:
        """Whether a plan came to nothing a moment ago, and the refusal does not say so itself."""
        return self.retry_at > now and (self.refusal is None or self.refusal.reason is not Reason.BACKOFF)

    def diagnosis_due(self, now: float) -> bool:
        """Whether the refusal should be made exact (again): what blocks a gang changes while it waits."""
        if self.refusal is None or self.demand is None:
            return False
        return not (self.exact and now - self.diagnosed_at < DIAGNOSIS_SECONDS)

    def diagnosed(self, refusal: Refusal, now: float) -> None:
        """The blocker is named."""
        self.refusal, self.exact, self.diagnosed_at = refusal, True, now

    def failed(self, now: float, timing: Timing) -> None:
        """A plan came to nothing: pause, longer each time in a row."""
        self.failures += 1
        pause = timing.backoff_seconds * 2.0 ** min(self.failures - 1, 10)
        self.retry_at = now + min(pause, timing.backoff_most_seconds)
