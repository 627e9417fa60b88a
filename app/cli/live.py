# SPDX-License-Identifier: Apache-2.0
"""`muster top` in a terminal: the same picture, refreshed in place until Ctrl-C.

Shows as many gangs as the terminal has lines for, and the columns that it is wide enough for, whatever its
size becomes. A server that is lost is said to be lost, above the last picture, and asked again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from app.cli.age import age
from app.cli.client import Client, NoAnswerError
from app.cli.serving import stopped_by_sigterm
from app.cli.table import GAP, plain
from app.cli.top import DEVICES, GANGS, Row, device, fetch, gang, headline
from app.domain.gang import GangState
from app.domain.overview import GangLine, Overview

REDRAWS: Final = 4
"""A second: how soon a terminal of another size is filled again. The server is asked at the interval."""

FIXED_LINES: Final = 6
"""The first line, two headers, two blank lines, and the count of gangs that have no line."""

STYLES: Final = {
    GangState.WOUNDED: "bold red",
    GangState.WAITING: "yellow",
    GangState.FORMING: "bright_black",
    GangState.PLANNED: "cyan",
    GangState.GATHERING: "cyan",
    GangState.BINDING: "cyan",
    GangState.RUNNING: "green",
}
GIVE_WAY: Final = (
    "api", "priority", "nodes", "capacity", "held", "seats", "whole-nodes", "closed", "fits-2", "fits-4",
    "reserved", "ready", "age", "largest-pod", "fits-1", "allocatable", "bound", "waits",
)  # fmt: skip
"""Columns that a narrow terminal does without, the first of them first."""

LEAST_REASON: Final = 30
"""Characters of a reason for which other columns give way."""

LEFT: Final = frozenset({"resource", "namespace", "name", "api", "state", "reason"})


class Picture:
    """What is on the screen: the last answer, and since when there has been none."""

    def __init__(self, seen: Overview) -> None:
        self.seen = seen
        self.lost = ""
        self._heard = time.monotonic()

    def ask(self, client: Client) -> None:
        """Look again."""
        try:
            self.seen, self.lost, self._heard = fetch(client), "", time.monotonic()
        except NoAnswerError as error:
            self.lost = str(error)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines for the terminal as it is now."""
        yield self._head()
        yield Text()
        width = options.max_width
        yield _table(DEVICES, list(map(device, self.seen.devices)), width)
        yield Text()
        left = (options.height or console.height) - len(self.seen.devices) - FIXED_LINES
        gangs = self.seen.gangs[: max(0, left)]
        styles = [STYLES[line.state] for line in gangs]
        yield _table(
            GANGS, [(*gang(line, self.seen.at)[:-1], _reason(line)) for line in gangs], width, styles
        )
        more = self.seen.left_out + len(self.seen.gangs) - len(gangs)
        yield _line(f"{more} more gangs" if more else "", "dim")

    def _head(self) -> Text:
        if not self.lost:
            return _line(headline(self.seen), "bold")
        silent = age(time.monotonic() - self._heard)
        return _line(f"lost for {silent}, trying again: {self.lost}", "bold red")


def live(client: Client, *, interval: float) -> None:
    """Until Ctrl-C. `interval` is in seconds. Raises `NoAnswerError` if there is no answer at the start."""
    try:
        picture = Picture(fetch(client))
        with stopped_by_sigterm(), Live(picture, screen=True, refresh_per_second=REDRAWS):
            while True:
                time.sleep(interval)
                picture.ask(client)
    except KeyboardInterrupt:
        return


def _reason(line: GangLine) -> str:
    """Without the gang's name, which stands in the same line."""
    return line.text.removeprefix(f"gang {line.namespace}/{line.name} ")


def _table(headers: Sequence[str], rows: Sequence[Row], width: int, styles: Sequence[str] = ()) -> Table:
    """The columns of the plain table; what is still too long for the terminal is cut, the reason first."""
    kept = fitting(headers, [[plain(cell) for cell in row] for row in rows], width)
    shown = Table(box=None, padding=(0, len(GAP), 0, 0), pad_edge=False, header_style="bold")
    for name in (headers[place] for place in kept):
        last = name == headers[-1]
        shown.add_column(name.upper(), justify="left" if name in LEFT else "right", no_wrap=not last)
    for number, row in enumerate(rows):
        style = styles[number] if styles else ""
        cells = (row[place] for place in kept)
        shown.add_row(*(_line(plain(cell), style if cell in STYLES else "") for cell in cells))
    return shown


def fitting(headers: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[int]:
    """Places of the columns that so many characters have room for, and of those that never give way."""
    widths = {name: max(map(len, column)) for name, *column in zip(headers, headers, *rows, strict=True)}
    if "reason" in widths:
        widths["reason"] = min(widths["reason"], LEAST_REASON)
    for name in GIVE_WAY:
        if sum(widths.values()) + len(GAP) * (len(widths) - 1) <= width:
            break
        widths.pop(name, None)
    return [place for place, name in enumerate(headers) if name in widths]


def _line(text: str, style: str) -> Text:
    """One line however long it is; no markup of anybody's."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
