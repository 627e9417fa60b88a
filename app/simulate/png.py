# SPDX-License-Identifier: Apache-2.0
"""Writes a picture as PNG. Needs Pillow, an optional extra: the only module that imports it."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont

from app.simulate.shapes import HATCH, INK, PAPER, Picture


def png(picture: Picture) -> bytes:
    """The file; few colours, so it stays small."""
    image = Image.new("RGB", (picture.width, picture.height), PAPER)
    draw = ImageDraw.Draw(image)
    for rect in picture.rects:
        right, lower = rect.x + rect.width - 1, rect.y + rect.height - 1
        draw.rectangle((rect.x, rect.y, right, lower), fill=rect.fill)
        if rect.hatch:
            draw.line((rect.x, lower, right, rect.y), fill=HATCH)
    for cell in picture.cells:
        area = (cell.x, cell.y, cell.x + cell.width, cell.y + cell.height)
        draw.rectangle(area, outline=cell.stroke)
    for text in picture.texts:
        font = ImageFont.load_default(size=text.size)
        width = 0.5 if text.bold else 0.0
        draw.text((text.x, text.y), text.text, fill=INK, font=font, stroke_width=width, stroke_fill=INK)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
