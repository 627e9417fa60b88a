# SPDX-License-Identifier: Apache-2.0
"""Tables as kubectl prints them: upper-case headers, three spaces between columns, no borders, no colour.

Decides widths and nothing else; never wraps, sorts or cuts what it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

GAP: Final = "   "
NONE: Final = "<none>"
"""What stands for an absent value, as in kubectl."""


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lines without trailing blanks, joined by newlines; the header alone when there are no rows."""
    cells = [[header.upper() for header in headers], *([plain(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(_line(row, widths) for row in cells)


def _line(row: list[str], widths: list[int]) -> str:
    return GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def plain(value: object) -> str:
    """A cell as one line of text: blanks and control characters in a row would break the columns."""
    if value is None or value == "":
        return NONE
    return " ".join("".join(char if char.isprintable() else " " for char in str(value)).split()) or NONE
