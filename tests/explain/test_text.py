# SPDX-License-Identifier: Apache-2.0
"""A report on a terminal: whole texts, and what is cut or told once."""

from __future__ import annotations

import pytest

from app.explain.finding import Evidence, Finding, Step, Weight
from app.explain.report import Outcome, Report, Section, Subject, verdict
from app.explain.text import COLUMNS, text

READ = Step(text="read", command="kubectl get node n2 -o yaml")
DECIDE = Step(text="drain and repair the nodes, or restart the device plugin there", decision=True)
NODES = tuple(Evidence(f"node/n{n}", ".status.allocatable['nvidia.com/gpu']", f"{n}, of 8") for n in range(9))
SICK = Finding("Sick", Weight.WARNS, "2 devices are not allocatable", NODES[:2], (READ, DECIDE))
FINE = Finding("Well", Weight.FINE, "3 claims were looked at")


def report(*findings: Finding, unseen: tuple[str, ...] = ()) -> Report:
    return Report(
        subject=Subject("pod", "team-a", "w0"),
        verdict=verdict(Outcome.BUSY, "pod team-a/w0 waits: 0 of 8 nvidia.com/gpu free"),
        sections=(
            Section("Devices on nodes", findings, "nothing unusual"),
            Section("Device health", (), "no pod in question reports an unhealthy device"),
        ),
        unseen=unseen,
    )


def test_the_verdict_the_reads_and_what_was_not_seen() -> None:
    shown = text(report(SICK, unseen=("not read (not allowed to list it): Job.batch",)))
    assert shown.splitlines() == [
        "pod team-a/w0 waits: 0 of 8 nvidia.com/gpu free",
        "",
        "Devices on nodes:",
        "  warns   2 devices are not allocatable [Sick]",
        "            node/n0   .status.allocatable['nvidia.com/gpu']   0, of 8",
        "            node/n1   .status.allocatable['nvidia.com/gpu']   1, of 8",
        "            read:   kubectl get node n2 -o yaml",
        "            decide: drain and repair the nodes, or restart the device plugin there",
        "Device health: no pod in question reports an unhealthy device",
        "Not seen:",
        "  not read (not allowed to list it): Job.batch",
    ]


def test_a_read_without_findings_is_one_line_and_what_is_fine_is_for_wide() -> None:
    assert "Devices on nodes: nothing unusual" in text(report(FINE)).splitlines()
    assert "  fine    3 claims were looked at [Well]" in text(report(FINE), wide=True).splitlines()


@pytest.mark.parametrize(
    ("weight", "shown"), [(Weight.BLOCKS, 5), (Weight.WARNS, 3), (Weight.NOTE, 2)], ids=str
)
def test_the_more_it_weighs_the_more_evidence_unless_all_is_wanted_then_under_headers(
    weight: Weight, shown: int
) -> None:
    many = Finding("Many", weight, "nodes differ", NODES)
    lines = text(report(many)).splitlines()
    assert sum("node/n" in line for line in lines) == shown
    assert f"            and {9 - shown} more: -o wide" in lines
    wide = text(report(many), wide=True).splitlines()
    assert sum("node/n" in line for line in wide) == 9
    assert wide[4].split() == ["OBJECT", "FIELD", "VALUE"]
    assert not any("OBJECT" in line for line in text(report(many), wide=True, headers=False).splitlines())


def test_a_note_asks_for_no_decision_unless_all_is_wanted() -> None:
    steps = (Step("read", "kubectl get a"), Step("read", "kubectl get b"), Step("move house", decision=True))
    finding = Finding("Far", Weight.NOTE, "it is far", (), steps)
    short, wide = text(report(finding)), text(report(finding), wide=True)
    assert "kubectl get a" in short
    assert "kubectl get b" not in short and "move house" not in short
    assert "kubectl get b" in wide and "move house" in wide


def test_a_remark_of_the_finding_itself_about_what_it_leaves_out_is_kept() -> None:
    cut = (*NODES[:2], Evidence("", "", "and 98 more"))
    assert "            and 98 more" in text(report(Finding("Cut", Weight.NOTE, "x", cut))).splitlines()
    long = Finding("Cut", Weight.NOTE, "x", (*NODES, Evidence("", "", "and 98 more")))
    assert "            and more: -o wide" in text(report(long)).splitlines()
    assert "            and 98 more" in text(report(long), wide=True).splitlines()


def test_a_next_step_is_told_once() -> None:
    assert text(report(SICK, SICK)).count(READ.command) == 1
    assert text(report(SICK, SICK)).count(DECIDE.text) == 1


def test_what_is_long_is_broken_or_cut_but_never_the_verdict_nor_a_command() -> None:
    words, command = "every good boy deserves fudge " * 8, "kubectl get " + "x" * 120
    long = Finding(
        "Long", Weight.BLOCKS, words, (Evidence("node/n", ".f", "v " * 200),), (Step("read", command),)
    )
    seen = report(long, unseen=("not read (why): " + ", ".join(["Kind.example.com"] * 40),))
    lines = text(seen).splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == [f"            read:   {command}"]
    place = lines.index("            node/n   .f")
    assert [line.strip() for line in lines[place + 1 : place + 4]] == [
        *["v " * 42 + "v"] * 2, "v " * 41 + "v…",
    ]  # fmt: skip
    assert "v…" not in text(seen, wide=True)
    assert lines[-1].endswith(" …: -o wide")
    assert ("v " * 200).strip() in text(seen, wide=True)
    assert text(seen, wide=True).count("Kind.example.com") == 40
    long_verdict = Report(seen.subject, verdict(Outcome.BUSY, words), ())
    assert text(long_verdict).splitlines()[0] == words.strip()


def test_nothing_in_an_object_breaks_the_lines() -> None:
    odd = Finding("Odd", Weight.NOTE, "a\nb\x1b[31m", (Evidence("node/n", ".x", "one\n two\t\x00"),))
    lines = text(report(odd)).splitlines()
    assert "  note    a b [31m [Odd]" in lines
    assert "            node/n   .x   one two" in lines


def test_a_line_that_is_long_only_because_of_its_neighbours_is_not_folded() -> None:
    rows = (
        Evidence("node/n", ".f" * 30, "v"),
        Evidence("resource/of/a/long/name", ".f", "w"),
        Evidence("k", "", "x" * 90),
    )
    lines = [line.strip() for line in text(report(Finding("Long", Weight.BLOCKS, "x", rows))).splitlines()]
    assert f"node/n   {'.f' * 30}   v" in lines
    assert "resource/of/a/long/name   .f   w" in lines
    assert lines[lines.index("k") + 1].startswith("xxx")
