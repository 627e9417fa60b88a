# SPDX-License-Identifier: Apache-2.0
"""One HTML page that stands alone: tables, plots as inline SVG, nothing fetched from anywhere.

Turns finished text into markup and decides no content. Follows the reader's light or dark setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import msgspec

from loadtests.reporting.tables import Table

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5b616b; --line: #d9dce1; --paper: #ffffff;
  --good: #00674f; --bad: #a83a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e7ea; --soft: #a2a8b2; --line: #3a3e46;
  --paper: #16181c; --good: #4cc9a6; --bad: #ff9a5c; } }
body { margin: 0 auto; max-width: 72rem; padding: 2rem 1.25rem 4rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
.head { color: var(--soft); margin: .15rem 0; } .head:first-of-type { color: var(--ink); font-weight: 600; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .875rem; width: 100%; }
th, td { padding: .3rem .75rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } tbody th { color: var(--ink); font-weight: 400; }
th:first-child { text-align: left; white-space: normal; min-width: 14rem; }
.met { color: var(--good); font-weight: 600; } .missed { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0 2rem; } figure svg { color: var(--ink); width: min(100%, 60rem); height: auto; }
figcaption { color: var(--soft); font-size: .875rem; }
"""


class Plot(msgspec.Struct, frozen=True):
    """A drawing: `svg` is its element, `alt` says in words what it shows."""

    title: str
    caption: str
    alt: str
    svg: str


def page(*, head: Sequence[str], tables: Iterable[Table], plots: Iterable[Plot]) -> str:
    """The document. The first line of `head` is the summary, the first table is shown before the plots."""
    first, *others = tables
    body = [
        "<h1>Muster: load test report</h1>",
        *(f'<p class="head">{escape(line)}</p>' for line in head),
        _table(first),
        *map(_plot, plots),
        *map(_table, others),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Muster: load test report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _table(shown: Table) -> str:
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header in shown.headers)
    rows = "\n".join(_row(row) for row in shown.rows)
    return (
        f"<h2>{escape(shown.title)}</h2>\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(shown.title)}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(row: Sequence[str]) -> str:
    name, *cells = row
    return f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_cell, cells))}</tr>'


def _cell(text: str) -> str:
    """Verdicts are coloured; the word itself says the same."""
    word = text.partition(",")[0]
    kind = f' class="{word}"' if word in ("met", "missed") else ""
    return f"<td{kind}>{escape(text)}</td>"


def _plot(plot: Plot) -> str:
    picture = plot.svg.replace("<svg ", f'<svg role="img" aria-label="{escape(plot.alt)}" ', 1)
    caption = f"<figcaption>{escape(plot.caption)}</figcaption>"
    return f"<h2>{escape(plot.title)}</h2>\n<figure>{picture}\n{caption}</figure>"
