# SPDX-License-Identifier: Apache-2.0
"""Tables look like kubectl's."""

from __future__ import annotations

from app.cli.table import table


def test_columns_are_as_wide_as_their_widest_cell_and_three_blanks_apart() -> None:
    shown = table(("name", "node"), [("seats-0", "gpu-a"), ("a", "b")])

    assert shown.splitlines() == ["NAME      NODE", "seats-0   gpu-a", "a         b"]


def test_an_absent_value_is_none_in_angle_brackets_but_zero_is_a_value() -> None:
    assert table(("a", "b", "c"), [(None, "", 0)]).splitlines()[1] == "<none>   <none>   0"


def test_no_line_ends_in_blanks() -> None:
    assert all(
        line == line.rstrip() for line in table(("a", "reason"), [("x", "y"), ("", "long")]).splitlines()
    )


def test_without_rows_the_header_stands_alone() -> None:
    assert table(("name", "node"), []) == "NAME   NODE"


def test_a_text_with_line_breaks_and_escapes_stays_one_line() -> None:
    assert table(("reason",), [("two\nlines\x1b[31m  wide",)]).splitlines()[1] == "two lines [31m wide"


def test_blanks_alone_are_no_value() -> None:
    assert table(("reason",), [(" \n",)]).splitlines()[1] == "<none>"
