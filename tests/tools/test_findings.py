# SPDX-License-Identifier: Apache-2.0
"""The pages about findings: as they are committed, and as they are made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.explain.case import Case
from app.explain.finding import Hit, Read, Topic, Weight, finding
from app.explain.reads import FINDINGS
from tools import findings


def test_committed_pages_are_up_to_date() -> None:
    assert findings.outdated(findings.FOLDER) == [], "run make docs"


def test_codes_are_told_apart_and_fit_into_a_file_name() -> None:
    codes = [topic.code for topic in FINDINGS]
    assert len({code.lower() for code in codes}) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", code)] == []


@finding(
    "TooHot",
    read=Read.HEALTH,
    weight=Weight.NOTE,
    sentence="{count:d} devices of {node} are at {{hot}}",
    meaning="It is warm there.",
    confirm=("kubectl get node {node} -o jsonpath='{{.status}}'",),
    decide=("open a window at {node}",),
)
def too_hot(case: Case) -> list[Hit]:
    return []


PAGE = """\
# TooHot

> <count> devices of <node> are at {hot}

Part of the read "Device health". Usual weight: note: context for the verdict.

## What it means

It is warm there.

## How to confirm

These commands read and change nothing:

```sh
kubectl get node <node> -o jsonpath='{.status}'
```

## What to do

A decision of the owner:

- open a window at <node>
"""


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Topic[Case]:
    monkeypatch.setattr(findings, "FINDINGS", (too_hot,))
    return too_hot


def test_a_page_says_what_it_means_how_to_confirm_and_what_to_do(one: Topic[Case]) -> None:
    pages = findings.pages()
    assert pages["TooHot.md"] == f"{findings.MARK}\n\n{PAGE}"
    assert "| [TooHot](TooHot.md) | note | <count> devices of <node> are at {hot} |" in pages["README.md"]
    assert f"## {Read.HEALTH.title}" in pages["README.md"]
    assert f"## {Read.DEVICES.title}" not in pages["README.md"]


def test_pages_are_written_when_they_differ_and_removed_when_their_finding_is_gone(
    one: Topic[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(findings, "FOLDER", tmp_path)
    (tmp_path / "Gone.md").write_text("old")
    (tmp_path / "TooHot.md").write_text("changed by hand")
    assert findings.main(["--check"]) == 1
    assert "docs/findings/Gone.md is not up to date: run make docs" in capsys.readouterr().out
    assert findings.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "TooHot.md"]
    assert findings.main(["--check"]) == 0
