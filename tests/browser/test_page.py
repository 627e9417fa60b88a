# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, in front of a real `muster serve --snapshot`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from app.cli.client import Client
from app.cli.serving import serving
from tests.browser.conftest import Open, Serve
from tests.builders import Builder, Json, make_group, make_node, make_pod, snapshot

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def members(gang: str, *names: str, gpus: int = 8) -> list[Builder]:
    return [make_pod(name).gpus(gpus).gang(gang).gated() for name in names]


CLUSTER: list[Builder] = [
    make_node("n1").gpus(8),
    make_node("n2").gpus(8),
    make_node("n3").gpus(8).cordoned(),
    make_group("runs", 1),
    make_pod("r").gpus(8).gang("runs").on("n1"),
    make_group("waits", 2),
    *members("waits", "a", "b"),
    make_group("forms", 3),
    *members("forms", "f"),
]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service in which nothing happens, shared by the tests that only look."""
    file = tmp_path_factory.mktemp("calm") / "cluster.json"
    file.write_bytes(snapshot(*CLUSTER))
    with serving(file) as client:
        yield client


def post(client: Client, kind: str, *objects: Builder) -> None:
    client.post("/snapshot/events", [{"type": kind, "object": one.build()} for one in objects])


def row(name: str) -> str:
    return f"#gangs tbody tr:has(a:text-is('default/{name}'))"


def test_gangs_and_devices_of_a_running_service_are_shown(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm)
    tab.sees(row("waits"), "gang default/waits has seats for 1 of 2 members")
    assert [one.split() for one in tab.page.locator("#states li").all_inner_texts()] == [
        ["0", "wounded"], ["1", "waiting"], ["1", "forming"], ["0", "planned"], ["0", "gathering"],
        ["0", "binding"], ["1", "running"],
    ]  # fmt: skip
    assert "gang default/forms has 1 of 3 members" in tab.text(row("forms"))
    assert tab.page.locator("#gangs tbody a").all_inner_texts() == [
        "default/waits", "default/forms", "default/runs",
    ]  # fmt: skip
    assert tab.text("#devices tbody tr").split() == [
        "nvidia.com/gpu", "3", "24", "24", "8", "0", "8", "8", "8", "1",
        "8", "×", "1", "4", "×", "2", "2", "×", "4", "1", "×", "8",
    ]  # fmt: skip
    assert "active" in tab.text("#replica") and "3 nodes (1 closed), 4 pods" in tab.text("#replica")


def test_a_change_in_the_cluster_shows_without_a_reload(served: Serve, open_tab: Open) -> None:
    client = served(*CLUSTER)
    tab = open_tab(client)
    tab.sees(row("waits"), "waiting")
    post(client, "DELETED", make_pod("r"), make_group("runs"))
    tab.sees(row("waits"), "planned")
    tab.page.locator(row("runs")).wait_for(state="detached")
    assert len([url for url in tab.asked if url == f"{client.url}/"]) == 1


def test_the_page_asks_its_own_server_alone_and_complains_of_nothing(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm)
    tab.sees(row("waits"), "waiting")
    for _ in range(2):
        with tab.page.expect_response("**/overview"):
            pass  # refreshed once more
    assert [url for url in tab.asked if not url.startswith(f"{calm.url}/")] == []
    assert tab.troubles == []
    outside = tab.page.evaluate("fetch('http://127.0.0.1:9/').catch(error => String(error))")
    assert "Failed to fetch" in outside
    assert any("Content Security Policy" in trouble for trouble in tab.troubles), "it was not even tried"


def test_what_the_cluster_calls_things_is_never_run(served: Serve, open_tab: Open) -> None:
    evil = [make_group(MARKUP, 2), *members(MARKUP, "x"), make_node("n1").gpus(1, name=f"a.b/{MARKUP}")]
    tab = open_tab(served(*evil))
    tab.sees("#gangs tbody tr", f"gang default/{MARKUP} has 1 of 2 members")
    tab.sees("#devices tbody tr", MARKUP)
    assert_harmless(tab.page)
    assert tab.troubles == []
    tab.page.locator("#gangs tbody a").click()
    tab.sees("#answer", f"Muster knows no podgroup default/{MARKUP}.")
    assert_harmless(tab.page)


def assert_harmless(page: Page) -> None:
    assert page.locator("main img, main script").count() == 0


# -- explain

FINDING = {
    "code": "Full", "weight": "blocks", "text": f"too little is free {MARKUP}",
    "evidence": [{"object": "node n1", "field": "status.allocatable", "value": MARKUP}],
    "steps": [{"text": "look at it", "command": f"kubectl get node {MARKUP}", "decision": False},
              {"text": "wait", "command": "", "decision": True}],
}  # fmt: skip
REPORT: Json = {
    "verdict": {"code": "Busy", "sentence": f"gang default/waits is busy {MARKUP}", "exit": 1},
    "sections": [
        {"title": f"Devices {MARKUP}", "findings": [FINDING]},
        {"title": "Nothing to say", "findings": []},
    ],
    "unseen": [f"ResourceClaims {MARKUP}"],
}


def explaining(status: int, body: object) -> Any:
    """Answers `/explain/…` as a service would that can."""

    def prepare(page: Page) -> None:
        def answer(route: Route) -> None:
            route.fulfill(status=status, body=json.dumps(body), content_type="application/json")

        page.route("**/explain/**", answer)

    return prepare


def test_a_gang_is_explained_at_a_click(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm, prepare=explaining(200, REPORT))
    tab.page.locator(f"{row('waits')} a").click()
    tab.sees("#answer .verdict", f"gang default/waits is busy {MARKUP}")
    assert f"{calm.url}/explain/default/podgroup/waits" in tab.asked
    shown = tab.text("#answer")
    assert "blocks" in shown.lower() and f"too little is free {MARKUP}" in shown
    assert f"node n1 status.allocatable is {MARKUP}" in shown
    assert f"Next: look at it kubectl get node {MARKUP}" in shown and "The owner decides: wait" in shown
    assert f"Not seen: ResourceClaims {MARKUP}" in shown and "Nothing to say" not in shown
    assert_harmless(tab.page)
    assert tab.troubles == []


def test_the_explain_box_is_reached_and_used_by_keyboard_alone(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm, prepare=explaining(200, REPORT))
    tab.sees(row("waits"), "waiting")
    keyboard, focused = tab.page.keyboard, "document.activeElement.id || document.activeElement.name"
    keyboard.press("Tab")
    assert tab.page.evaluate(focused) == "pause"
    keyboard.press("Tab")
    assert tab.page.evaluate(focused) == "namespace"
    keyboard.type("team a")
    keyboard.press("Tab")
    keyboard.type("Job")
    keyboard.press("Tab")
    keyboard.type("train/1")
    keyboard.press("Enter")
    tab.sees("#answer .verdict", "is busy")
    assert f"{calm.url}/explain/team%20a/job/train%2F1" in tab.asked
    assert tab.page.evaluate(focused) == "answer", "a screen reader goes on there"


def test_a_refresh_leaves_the_focus_where_it_was(served: Serve, open_tab: Open) -> None:
    client = served(*CLUSTER)
    tab = open_tab(client)
    tab.page.locator(f"{row('forms')} a").focus()
    post(client, "DELETED", make_pod("r"), make_group("runs"))
    tab.sees(row("waits"), "planned")
    assert tab.page.evaluate("document.activeElement.textContent") == "default/forms"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "Muster knows no podgroup default/gone."),
        (501, "This Muster cannot explain a podgroup."),
        (503, "Muster could not explain podgroup default/gone: it said 503."),
    ],
)
def test_what_cannot_be_explained_is_a_sentence(calm: Client, open_tab: Open, status: int, said: str) -> None:
    path = "/#explain/default/podgroup/gone"
    tab = open_tab(calm, path=path, prepare=explaining(status, {}))
    tab.sees("#answer", said)
    assert tab.page.locator("[name=name]").input_value() == "gone"


# -- small screens, and servers that go


def test_nothing_scrolls_sideways(served: Serve, open_tab: Open) -> None:
    name = "a-gang-with-a-name-as-long-as-names-can-be-" + "x" * 200
    tab = open_tab(served(*CLUSTER, make_group(name, 9), *members(name, "m")))
    tab.sees(row(name), "has 1 of 9 members")
    for width in (320, 400, 768, 1024, 1180, 1181, 1280):
        tab.page.set_viewport_size({"width": width, "height": 900})
        assert tab.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_paused_page_stays_as_it_is_until_it_goes_on(served: Serve, open_tab: Open) -> None:
    client = served(*CLUSTER)
    tab = open_tab(client)
    tab.sees(row("waits"), "waiting")
    tab.page.get_by_role("button", name="Pause").click()
    tab.page.wait_for_load_state("networkidle")
    asked = len(tab.asked)
    post(client, "DELETED", make_pod("r"), make_group("runs"))
    tab.sees("#freshness", "Paused · 5s ago")
    assert (len(tab.asked), tab.page.locator(row("runs")).count()) == (asked, 1)
    tab.page.get_by_role("button", name="Go on").click()
    tab.sees(row("waits"), "planned")


def test_a_server_that_is_lost_is_said_to_be_and_found_again(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm)
    tab.sees(row("waits"), "waiting")
    tab.page.context.set_offline(True)
    tab.sees("#lost", "Muster has not answered for")
    assert tab.page.get_by_role("alert").first.is_visible()
    assert "waiting" in tab.text(row("waits")), "the last picture stays"
    tab.page.context.set_offline(False)
    tab.page.locator("#lost").wait_for(state="hidden")
