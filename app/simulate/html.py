# SPDX-License-Identifier: Apache-2.0
"""Writes a picture as one HTML page: inline SVG, no script, nothing from elsewhere.

Rectangles of one colour are one path, so that 15,000 nodes stay a few megabytes. Hovering a node shows its
name and who holds its devices. Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from app.simulate.shapes import HATCH, INK, PAPER, Cell, Picture, Rect, Text


def html(picture: Picture, *, title: str) -> bytes:
    """The page."""
    return "\n".join(_lines(picture, title)).encode()


def _lines(picture: Picture, title: str) -> Iterator[str]:
    yield f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>'
    yield f"<style>body{{margin:0;background:{PAPER}}} text{{font-family:sans-serif;fill:{INK}}}</style>"
    yield "</head>\n<body>"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{picture.width}" height="{picture.height}">'
    yield from _paths(picture.rects)
    yield from map(_cell, picture.cells)
    yield from map(_text, picture.texts)
    yield "</svg>\n</body>\n</html>\n"


def _paths(rects: list[Rect]) -> Iterator[str]:
    by_fill: dict[str, list[Rect]] = {}
    for rect in rects:
        by_fill.setdefault(rect.fill, []).append(rect)
    for fill, alike in by_fill.items():
        areas = "".join(f"M{r.x} {r.y}h{r.width}v{r.height}h-{r.width}z" for r in alike)
        yield f'<path fill="{fill}" d="{areas}"/>'
    strokes = "".join(f"M{r.x} {r.y + r.height}L{r.x + r.width} {r.y}" for r in rects if r.hatch)
    if strokes:
        yield f'<path stroke="{HATCH}" d="{strokes}"/>'


def _cell(cell: Cell) -> str:
    """Half a pixel in, where a line of one pixel is sharp; transparent, and yet there for the pointer."""
    area = f'x="{cell.x + 0.5}" y="{cell.y + 0.5}" width="{cell.width}" height="{cell.height}"'
    title = f"<title>{escape(cell.title)}</title>"
    return f'<rect {area} fill="none" pointer-events="all" stroke="{cell.stroke}">{title}</rect>'


def _text(text: Text) -> str:
    """SVG counts from the base line."""
    weight = ' font-weight="bold"' if text.bold else ""
    at = f'x="{text.x}" y="{text.y + text.size}" font-size="{text.size}"'
    return f"<text {at}{weight}>{escape(text.text)}</text>"
