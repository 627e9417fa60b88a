# SPDX-License-Identifier: Apache-2.0
"""The words of a picture: headlines above, the legend below, and which gang has which colour."""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Iterator
from typing import Final

from app.simulate.frame import Frame, Total
from app.simulate.shapes import FREE, POD, SMALL, TEXT, UNHEALTHY, Rect, Text, short

MARGIN: Final = 24
LINE: Final = 20
"""Height of a line of text."""
MOST_TOTALS: Final = 4
MOST_LEGEND: Final = 14
LEGEND_WIDTH: Final = 300


def heading(title: str, frame: Frame, x: int) -> Iterator[Text]:
    """What stands above a panel."""
    yield Text(x, MARGIN, title, TEXT + 3, bold=True)
    shown = frame.totals[:MOST_TOTALS]
    for number, total in enumerate(shown, start=1):
        yield Text(x, MARGIN + 4 + number * LINE, _headline(total))
    if not shown:
        yield Text(x, MARGIN + 4 + LINE, "No node has devices.")


def _headline(total: Total) -> str:
    return (
        f"{total.name}: {total.free} of {total.allocatable} free · {total.whole} whole nodes · "
        f"largest gang of {total.size}-device members: {total.members}"
    )


def colours_of(before: Frame, after: Frame) -> dict[str, str]:
    """A colour for each gang: those with most devices in the end get the most distant hues."""
    held: Counter[str] = Counter()
    for frame in (before, after):
        for gang, amount in _gangs(frame).items():
            held[gang] = max(held[gang], amount)
    ranked = sorted(held, key=lambda gang: (-held[gang], gang))
    return {gang: _colour(rank) for rank, gang in enumerate(ranked)}


def _gangs(frame: Frame) -> Counter[str]:
    """Devices that each gang holds."""
    held: Counter[str] = Counter()
    for node in frame.nodes:
        for one in node.devices:
            held.update({h.holder: h.amount for h in one.held if h.gang})
    return held


def _colour(rank: int) -> str:
    """Hues a golden angle apart, in three shades."""
    hue = (0.58 + rank * 0.618034) % 1.0
    lightness, saturation = ((0.45, 0.70), (0.62, 0.60), (0.32, 0.60))[rank // 7 % 3]
    return "#" + "".join(
        f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue, lightness, saturation)
    )


def draw_legend(
    frame: Frame, colours: dict[str, str], y: int, width: int, rects: list[Rect], texts: list[Text]
) -> int:
    """The height of the picture."""
    held = _gangs(frame)
    ranked = sorted(held, key=lambda gang: (-held[gang], gang))
    entries = [("free", FREE, False), ("pod of no gang", POD, False), ("not handed out", UNHEALTHY, True)]
    entries += [(f"{gang} ({held[gang]})", colours[gang], False) for gang in ranked[:MOST_LEGEND]]
    columns = max(1, (width - 2 * MARGIN) // LEGEND_WIDTH)
    for number, (text, fill, hatch) in enumerate(entries):
        x, line = MARGIN + number % columns * LEGEND_WIDTH, y + number // columns * LINE
        rects.append(Rect(x, line + 2, 12, 12, fill, hatch))
        texts.append(Text(x + 18, line, short(text, LEGEND_WIDTH - 60)))
    y += -(-len(entries) // columns) * LINE
    texts.append(Text(MARGIN, y + 6, "; ".join(_footnotes(frame, len(ranked) - MOST_LEGEND)), SMALL + 1))
    return y + LINE + MARGIN


def _footnotes(frame: Frame, more: int) -> Iterator[str]:
    yield "a cell is a node and a square a device"
    if any(node.closed for node in frame.nodes):
        yield "an orange outline is a node that is cordoned or not ready"
    if more > 0:
        yield f"{more} more gangs are not named here"
    if frame.without:
        yield f"{frame.without} nodes without devices are not shown"
