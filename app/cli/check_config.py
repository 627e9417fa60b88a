# SPDX-License-Identifier: Apache-2.0
"""`muster check-config`: reads the file, asks every check, and writes the answer. Finds nothing by itself."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from app.cli.forms import as_json, as_yaml
from app.domain.errors import InputError
from app.explain.config import CHECKS
from app.explain.config.configuration import Configuration, Muster
from app.explain.config.source import find
from app.explain.finding import Finding, Weight
from app.extender.bind import MOST_HOLD_SECONDS
from app.settings import Settings

STDIN: Final = "-"
WORDS: Final = {Weight.BLOCKS: "BREAKS", Weight.WARNS: "WEAKENS", Weight.NOTE: "NOTE"}


class Answer(msgspec.Struct, frozen=True):
    """What is printed. `checked` tells which part of the file was read; empty if it is all of it."""

    file: str
    checked: str
    verdict: str
    exit: int
    findings: tuple[Finding, ...]

    def written(self, form: str) -> str:
        """As `text`, `json` or `yaml`."""
        if form == "json":
            return as_json(self)
        if form == "yaml":
            return as_yaml(self, width=100)
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.file} {self.verdict}"
        if self.checked:
            yield f"checked: {self.checked}"
        for finding in self.findings:
            yield ""
            yield f"{WORDS[finding.weight]} {finding.code}"
            yield f"  {finding.text}"
            yield from (f"  found: {seen.field}: {seen.value}" for seen in finding.evidence)
            for step in finding.steps:
                yield f"  write: {step.text}" if step.decision else f"  read:  {step.command}"


def expected(settings: Settings) -> Muster:
    """What the scheduler's configuration must agree with."""
    return Muster(
        scheduler=settings.scheduler_name,
        port=settings.port,
        namespace=settings.namespace,
        lease=settings.lease,
        elects=settings.active == "lease",
        hold_seconds=settings.hold_seconds,
        gang_seconds=settings.gang_seconds,
        most_hold_seconds=MOST_HOLD_SECONDS,
        nominate_from_nodes=settings.nominate_from_nodes,
    )


def check(file: Path, muster: Muster) -> Answer:
    """The answer for one file. Raises `InputError` if it cannot be read or holds no configuration."""
    config, checked = read(file, muster)
    return _judged(_name(file), checked, tuple(found for topic in CHECKS for found in topic(config)))


def read(file: Path, muster: Muster) -> tuple[Configuration, str]:
    """The configuration in a file, and which part of the file that is; empty if it is all of it.

    Raises `InputError` if it cannot be read or holds none."""
    name = _name(file)
    try:
        source = find(_text(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"cannot read {name}: {reason}") from None
    except InputError as error:
        raise InputError(f"{name} {error}") from None
    return Configuration(source.raw, muster, source.where or name, source.replicas), source.where


def _name(file: Path) -> str:
    return "stdin" if str(file) == STDIN else str(file)


def _text(file: Path) -> str:
    return sys.stdin.buffer.read().decode() if str(file) == STDIN else file.read_bytes().decode()


def _judged(name: str, checked: str, findings: tuple[Finding, ...]) -> Answer:
    count = Counter(finding.weight for finding in findings)
    breaks, weakens = count[Weight.BLOCKS], count[Weight.WARNS]
    worst_first = sorted(findings, key=lambda finding: list(WORDS).index(finding.weight))
    if breaks:
        verdict = f"breaks Muster's guarantee (BREAKS {breaks}, WEAKENS {weakens})"
    elif weakens:
        verdict = f"weakens Muster's guarantee (WEAKENS {weakens})"
    else:
        verdict = "keeps Muster's guarantee"
    return Answer(name, checked, verdict, 1 if breaks or weakens else 0, tuple(worst_first))
