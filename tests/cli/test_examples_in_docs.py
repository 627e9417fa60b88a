# SPDX-License-Identifier: Apache-2.0
"""What the pages show as typed and answered is what is answered: a newcomer types it in first."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from app.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```\w*\n\$ (muster [^\n]*)\n(.*?)^```$", re.M | re.S)
CUT = "…"
"""A line of its own: the page leaves out the rest."""


class Example(NamedTuple):
    """One command of a page, and the answer it shows."""

    page: str
    command: str
    answer: str


def examples() -> list[Example]:
    """Those whose files are here; others show a cluster or a file that the reader has to imagine."""
    found = [
        Example(page.name, *match.groups()) for page in PAGES for match in BLOCK.finditer(page.read_text())
    ]
    return [one for one in found if all((ROOT / word).exists() for word in files(one.command))]


def files(command: str) -> list[str]:
    words = [word for word in shlex.split(command) if word.endswith((".json", ".yaml", ".gz"))]
    return words or ["not here"]


@pytest.mark.parametrize("example", examples(), ids=lambda one: f"{one.page}: {one.command}")
def test_the_answer_is_the_one_on_the_page(
    example: Example, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", shlex.split(example.command))
    with pytest.raises(SystemExit):
        run()
    shown, cut, _ = example.answer.partition(f"\n{CUT}\n")
    said = capsys.readouterr().out
    if cut:
        assert said.startswith(shown)
    else:
        assert said == shown


def test_there_are_examples_to_type_in() -> None:
    assert {"README.md", "explain.md"} <= {one.page for one in examples()}
