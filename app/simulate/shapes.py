# SPDX-License-Identifier: Apache-2.0
"""What a picture is made of, and its colours. In pixels; x to the right, y down. Draws nothing."""

from __future__ import annotations

from typing import Final

import msgspec

FREE: Final = "#dfe7ee"
POD: Final = "#8a97a3"
"""Held by a pod of no gang."""
UNHEALTHY: Final = "#2b2f33"
HATCH: Final = "#d9822b"
PAPER: Final = "#ffffff"
INK: Final = "#1c2024"
CLOSED: Final = "#d9822b"
FRAME: Final = "#c4ccd4"

TEXT: Final = 13
SMALL: Final = 10
"""Sizes of letters."""


class Rect(msgspec.Struct, frozen=True):
    """A filled area; `hatch` marks devices that are not handed out."""

    x: int
    y: int
    width: int
    height: int
    fill: str
    hatch: bool = False


class Cell(msgspec.Struct, frozen=True):
    """A node's area: its outline, and what to say about it."""

    x: int
    y: int
    width: int
    height: int
    stroke: str
    title: str


class Text(msgspec.Struct, frozen=True):
    """A line of text; `x`, `y` are its upper left corner."""

    x: int
    y: int
    text: str
    size: int = TEXT
    bold: bool = False


class Picture(msgspec.Struct, frozen=True):
    """Drawn in this order."""

    width: int
    height: int
    rects: list[Rect]
    cells: list[Cell]
    texts: list[Text]


def short(name: str, width: int) -> str:
    """As much of a name as there is room for: names differ at their ends."""
    room = max(3, width // 6)
    return name if len(name) <= room else "…" + name[1 - room :]
