# SPDX-License-Identifier: Apache-2.0
"""Where everything is in the picture of a cluster before and after: the single source of both writers.

A node is a cell of squares, one a device, in lines of four (or eight), each resource on a line of its own;
squares have the colour of the gang that holds them. Decides positions, colours and words, in pixels; draws
nothing. Equal frames give equal pictures.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import msgspec

from app.simulate.frame import Devices, Frame, NodeFrame
from app.simulate.legend import LINE, MARGIN, MOST_TOTALS, colours_of, draw_legend, heading
from app.simulate.shapes import (
    CLOSED,
    FRAME,
    FREE,
    POD,
    SMALL,
    UNHEALTHY,
    Cell,
    Picture,
    Rect,
    Text,
    short,
)  # fmt: skip

NAMED_FROM: Final = 16
"""From this size of a square on there is room for the names of nodes."""
SIZES: Final = ((620, (22, 18, 14, 11, 9, 7)), (1100, (6, 5, 4, 3)))
"""(width of a panel, sizes of squares to try in it); the largest that makes no panel higher than wide is
taken, else the last."""


class _Grid(msgspec.Struct, frozen=True):
    """How nodes are laid out in a panel: the same before and after."""

    width: int
    square: int
    across: int

    @property
    def label(self) -> int:
        """Height of a name below its node."""
        return SMALL + 4 if self.square >= NAMED_FROM else 0

    @property
    def gap(self) -> int:
        """Between nodes."""
        return max(3, self.square // 2)

    def span(self, node: NodeFrame) -> int:
        """Squares in the longest line of a node; all nodes are alike where their names have to fit."""
        longest = max((_room(one) for one in node.devices), default=1)
        return self.across if self.label else min(self.across, longest)

    def lines(self, node: NodeFrame) -> int:
        """Lines of squares."""
        return sum(-(-_room(one) // self.across) for one in node.devices) or 1

    def places(self, nodes: list[NodeFrame]) -> Iterator[tuple[int, int, NodeFrame | None]]:
        """(x, y) of each node; at the end, without a node, the height of all."""
        y = 0
        for span, alike in groupby(nodes, self.span):
            some, pitch = list(alike), span * self.square + self.gap
            columns = max(1, self.width // pitch)
            for start in range(0, len(some), columns):
                row = some[start : start + columns]
                yield from ((column * pitch, y, node) for column, node in enumerate(row))
                y += max(map(self.lines, row)) * self.square + self.label + self.gap
        yield 0, y, None

    def height(self, nodes: list[NodeFrame]) -> int:
        """Of all of them."""
        return list(self.places(nodes))[-1][1]


def picture(before: Frame, after: Frame) -> Picture:
    """Both moments side by side, with a legend below."""
    grid = _grid_for(before)
    colours = colours_of(before, after)
    top = MARGIN + LINE * (2 + max(1, min(MOST_TOTALS, len(before.totals))))
    rects: list[Rect] = []
    cells: list[Cell] = []
    texts: list[Text] = []
    for number, (title, frame) in enumerate((("Before", before), ("After", after))):
        x = MARGIN + number * (grid.width + 2 * MARGIN)
        texts += heading(title, frame, x)
        _draw_nodes(frame, grid, (x, top), colours, into=(rects, cells, texts))
    width = 2 * grid.width + 4 * MARGIN
    y = top + grid.height(_sorted(before)) + LINE
    height = draw_legend(after, colours, y, width, rects, texts)
    return Picture(width=width, height=height, rects=rects, cells=cells, texts=texts)


def _sorted(frame: Frame) -> list[NodeFrame]:
    """Nodes of a kind side by side: those with most devices first, else as they come."""
    return sorted(
        frame.nodes, key=lambda n: (-sum(d.capacity for d in n.devices), [d.name for d in n.devices])
    )


def _grid_for(frame: Frame) -> _Grid:
    most = max((_room(d) for n in frame.nodes for d in n.devices), default=1)
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
    for x, y, node in grid.places(_sorted(frame)):
        if node is None:
            return
        left, upper = corner[0] + x, corner[1] + y
        width, height = grid.span(node) * grid.square, grid.lines(node) * grid.square
        rects += _squares(node, grid, left, upper, colours)
        stroke = CLOSED if node.closed else FRAME
        cells.append(Cell(left - 1, upper - 1, width + 1, height + 1, stroke, _title(node)))
        if grid.label:
            texts.append(Text(left, upper + height + 1, short(node.name, width), SMALL))


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
    return [*kinds, *[(FREE, False)] * one.free, *[(UNHEALTHY, True)] * one.unhealthy][: _room(one)]


def _room(one: Devices) -> int:
    """Squares of a resource."""
    return max(one.capacity, one.allocatable)


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
