# SPDX-License-Identifier: Apache-2.0
"""A report as lines for a terminal: the verdict, the reads with what was found, and what was not seen.

    job team-a/train waits: gang team-a/train has seats for 1 of 2 members: 4 of 16 nvidia.com/gpu free

    Devices on nodes:
      warns   2 nvidia.com/gpu of 1 nodes are not allocatable [AllocatableBelowCapacity]
                node/n2   .status.allocatable['nvidia.com/gpu']   6, capacity 8
                read:   kubectl get node n2
                decide: drain and repair the node
    Device health: no pod in question reports an unhealthy device

Decides what a terminal has room for and nothing else. The verdict is the first line and one line, and a
command is never broken or cut: it is to be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Final

from app.explain.finding import Evidence, Finding, Step, Weight
from app.explain.report import Report, Section

COLUMNS: Final = 100
MOST_EVIDENCE: Final = {Weight.BLOCKS: 5, Weight.WARNS: 3, Weight.NOTE: 2, Weight.FINE: 1}
"""Lines of evidence under one finding, unless all are wanted: the more it weighs, the more a reader needs."""

MOST_UNSEEN: Final = 2
"""Lines about one reason why something was not seen, likewise."""

MOST_FOLDED: Final = 3
"""Lines of one value, likewise."""

GAP: Final = "   "
_INDENT: Final = "  "
_WORD: Final = max(map(len, Weight)) + 2
_UNDER: Final = " " * (len(_INDENT) + _WORD)
_HEADERS: Final = Evidence("OBJECT", "FIELD", "VALUE")


def text(report: Report, *, wide: bool = False, headers: bool = True) -> str:
    """The lines. `wide` shows all evidence uncut, under headers if those are wanted, and what is in order."""
    return "\n".join(_lines(report, _Style(wide, headers)))


class _Style:
    """How much is shown, and which next steps were: each is told once, however many findings ask for it."""

    def __init__(self, wide: bool, headers: bool) -> None:
        self.wide = wide
        self.headers = wide and headers
        self._told: set[Step] = set()

    def shown(self, findings: Iterable[Finding]) -> list[Finding]:
        return [one for one in findings if self.wide or one.weight is not Weight.FINE]

    def untold(self, finding: Finding) -> list[Step]:
        """Of a note only what to read: context alone asks nobody for a decision."""
        light = not self.wide and finding.weight not in (Weight.BLOCKS, Weight.WARNS)
        steps = [step for step in finding.steps if not step.decision][:1] if light else finding.steps
        fresh = [step for step in dict.fromkeys(steps) if step not in self._told]
        self._told.update(fresh)
        return fresh


def _lines(report: Report, style: _Style) -> Iterator[str]:
    yield _flat(report.verdict.sentence)
    yield ""
    for section in report.sections:
        yield from _section(section, style)
    if report.unseen:
        yield "Not seen:"
        for limit in report.unseen:
            yield from _wrapped(limit, _INDENT, _INDENT * 2, most=None if style.wide else MOST_UNSEEN)


def _section(section: Section, style: _Style) -> Iterator[str]:
    findings = style.shown(section.findings)
    if not findings:
        yield from _wrapped(f"{section.title}: {section.nothing}", "", _INDENT)
        return
    yield f"{section.title}:"
    for finding in findings:
        yield from _finding(finding, style)


def _finding(finding: Finding, style: _Style) -> Iterator[str]:
    head = _INDENT + str(finding.weight).ljust(_WORD)
    yield from _wrapped(f"{finding.text} [{finding.code}]", head, _UNDER)
    yield from (f"{_UNDER}{_INDENT}{line}" for line in _evidence(finding, style))
    for step in style.untold(finding):
        yield from _step(step)


def _evidence(finding: Finding, style: _Style) -> Iterator[str]:
    """Aligned columns; a line without an object is a remark that stands alone."""
    evidence = finding.evidence
    rows = [one for one in evidence if one.object]
    shown = rows if style.wide else rows[: MOST_EVIDENCE[finding.weight]]
    table = [_HEADERS, *shown] if style.headers and shown else shown
    widths = [max(map(len, column)) for column in zip(*map(_cells, table), strict=True)]
    most = None if style.wide else COLUMNS - len(_UNDER) - len(_INDENT)
    for one in table:
        line = GAP.join(cell.ljust(width) for cell, width in zip(_cells(one), widths, strict=True)).rstrip()
        yield from (line,) if most is None or len(line) <= most else _folded(_cells(one), most)
    if len(shown) < len(rows):
        uncounted = len(rows) < len(evidence)  # the finding itself has left some out
        yield "and more: -o wide" if uncounted else f"and {len(rows) - len(shown)} more: -o wide"
    elif len(rows) < len(evidence):
        yield from (one.value for one in evidence if not one.object)


def _folded(cells: tuple[str, str, str], most: int) -> list[str]:
    """What is too long for a line: the value, which is what matters, on lines of its own."""
    plain = GAP.join(filter(None, cells))
    if len(plain) <= most:
        return [plain]  # too long only because of its neighbours
    where, value = GAP.join(filter(None, cells[:2])), cells[2]
    below = wrap(value, most - len(GAP), max_lines=MOST_FOLDED, placeholder="…")
    return [where if len(where) <= most else f"{where[: most - 1]}…", *(f"{GAP}{line}" for line in below)]


def _cells(one: Evidence) -> tuple[str, str, str]:
    """Each as one line: what objects carry may hold line breaks."""
    return _flat(one.object), _flat(one.field), _flat(one.value)


def _step(step: Step) -> Iterator[str]:
    if step.decision:
        yield from _wrapped(step.text, f"{_UNDER}{_INDENT}decide: ", f"{_UNDER}{_INDENT}        ")
    else:
        yield f"{_UNDER}{_INDENT}read:   {step.command}"


def _wrapped(sentence: str, first: str, rest: str, *, most: int | None = None) -> list[str]:
    return wrap(
        _flat(sentence), COLUMNS, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False, max_lines=most, placeholder=" …: -o wide",
    )  # fmt: skip


def _flat(value: str) -> str:
    """Without line breaks and other control characters, whoever wrote them."""
    return " ".join("".join(char if char.isprintable() else " " for char in value).split())
