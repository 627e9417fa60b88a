# SPDX-License-Identifier: Apache-2.0
"""The picture: what a moment holds, where it is drawn, and that both formats say the same."""

from __future__ import annotations

import io
import re
from html import unescape
from itertools import pairwise

import pytest
from PIL import Image

from app.simulate.frame import Frame, Held, Total, frame_of, natural
from app.simulate.html import html
from app.simulate.layout import picture
from app.simulate.png import png
from app.simulate.shapes import CLOSED, FREE, HATCH, PAPER, POD, UNHEALTHY, Picture, Rect
from tests.builders import GPU, Builder, inventory_of, make_group, make_node, make_pod

MIG = "nvidia.com/mig-1g.10gb"
BEFORE = (
    make_node("n1").gpus(8),
    make_node("n2").gpus(8).allocatable({GPU: "6"}),
    make_node("n10").gpus(8).cordoned(),
    make_node("cpu"),
    make_pod("single").gpus(2).on("n1"),
)
AFTER = (
    *BEFORE, make_group("train", 2), make_pod("w0").gpus(3).gang("train").on("n2"),
    make_pod("w1").gpus(3).gang("train").on("n1"),
)  # fmt: skip


def frame(*objects: Builder) -> Frame:
    return frame_of(inventory_of(*objects))


def drawn() -> Picture:
    return picture(frame(*BEFORE), frame(*AFTER))


def cluster(count: int) -> Frame:
    """Nodes in number, all alike but one."""
    nodes = [make_node(f"node-{number}").gpus(8) for number in range(count)]
    pods = [make_pod(f"p{number}").gpus(number % 9).on(f"node-{number}") for number in range(0, count, 2)]
    return frame(*nodes, *pods)


# -- the moment


def test_nodes_with_devices_are_in_order_and_the_others_counted() -> None:
    now = frame(*AFTER)
    assert [node.name for node in now.nodes] == ["n1", "n2", "n10"]
    assert now.without == 1
    assert [node.closed for node in now.nodes] == ["", "", "cordoned"]


def test_devices_are_held_by_gangs_and_pods_free_or_not_handed_out() -> None:
    n1, n2, _ = frame(*AFTER).nodes
    assert n1.devices[0].held == (
        Held(holder="gang default/train", gang=True, amount=3),
        Held(holder="pod default/single", gang=False, amount=2),
    )
    assert (n1.devices[0].free, n1.devices[0].unhealthy) == (3, 0)
    assert (n2.devices[0].free, n2.devices[0].unhealthy) == (3, 2)


def test_finished_pods_hold_nothing() -> None:
    (node,) = frame(make_node("n").gpus(2), make_pod("p").gpus(2).on("n", phase="Succeeded")).nodes
    assert node.devices[0].free == 2


def test_the_totals_tell_what_the_free_devices_are_good_for() -> None:
    assert frame(*BEFORE).totals == (Total(name=GPU, allocatable=22, free=20, whole=1, size=8, members=0),)
    whole = frame(make_node("a").gpus(8), make_node("b").gpus(8), make_node("c").gpus(8).cordoned())
    assert whole.totals == (Total(name=GPU, allocatable=24, free=24, whole=2, size=8, members=2),)


def test_members_are_no_larger_than_the_largest_node() -> None:
    small = frame(make_node("a").gpus(4), make_node("b").gpus(4), make_pod("p").gpus(1).on("b"))
    assert small.totals == (Total(name=GPU, allocatable=8, free=7, whole=1, size=4, members=1),)


def test_names_are_sorted_with_their_numbers() -> None:
    assert sorted(["n10", "n2", "n1-b", "n1"], key=natural) == ["n1", "n1-b", "n2", "n10"]


# -- the layout


def colours_at(what: Picture, name: str) -> list[list[str]]:
    """Colours of the squares of a node, before and after, in reading order."""
    found = []
    for cell in what.cells:
        if cell.title.partition("\n")[0].partition(" ")[0] == name:
            inside = [
                r for r in what.rects
                if cell.x < r.x < cell.x + cell.width and cell.y < r.y < cell.y + cell.height
            ]  # fmt: skip
            found.append([r.fill for r in sorted(inside, key=lambda r: (r.y, r.x))])
    return found


def test_a_square_is_a_device_and_has_the_colour_of_its_holder() -> None:
    before, after = colours_at(drawn(), "n1")
    assert before == [POD] * 2 + [FREE] * 6
    gang = after[0]
    assert gang not in (POD, FREE, UNHEALTHY)
    assert after == [gang] * 3 + [POD] * 2 + [FREE] * 3
    assert colours_at(drawn(), "n2")[1] == [gang] * 3 + [FREE] * 3 + [UNHEALTHY] * 2


def test_what_is_not_handed_out_is_hatched_and_nothing_else_is() -> None:
    assert all(rect.hatch == (rect.fill == UNHEALTHY) for rect in drawn().rects)


def test_each_resource_has_a_line_of_its_own() -> None:
    mixed = frame(make_node("n").gpus(2).amount(MIG, "3"))
    rects = picture(mixed, mixed).rects[:5]
    assert [len({r.y for r in rects[:2]}), len({r.y for r in rects[2:]}), len({r.y for r in rects})] == [
        1,
        1,
        2,
    ]


def test_a_closed_node_is_outlined() -> None:
    assert {cell.title.splitlines()[0] for cell in drawn().cells if cell.stroke == CLOSED} == {
        "n10 (cordoned)"
    }


def test_a_node_tells_who_holds_what() -> None:
    titles = [cell.title for cell in drawn().cells if cell.title.startswith("n2")]
    assert titles == [
        f"n2\n{GPU}: 6 of 6 free, 2 not handed out",
        f"n2\n{GPU}: 3 of 6 free, 2 not handed out\n  gang default/train: 3",
    ]


def test_the_headlines_are_those_of_each_moment() -> None:
    texts = [text.text for text in drawn().texts]
    assert f"{GPU}: 20 of 22 free · 1 whole nodes · largest gang of 8-device members: 0" in texts
    assert f"{GPU}: 14 of 22 free · 0 whole nodes · largest gang of 8-device members: 0" in texts
    assert "gang default/train (6)" in texts
    assert any("1 nodes without devices are not shown" in text for text in texts)


@pytest.mark.parametrize("count", [1, 5, 40, 400, 3000])
def test_cells_are_inside_the_picture_and_apart_whatever_their_number(count: int) -> None:
    moment = cluster(count)
    what = picture(moment, moment)
    assert len(what.cells) == 2 * count
    areas = sorted((cell.y, cell.x, cell.width, cell.height) for cell in what.cells)
    for (y, x, width, height), (next_y, next_x, *_) in pairwise(areas):
        assert x >= 0 and x + width <= what.width and y >= 0 and y + height <= what.height
        assert next_x > x + width if next_y == y else next_y > y + height
    assert what.width < 2600 and what.height < 2600


def test_among_many_nodes_small_ones_take_little_room() -> None:
    large = [make_node(f"large-{number}").gpus(8) for number in range(200)]
    small = [make_node(f"small-{number}").gpus(1) for number in range(200)]
    moment = frame(*large, *small)
    widths = {cell.title.partition("-")[0]: cell.width for cell in picture(moment, moment).cells}
    assert widths["large"] > 3 * widths["small"]


def test_a_picture_without_devices_says_so() -> None:
    nothing = frame(make_node("cpu"))
    what = picture(nothing, nothing)
    assert what.cells == []
    assert [text.text for text in what.texts].count("No node has devices.") == 2


def test_equal_moments_give_equal_pictures() -> None:
    assert drawn() == drawn()


# -- the writers


def test_the_page_is_whole_and_stands_alone() -> None:
    page = html(drawn(), title="a<b").decode()
    assert "<title>a&lt;b</title>" in page
    assert not re.search(r"<script|href|src=|url\(|@import", page)
    titles = [unescape(title) for title in re.findall(r"<rect [^>]*><title>(.*?)</title>", page, re.DOTALL)]
    assert titles == [cell.title for cell in drawn().cells]


def test_the_page_draws_every_rectangle_in_its_colour() -> None:
    page, what = html(drawn(), title="x").decode(), drawn()
    paths = dict(re.findall(r'<path fill="(#\w+)" d="([^"]*)"', page))
    assert {fill: path.count("M") for fill, path in paths.items()} == {
        fill: sum(rect.fill == fill for rect in what.rects) for fill in paths
    }
    assert f'<path stroke="{HATCH}"' in page


def test_names_cannot_break_the_page() -> None:
    evil = frame(make_node("<script>alert(1)</script>").gpus(1))
    page = html(picture(evil, evil), title="x").decode()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_the_image_has_the_colours_where_the_layout_has_them() -> None:
    what = drawn()
    image = Image.open(io.BytesIO(png(what))).convert("RGB")
    assert image.size == (what.width, what.height)
    plain = [rect for rect in what.rects if not rect.hatch]
    assert all(_pixel(image, rect) == rect.fill for rect in plain)
    hatched = next(rect for rect in what.rects if rect.hatch)
    corner = image.getpixel((hatched.x + hatched.width - 1, hatched.y))
    assert "#{:02x}{:02x}{:02x}".format(*corner) == HATCH  # type: ignore[misc]
    assert "#{:02x}{:02x}{:02x}".format(*image.getpixel((0, 0))) == PAPER  # type: ignore[misc]


def _pixel(image: Image.Image, rect: Rect) -> str:
    middle = image.getpixel((rect.x + rect.width // 2, rect.y + rect.height // 2))
    return "#{:02x}{:02x}{:02x}".format(*middle)  # type: ignore[misc]
