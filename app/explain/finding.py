# SPDX-License-Identifier: Apache-2.0
"""What a finding is: a constant sentence with data, the evidence under it, and what to read or decide next.

A finding is a function of what is looked at (a `Case`, a scheduler's configuration) that yields a `Hit` for
each time it holds. Its texts stand beside it, in one place: the sentence that a report shows, and what the
page about it says. Decides nothing about a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from typing import Final, Generic, TypeVar

import msgspec

About = TypeVar("About")
"""What a finding looks at: a `Case`, or a `Configuration`."""


class Weight(StrEnum):
    """What a finding means for the pod, the gang or the job in question, or for Muster's guarantee."""

    BLOCKS = "blocks"
    """As long as this holds, it cannot start. Of a configuration: gangs may start in part, or not at all."""
    WARNS = "warns"
    """Takes something away, or is about to; need not be what blocks."""
    NOTE = "note"
    """Context that a reader of the verdict wants to have."""
    FINE = "fine"
    """Was looked at and is in order."""


class Read(Enum):
    """The reads, in the order of a report. (title, what is said when nothing was found)"""

    DEVICES = ("Devices on nodes", "capacity, allocatable, taints and holders show nothing unusual")
    HEALTH = ("Device health", "no pod in question reports an unhealthy device")
    GROUP = ("Gang and scheduler", "group, members, gates, quota and scheduler fit together")
    CLAIMS = ("Resource claims (DRA)", "no resource claims are involved")

    def __init__(self, title: str, nothing: str) -> None:
        self.title = title
        self.nothing = nothing


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One value that was read: `object` as kubectl names it (`node/n1`, `pod/team-a/w0`), `field` a path."""

    object: str
    field: str
    value: str


class Step(msgspec.Struct, frozen=True, gc=False):
    """What to do next. `command` reads and changes nothing; a `decision` is the owner's and has none."""

    text: str
    command: str = ""
    decision: bool = False


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing that was found. `code` names its page."""

    code: str
    weight: Weight
    text: str
    evidence: tuple[Evidence, ...] = ()
    steps: tuple[Step, ...] = ()


class Hit(msgspec.Struct, frozen=True):
    """A finding holds: the values for its sentence, and where they were read. `weight` if not its usual."""

    data: dict[str, object]
    evidence: tuple[Evidence, ...]
    weight: Weight | None = None


def hit(*evidence: Evidence, weight: Weight | None = None, **data: object) -> Hit:
    """`hit(Evidence(...), node="n1")` reads better than the class."""
    return Hit(data=data, evidence=evidence, weight=weight)


Look = Callable[[About], Iterable[Hit]]

MOST_EVIDENCE: Final = 100
"""Of one finding; the rest is counted in a last line. A text shows fewer."""


class Topic(msgspec.Struct, Generic[About], frozen=True):
    """A kind of finding: what is said of it, and the function that looks for it.

    `sentence`, `confirm` and `decide` are templates, filled from the hit. `confirm` are commands that change
    nothing, `decide` what only the owner can decide. `meaning` is for the page.
    """

    code: str
    read: Read
    weight: Weight
    sentence: str
    meaning: str
    confirm: tuple[str, ...]
    decide: tuple[str, ...]
    look: Look[About]

    def __call__(self, about: About) -> list[Finding]:
        """What there is to find of this kind."""
        return [self._finding(found) for found in self.look(about)]

    def _finding(self, found: Hit) -> Finding:
        evidence, more = found.evidence[:MOST_EVIDENCE], len(found.evidence) - MOST_EVIDENCE
        if more > 0:
            evidence += (Evidence(object="", field="", value=f"and {more} more"),)
        confirm = (Step(text="read", command=text.format(**found.data)) for text in self.confirm)
        decide = (Step(text=text.format(**found.data), decision=True) for text in self.decide)
        return Finding(
            code=self.code,
            weight=found.weight or self.weight,
            text=self.sentence.format(**found.data),
            evidence=evidence,
            steps=(*confirm, *decide),
        )


def finding(
    code: str,
    *,
    read: Read,
    sentence: str,
    meaning: str,
    weight: Weight = Weight.WARNS,
    confirm: Iterable[str] = (),
    decide: Iterable[str] = (),
) -> Callable[[Look[About]], Topic[About]]:
    """Make a topic of the function below."""

    def make(look: Look[About]) -> Topic[About]:
        return Topic(code, read, weight, sentence, meaning, tuple(confirm), tuple(decide), look)

    return make
