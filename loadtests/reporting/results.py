# SPDX-License-Identifier: Apache-2.0
"""A folder of results, read whole: which scenarios, sizes, contenders and runs it holds.

Judges nothing. Where a run was repeated under the same number, the last record counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import msgspec

from app.domain.errors import InputError
from loadtests.record import RECORDS, Machine, Record, read

CONTENDERS = ("plain", "native", "native-1s", "muster", "muster-ungated", "simulation")
"""In this order wherever they are shown together; others follow by name."""


class Case(msgspec.Struct, frozen=True, order=True):
    """One scenario at one size."""

    scenario: str
    nodes: int

    def __str__(self) -> str:
        return f"{self.scenario}, {self.nodes:,} node{'s' * (self.nodes != 1)}"


class Results:
    """Records by case, contender and run."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._runs: dict[tuple[Case, str], dict[int, Record]] = {}
        for record in records:
            key = Case(record.scenario, record.nodes), record.contender
            self._runs.setdefault(key, {})[record.run] = record

    @classmethod
    def of(cls, folder: Path) -> Self:
        """What is in a folder. Raises `InputError` naming the file, and the line if there is one."""
        file, records = folder / RECORDS, []
        try:
            for record in read(folder):
                records.append(record)  # noqa: PERF402 - the count tells which line is broken
        except OSError as error:
            raise InputError(f"cannot read {file}: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"is no record: {error}", field=f"{file}: line {len(records) + 1}") from None
        if not records:
            raise InputError(f"{file} holds no records")
        return cls(records)

    def __iter__(self) -> Iterator[Record]:
        for runs in self._runs.values():
            yield from runs.values()

    def cases(self) -> list[Case]:
        """All cases, by name and size."""
        return sorted({case for case, _ in self._runs})

    def contenders(self, case: Case) -> list[str]:
        """Who took part in a case, in their usual order."""
        return sorted({who for known, who in self._runs if known == case}, key=rank)

    def runs(self, case: Case, contender: str) -> dict[int, Record]:
        """The records of one contender in one case, by run; empty when there are none."""
        return self._runs.get((case, contender), {})

    def machines(self) -> list[Machine]:
        """Where the runs took place; more than one machine makes ratios between them doubtful."""
        return list({record.machine: None for record in self})

    def commits(self) -> list[str]:
        """What was measured."""
        return sorted({record.commit for record in self})


def rank(contender: str) -> tuple[int, str]:
    """Sorts contenders into their usual order."""
    known = CONTENDERS.index(contender) if contender in CONTENDERS else len(CONTENDERS)
    return known, contender
