# SPDX-License-Identifier: Apache-2.0
"""Where everything is in the picture of a cluster before and after: the single source of both writers.

A node is a cell of squares, one a device, in lines of four (or eight), each resource on a line of its own;
squares have the colour of the gang that holds them. Decides positions, colours and words, in pixels; draws
nothing. Equal frames give equal pictures.
"""

from __future__ import annotations

import colorsys
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from app.simulate.frame import Devices, Frame, NodeFrame, Total

FREE: Final = "#dfe7ee"
POD: Final = "#8a97a3"
"""Held by a pod of no gang."""
UNHEALTHY: Final = "#2b2f33"
HATCH: Final = "#d9822b"
PAPER: Final = "#ffffff"
INK: Final = "#1c2024"
CLOSED: Final = "#d9822b"
FRAME: Final = "#c4ccd4"

MARGIN: Final = 24
LINE: Final = 20
"""Height of a line of text."""
TEXT: Final = 13
SMALL: Final = 10
"""Sizes of letters."""
MOST_TOTALS: Final = 4
MOST_LEGEND: Final = 14
LEGEND_WIDTH: Final = 300
NAMED_FROM: Final = 16
"""From this size of a square on there is room for the names of nodes."""
SIZES: Final = ((620, (22, 18, 14, 11, 9, 7)), (1100, (6, 5, 4, 3)))
"""(width of a panel, sizes of squares to try in it); the largest that makes no panel higher than wide is
taken, else the last."""


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


class _Grid(msgspec.Struct, frozen=True):
    """How nodes are laid out in a panel: the same before and after."""

    width: int
    square: int
    across: int

    @property
    def pitch(self) -> int:
        return self.across * self.square + max(3, self.square // 2)

    @property
    def columns(self) -> int:
        return max(1, self.width // self.pitch)

    @property
    def label(self) -> int:
        return SMALL + 4 if self.square >= NAMED_FROM else 0

    def lines(self, node: NodeFrame) -> int:
        return sum(-(-max(one.capacity, one.allocatable) // self.across) for one in node.devices) or 1

    def rows(self, nodes: list[NodeFrame]) -> Iterator[tuple[int, list[NodeFrame]]]:
        """(y, nodes of the row), then (height of all, nothing)."""
        y = 0
        for start in range(0, len(nodes), self.columns):
            row = nodes[start : start + self.columns]
            yield y, row
            y += max(map(self.lines, row)) * self.square + self.label + max(3, self.square // 2)
        yield y, []

    def height(self, nodes: list[NodeFrame]) -> int:
        return list(self.rows(nodes))[-1][0]


def picture(before: Frame, after: Frame) -> Picture:
    """Both moments side by side, with a legend below."""
    grid = _grid_for(before)
    colours = _colours(before, after)
    top = MARGIN + LINE * (2 + max(1, min(MOST_TOTALS, len(before.totals))))
    rects: list[Rect] = []
    cells: list[Cell] = []
    texts: list[Text] = []
    for number, (title, frame) in enumerate((("Before", before), ("After", after))):
        x = MARGIN + number * (grid.width + 2 * MARGIN)
        texts += _heading(title, frame, x)
        _draw_nodes(frame, grid, (x, top), colours, into=(rects, cells, texts))
    width = 2 * grid.width + 4 * MARGIN
    y = top + grid.height(_sorted(before)) + LINE
    height = _draw_legend(after, colours, y, width, rects, texts)
    return Picture(width=width, height=height, rects=rects, cells=cells, texts=texts)


def _sorted(frame: Frame) -> list[NodeFrame]:
    """Nodes of a kind side by side: those with most devices first, else as they come."""
    return sorted(
        frame.nodes, key=lambda n: (-sum(d.capacity for d in n.devices), [d.name for d in n.devices])
    )


def _grid_for(frame: Frame) -> _Grid:
    most = max((max(d.capacity, d.allocatable) for n in frame.nodes for d in n.devices), default=1)
    across, nodes = 4 if most <= 8 else 8, _sorted(frame)
    grids = [_Grid(width=width, square=size, across=across) for width, sizes in SIZES for size in sizes]
    return next((grid for grid in grids if grid.height(nodes) <= grid.width), grids[-1])


# -- nodes


def _draw_nodes(
    frame: Frame,
    grid: _Grid,
    corner: tuple[int, int],
    colours: dict[str, str],
    *,
    into: tuple[list[Rect], list[Cell], list[Text]],
) -> None:
    rects, cells, texts = into
    for y, row in grid.rows(_sorted(frame)):
        for column, node in enumerate(row):
            left, upper = corner[0] + column * grid.pitch, corner[1] + y
            width, height = grid.across * grid.square, grid.lines(node) * grid.square
            rects += _squares(node, grid, left, upper, colours)
            stroke = CLOSED if node.closed else FRAME
            cells.append(Cell(left - 1, upper - 1, width + 1, height + 1, stroke, _title(node)))
            if grid.label:
                texts.append(Text(left, upper + height + 1, _short(node.name, width), SMALL))


def _squares(node: NodeFrame, grid: _Grid, left: int, upper: int, colours: dict[str, str]) -> Iterator[Rect]:
    """Neighbours of one kind are one rectangle where squares are too small to be told apart."""
    gap = 1 if grid.square >= 6 else 0
    line = 0
    for one in node.devices:
        kinds = _kinds(one, colours)
        for start in range(0, len(kinds), grid.across):
            y = upper + line * grid.square
            for column, length, (fill, hatch) in _runs(kinds[start : start + grid.across], joined=not gap):
                x, width = left + column * grid.square, length * grid.square
                yield Rect(x, y, width - gap, grid.square - gap, fill, hatch)
            line += 1


def _kinds(one: Devices, colours: dict[str, str]) -> list[tuple[str, bool]]:
    """(colour, hatched) of each device: held, free, and what is not handed out last."""
    kinds = [(colours.get(held.holder, POD), False) for held in one.held for _ in range(held.amount)]
    room = max(one.capacity, one.allocatable)
    return [*kinds, *[(FREE, False)] * one.free, *[(UNHEALTHY, True)] * one.unhealthy][:room]


def _runs(kinds: list[tuple[str, bool]], *, joined: bool) -> Iterator[tuple[int, int, tuple[str, bool]]]:
    """(first, length, kind)."""
    start = 0
    for index in range(1, len(kinds) + 1):
        if index == len(kinds) or not joined or kinds[index] != kinds[start]:
            yield start, index - start, kinds[start]
            start = index


def _title(node: NodeFrame) -> str:
    lines = [f"{node.name} ({node.closed})" if node.closed else node.name]
    for one in node.devices:
        unhealthy = f", {one.unhealthy} not handed out" if one.unhealthy else ""
        lines.append(f"{one.name}: {one.free} of {one.allocatable} free{unhealthy}")
        lines += [f"  {held.holder}: {held.amount}" for held in one.held]
    return "\n".join(lines)


def _short(name: str, width: int) -> str:
    """Names differ at their ends."""
    room = max(3, width // 6)
    return name if len(name) <= room else "…" + name[1 - room :]


# -- words


def _heading(title: str, frame: Frame, x: int) -> Iterator[Text]:
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


def _colours(before: Frame, after: Frame) -> dict[str, str]:
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


def _draw_legend(
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
        texts.append(Text(x + 18, line, _short(text, LEGEND_WIDTH - 60)))
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
