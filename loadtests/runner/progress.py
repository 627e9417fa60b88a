# SPDX-License-Identifier: Apache-2.0
"""Progress of a set of runs on stderr: bars on a terminal, plain lines elsewhere. Never writes to stdout."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Final, Protocol, Self

LINE_SECONDS: Final = 10.0


class Progress(Protocol):
    """What the runner tells."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, number: int, total: int, name: str) -> None:
        """A run begins."""

    def step(self, what: str, done: int, total: int) -> None:
        """How far the present run is."""

    def line(self, text: str) -> None:
        """Something that stays to be read."""


class Lines:
    """For pipes and log files: a line per run, and one every few seconds in a long one."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def run(self, number: int, total: int, name: str) -> None:
        """See Progress."""
        self.line(f"[{number}/{total}] {name}")

    def step(self, what: str, done: int, total: int) -> None:
        """See Progress."""
        if time.monotonic() - self._said >= LINE_SECONDS:
            self.line(f"  {what}: {done} of {total}" if total else f"  {what}")

    def line(self, text: str) -> None:
        """See Progress."""
        self._said = time.monotonic()
        print(text, file=sys.stderr, flush=True)


class Bars:
    """For terminals: one bar of the runs, one of the present run."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - of the load tests' environment, not of the tests'
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (
            TextColumn("{task.description:<60}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._runs = self._bars.add_task("runs", total=None)
        self._steps = self._bars.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._bars.stop()

    def run(self, number: int, total: int, name: str) -> None:
        """See Progress."""
        self._bars.update(self._runs, completed=number - 1, total=total, description=name)
        self._bars.reset(self._steps, description="", total=None)

    def step(self, what: str, done: int, total: int) -> None:
        """See Progress."""
        self._bars.update(self._steps, completed=done, total=total or None, description=f"  {what}")

    def line(self, text: str) -> None:
        """See Progress."""
        self._bars.console.print(text, markup=False, highlight=False)


def progress() -> Progress:
    """The one that fits where stderr goes."""
    return Bars() if sys.stderr.isatty() else Lines()
