# SPDX-License-Identifier: Apache-2.0
"""`--plot`: which writer makes the picture, found out before anything else is done."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from app.cli.whole import whole
from app.domain.errors import InputError
from app.simulate.frame import Frame
from app.simulate.html import html
from app.simulate.layout import picture
from app.simulate.shapes import Picture

Plot = Callable[[Frame, Frame], None]
"""Writes the file. Raises `InputError` where it cannot be written."""


def plot_to(file: Path) -> Plot:
    """The writer for this file. Raises `InputError` for a name that is no picture's, and where Pillow is
    missing."""
    write = _writer(file)

    def plot(before: Frame, after: Frame) -> None:
        drawn = write(picture(before, after))
        try:
            with whole(file) as target:
                target.write(drawn)
        except OSError as error:
            raise InputError(f"cannot write {file}: {error.strerror or error}", field="--plot") from None

    return plot


def _writer(file: Path) -> Callable[[Picture], bytes]:
    if file.suffix == ".html":
        return lambda what: html(what, title=f"muster simulate: {file.stem}")
    if file.suffix != ".png":
        raise InputError(f"{file} must end in .png or .html", field="--plot")
    if importlib.util.find_spec("PIL") is None:
        raise InputError(
            "a PNG needs Pillow: pip install 'muster-scheduler[plot]'; a .html file needs nothing",
            field="--plot",
        )
    writer: Callable[[Picture], bytes] = importlib.import_module("app.simulate.png").png
    return writer
