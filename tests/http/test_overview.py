# SPDX-License-Identifier: Apache-2.0
"""GET /overview and the page's own files, as routes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.domain.overview import ORDER
from app.http.page import FILES, FOLDER
from tests.builders import make_group, make_node, make_pod
from tests.http.door import Door


def test_it_tells_of_the_replica_the_gangs_and_the_devices(door: Door) -> None:
    reply = door.get("/overview")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["cache-control"] == "no-store"
    seen: Any = reply.json
    assert (seen["replica"], seen["active"], seen["problems"]) == ("here", True, [])
    assert (seen["nodes"], seen["closed_nodes"], seen["pods"]) == (2, 0, 3)
    assert seen["states"] == {"planned": 1}
    assert [(one["name"], one["seats"]) for one in seen["gangs"]] == [("g", 2)]
    assert [one["name"] for one in seen["devices"]] == ["nvidia.com/gpu"]


def test_what_is_not_ready_is_told(door: Door) -> None:
    door.world.problems = ["pods are not listed yet"]
    assert door.get("/overview").json["problems"] == ["pods are not listed yet"]


def test_a_picture_is_made_once_a_second_however_often_it_is_asked_for(door: Door) -> None:
    before = door.get("/overview").body
    door.world.put(make_node("n3"))
    assert door.get("/overview").body == before
    door.world.tick(1.0)
    assert door.get("/overview").json["nodes"] == 3


def test_the_number_of_gangs_is_limited(door: Door) -> None:
    door.world.put(make_group("h", 2))
    for limit, shown, left_out in ((0, 0, 2), (1, 1, 1), (2, 2, 0)):
        seen = door.get(f"/overview?limit={limit}").json
        assert (len(seen["gangs"]), seen["left_out"]) == (shown, left_out)
        assert seen["states"] == {"planned": 1, "forming": 1}, "all are counted"


@pytest.mark.parametrize("limit", ["-1", "1001", "many", ""])
def test_a_limit_that_is_none_is_refused(door: Door, limit: str) -> None:
    assert door.get(f"/overview?limit={limit}").status == 422


@pytest.mark.parametrize("path", ["/overview", *FILES])
def test_it_is_read_only(door: Door, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert door.call(method, path, b"{}").status == 405
    assert door.call("HEAD", path, b"").status == 200
    assert door.reserved == (2, 2)


@pytest.mark.parametrize("path", FILES)
def test_the_page_forbids_itself_everything_from_elsewhere(door: Door, path: str) -> None:
    reply = door.get(path)
    assert (reply.status, reply.headers["content-type"]) == (200, FILES[path][1])
    policy = dict(part.split(" ", 1) for part in reply.headers["content-security-policy"].split("; "))
    assert policy.pop("default-src") == "'none'"
    assert set(policy.values()) <= {"'none'", "'self'"}
    assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", FILES)
def test_a_file_that_is_unchanged_is_not_sent_again(door: Door, path: str) -> None:
    tag = door.get(path).headers["etag"]
    again = door.get(path, if_none_match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert door.get(path, if_none_match='"other"').status == 200


def test_the_page_runs_nothing_inline_and_names_no_other_server() -> None:
    text = {name: (FOLDER / name).read_text() for name, _ in FILES.values()}
    page = text["index.html"]
    assert not re.findall(r"<style|\sstyle=|\son\w+=", page)
    assert page.count("<script") == page.count('<script type="module" src="page.js">') == 1
    everything = "".join(text.values()).replace("http://www.w3.org/2000/svg", "")
    assert "://" not in everything
    assert "innerHTML" not in everything and "insertAdjacentHTML" not in everything


def test_the_page_knows_every_state() -> None:
    names = ", ".join(f'"{state}"' for state in ORDER)
    assert f"const STATES = [{names}];" in (FOLDER / "page.js").read_text()


def test_looking_changes_nothing_that_is_written(door: Door) -> None:
    door.world.put(make_group("h", 1))
    door.world.put(make_pod("h0").gpus(64).gang("h").gated())
    door.world.tick(5.0)
    before = door.get("/snapshot").body
    for _ in range(3):
        door.get("/overview")
    door.world.tick(5.0)
    assert door.get("/snapshot").body == before
