# SPDX-License-Identifier: Apache-2.0
"""What the findings on claims share: who, which of many, and whether the rest can do without them."""

from __future__ import annotations

from collections.abc import Iterable

from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.dra.claims import Asked
from app.explain.finding import Weight


def who(given: Iterable[Pod]) -> str:
    """`pod w0`, `pod w0 and w1`, `pod w0 and 3 others`."""
    pods = list(given)
    others = f" and {len(pods) - 1} others" if len(pods) > 2 else f" and {pods[-1].name}" * (len(pods) - 1)
    return f"pod {pods[0].name}{others}"


def weight_of(case: Case, pods: Iterable[Pod]) -> Weight | None:
    """What keeps these pods from starting need not block the rest; None for the usual weight."""
    return Weight.WARNS if case.spares(pods) else None


def pods_of(group: Iterable[Asked]) -> list[Pod]:
    """Their pods, each once."""
    return list({asked.pod.uid: asked.pod for asked in group}.values())
