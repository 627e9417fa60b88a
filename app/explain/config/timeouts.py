# SPDX-License-Identifier: Apache-2.0
"""How long kube-scheduler waits for an answer: longer than any hold for bind, short for all else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.explain.config.configuration import Configuration
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit

SHORTEST_SECONDS: Final = 1.0
LONGEST_SECONDS: Final = 30.0
DEFAULT: Final = "kube-scheduler's default is 5s"


@finding(
    "HoldTooLong",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence=(
        "{where} waits {timeout:g} s for a bind call, and Muster may hold it for {held:g} s ({why}):"
        " kube-scheduler gives up first, and the gang falls apart"
    ),
    meaning=(
        "Muster holds the bind calls of a gang until all members are there, and ends a hold itself: after"
        " a time without a further member (hold_seconds), or at the deadline of the gang (gang_seconds, or"
        " the PodGroup's scheduleTimeoutSeconds, which is cut to 570 s). The httpTimeout of the stanza"
        " must be longer than all of these. When kube-scheduler gives up first, that member is queued"
        " again while the others wait for it. Without httpTimeout it is 5 s."
    ),
    decide=("httpTimeout: 10m, in a stanza of its own for bindVerb",),
)
def hold_too_long(config: Configuration) -> Iterable[Hit]:
    """Stanzas with bind whose timeout is not above each hold; told by the shortest of them."""
    muster = config.muster
    holds = (
        (min(muster.hold_seconds, muster.gang_seconds), "hold_seconds", Weight.BLOCKS),
        (muster.gang_seconds, "gang_seconds", Weight.WARNS),
        (muster.most_hold_seconds, "the longest scheduleTimeoutSeconds of a PodGroup", Weight.WARNS),
    )
    for stanza in config.calling("bind"):
        timeout = stanza.timeout_seconds
        for held, why, weight in holds:
            if timeout <= held:
                seen = config.cite(stanza.saw("httpTimeout", default=DEFAULT))
                yield hit(seen, weight=weight, where=stanza.where, timeout=timeout, held=held, why=why)
                break


@finding(
    "TimeoutTooShort",
    read=Read.GROUP,
    sentence="{where} gives Muster {timeout:g} s to answer: a pause of that length fails scheduling attempts",
    meaning=(
        "Muster answers in milliseconds, but it may be throttled, be starting, or have just been given a"
        " large plan to make. Each call that kube-scheduler gives up is a failed attempt of a pod."
    ),
    decide=("httpTimeout: 5s",),
)
def timeout_too_short(config: Configuration) -> Iterable[Hit]:
    """Each stanza with filter or preempt and less than a second."""
    for stanza in config.calling("filter", "prioritize", "preempt"):
        if stanza.timeout_seconds < SHORTEST_SECONDS:
            seen = config.cite(stanza.saw("httpTimeout"))
            yield hit(seen, where=stanza.where, timeout=stanza.timeout_seconds)


@finding(
    "TimeoutTooLong",
    read=Read.GROUP,
    sentence=(
        "{where} waits {timeout:g} s for a filter call: one that hangs stops all scheduling for that long"
    ),
    meaning=(
        "kube-scheduler places one pod at a time, and waits for filter, prioritize and preempt while it"
        " does. Only a bind call may be held for minutes, which is why bind has a stanza of its own."
    ),
    decide=("httpTimeout: 5s here, and bindVerb in a second stanza with httpTimeout: 10m",),
)
def timeout_too_long(config: Configuration) -> Iterable[Hit]:
    """Each stanza with filter or preempt that may hang for long."""
    for stanza in config.calling("filter", "prioritize", "preempt"):
        if stanza.timeout_seconds > LONGEST_SECONDS:
            seen = config.cite(stanza.saw("httpTimeout"))
            yield hit(seen, where=stanza.where, timeout=stanza.timeout_seconds)


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (hold_too_long, timeout_too_short, timeout_too_long)
