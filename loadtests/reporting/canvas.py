# SPDX-License-Identifier: Apache-2.0
"""What all plots share: colours, figures of the right size, legends, and SVG for a page.

Colours are those of Okabe and Ito, which people with any colour vision tell apart. Knows no results.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

INK = "#1a1b1c"
"""The one colour that becomes the page's own text colour."""
GREY = "#8a8a8a"
BLUE, ORANGE, GREEN, PINK, SKY, RUST, YELLOW = PALETTE = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442",
)  # fmt: skip
CONTENDERS = {
    "plain": GREY, "native": ORANGE, "native-1s": RUST, "muster": BLUE, "muster-ungated": SKY,
    "simulation": GREEN,
}  # fmt: skip
DASHES = {"plain": ":", "native": "--", "native-1s": "-.", "muster-ungated": (0, (5, 1, 1, 1))}
LINE = 1.8
WIDTH = 9.0
PANEL_HEIGHT = 2.7
COLUMNS = 2
DPI = 144
LEGEND_LETTERS = 90
"""How much text fits beside each other in a legend."""

matplotlib.use("Agg")
matplotlib.rcParams.update({
    "font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10,
    "axes.titlelocation": "left", "axes.axisbelow": True, "legend.frameon": False, "svg.fonttype": "path",
    "grid.color": GREY, "grid.alpha": 0.3,
})  # fmt: skip


def colour(contender: str) -> str:
    """The same for a contender in every plot."""
    return CONTENDERS.get(contender, PINK)


def dashes(contender: str) -> Any:
    """As its colour: lines can be told apart in black and white."""
    return DASHES.get(contender, "-")


def figure(height: float) -> Any:
    """An empty figure of `height` inches."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def panels(count: int) -> tuple[Any, list[Any]]:
    """A figure with room for `count` small plots, two in a row."""
    rows = -(-count // COLUMNS)
    made = figure(PANEL_HEIGHT * rows + 0.8)
    axes = list(made.subplots(rows, COLUMNS, squeeze=False).flat)
    for unused in axes[count:]:
        unused.set_axis_off()
    return made, axes[:count]


def swatch(name: str, tint: str) -> Any:
    """An entry of a legend, for something that fills an area."""
    return Patch(color=tint, label=name)


def stroke(contender: str) -> Any:
    """An entry of a legend, for the line of a contender."""
    return Line2D([], [], color=colour(contender), ls=dashes(contender), lw=LINE, label=contender)


def legend(made: Any, entries: Sequence[Any]) -> None:
    """Above the plot, in as many columns as there is room for."""
    longest = max(len(entry.get_label()) for entry in entries)
    columns = max(1, min(len(entries), LEGEND_LETTERS // (longest + 6)))
    made.legend(handles=entries, loc="outside upper left", ncols=columns, fontsize=9)


def svg(made: Any, name: str) -> str:
    """The `<svg>` element, without background, its text in the colour of the text around it."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):  # ids differ between plots, not between days
        made.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg ") :].replace(INK, "currentColor")


def png(made: Any, file: Path, title: str) -> None:
    """A file that says by itself what it shows: its title is the legend's, where there is one."""
    font = {"weight": "bold", "size": 12}
    for entries in made.legends:
        entries.set_title(title, prop=font)
        entries.set_alignment("left")
    if not made.legends:
        made.suptitle(title, x=0.01, ha="left", **font)
    made.savefig(file, dpi=DPI, facecolor="white", metadata={"Title": title})
