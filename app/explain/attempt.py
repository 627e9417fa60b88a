# SPDX-License-Identifier: Apache-2.0
"""What a scheduler wrote of its last attempt at a pod: the condition PodScheduled, taken apart.

Decides nothing.
"""

from __future__ import annotations

import msgspec

from app.codec.objects import seconds
from app.domain.pod import Pod


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """`reason` and `message` as the API has them, on one line; `at` in Unix seconds, 0 unknown."""

    reason: str = ""
    message: str = ""
    at: int = 0


def last_attempt(pod: Pod) -> Attempt:
    """Empty for a pod of which nothing was written."""
    reason, _, rest = pod.outcome.partition("|")
    message, at, _ = (*rest.rsplit("|", 2), "", "")[:3]
    return Attempt(reason, " ".join(message.split()), seconds(at))
