# SPDX-License-Identifier: Apache-2.0
"""From facts to a report: the case is resolved, every finding is asked, and the verdict names what counts."""

from __future__ import annotations

from collections.abc import Iterator

from app.explain.case import Case
from app.explain.facts import Facts
from app.explain.finding import Finding, Read, Weight
from app.explain.judge import judge
from app.explain.reads import FINDINGS
from app.explain.report import Report, Section, Subject
from app.explain.resolve import resolve


def explain(facts: Facts, subject: Subject) -> Report:
    """Why the subject is pending, or that it is not. Raises `InputError` if it is not there."""
    case = resolve(facts, subject)
    found = {read: tuple(sorted(_found(case, read), key=_heaviest_first)) for read in Read}
    return Report(
        subject=subject,
        verdict=judge(case, (finding for findings in found.values() for finding in findings)),
        sections=tuple(Section(read.title, found[read], read.nothing) for read in Read),
        unseen=_limits(facts),
    )


def _found(case: Case, read: Read) -> Iterator[Finding]:
    for topic in FINDINGS:
        if topic.read is read:
            yield from topic(case)


def _heaviest_first(finding: Finding) -> int:
    return tuple(Weight).index(finding.weight)


def _limits(facts: Facts) -> tuple[str, ...]:
    """What was not seen, and what that means for the verdict."""
    reasons: dict[str, list[str]] = {}
    for unseen in facts.unseen:
        reasons.setdefault(unseen.why, []).append(unseen.what)
    limits = [f"not read ({why}): {', '.join(dict.fromkeys(kinds))}" for why, kinds in reasons.items()]
    if facts.namespaces is not None:
        names = ", ".join(facts.namespaces)
        limits.append(f"pods of the namespaces {names} alone were read: what is free is an upper bound")
    elif facts.blind("Pod"):
        limits.append("what is free is an upper bound")
    return tuple(limits)
