# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, in front of a real `muster serve --snapshot`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

from app.cli.client import Client
from app.cli.serving import serving
from app.explain.report import KINDS
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
    tab.sees("#answer", f"Muster could not explain podgroup default/{MARKUP}: it said 404")
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
        {"title": "Device health", "findings": [], "nothing": f"all is well {MARKUP}"},
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
    assert f"node n1 status.allocatable: {MARKUP}" in shown
    assert f"Next: look at it kubectl get node {MARKUP}" in shown and "The owner decides: wait" in shown
    assert f"Not seen: ResourceClaims {MARKUP}" in shown and f"Device health: all is well {MARKUP}" in shown
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
    ("status", "body", "said"),
    [
        (503, {"error": f"this replica is not active {MARKUP}"}, f": this replica is not active {MARKUP}"),
        (404, {"detail": "Not Found"}, ": it said 404"),
        (502, "a proxy's", ": it said 502"),
    ],
)
def test_what_cannot_be_explained_is_said_in_musters_words(
    calm: Client, open_tab: Open, status: int, body: object, said: str
) -> None:
    path = "/#explain/default/podgroup/gone"
    tab = open_tab(calm, path=path, prepare=explaining(status, body))
    tab.sees("#answer", f"Muster could not explain podgroup default/gone{said}")
    assert tab.page.locator("[name=name]").input_value() == "gone"
    assert_harmless(tab.page)


def test_the_service_itself_explains_what_the_command_does(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm)
    tab.page.locator(f"{row('waits')} a").click()
    told = json.loads(calm.get("/explain/default/podgroup/waits"))
    tab.sees("#answer .verdict", told["verdict"]["sentence"])
    shown = tab.text("#answer")
    for section in told["sections"]:
        assert (section["title"] if section["findings"] else section["nothing"]) in shown
        assert all(finding["text"] in shown for finding in section["findings"])
    assert tab.troubles == []
    tab.page.locator("[name=kind]").select_option("pod")
    tab.page.locator("[name=name]").fill("nobody")
    tab.page.get_by_role("button", name="Explain").click()
    tab.sees("#answer", "there is no pod default/nobody")


def test_every_kind_that_can_be_explained_is_offered(calm: Client, open_tab: Open) -> None:
    options = open_tab(calm).page.locator("[name=kind] option").all()
    assert {option.get_attribute("value") for option in options} == set(KINDS)


def test_long_evidence_is_folded(calm: Client, open_tab: Open) -> None:
    seen = [{"object": f"node/n{n}", "field": "gpu", "value": "full"} for n in range(200)]
    long = {**FINDING, "evidence": seen}
    report = {**REPORT, "sections": [{"title": "Devices", "findings": [long], "nothing": ""}]}
    tab = open_tab(calm, path="/#explain/default/podgroup/waits", prepare=explaining(200, report))
    tab.sees("#answer summary", "195 more")
    last = tab.page.get_by_text("node/n199 gpu: full")
    assert not last.is_visible()
    tab.page.locator("#answer summary").press("Enter")
    last.wait_for()


def test_the_last_question_is_the_one_that_is_answered(calm: Client, open_tab: Open) -> None:
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    def hold_the_first(page: Page) -> None:
        page.route("**/explain/default/podgroup/waits", hold)

    tab = open_tab(calm, path="/#explain/default/podgroup/waits", prepare=hold_the_first)
    tab.sees("#answer", "Asking")
    tab.page.locator(f"{row('forms')} a").click()
    tab.sees("#answer .verdict", "podgroup default/forms")
    with tab.page.expect_response("**/explain/**"):
        waiting[0].fulfill(status=200, body=json.dumps(REPORT), content_type="application/json")
    tab.page.evaluate("new Promise((done) => setTimeout(done))")
    assert "podgroup default/forms" in tab.text("#answer .verdict")


@pytest.mark.parametrize("hash_", ["%", "explain/%/x", "explain/a/b/", "explain/a/b/c/d"])
def test_an_address_that_asks_nothing_is_left_alone(calm: Client, open_tab: Open, hash_: str) -> None:
    tab = open_tab(calm, path=f"/#{hash_}")
    tab.sees(row("waits"), "waiting")
    assert (tab.text("#answer"), tab.troubles) == ("", [])


# -- small screens, many gangs and none, and servers that go


def test_an_empty_cluster_is_shown_as_one(served: Serve, open_tab: Open) -> None:
    tab = open_tab(served(make_node("n1").gpus(8)))
    tab.sees("#replica", "1 nodes, 0 pods")
    assert tab.text("#no-gangs") == "There are no gangs."
    assert (tab.page.locator("#gangs").is_visible(), tab.troubles) == (False, [])


def test_of_many_gangs_the_first_are_shown_and_all_are_counted(served: Serve, open_tab: Open) -> None:
    many = [one for n in range(300) for one in (make_group(f"g{n}", 2), *members(f"g{n}", f"p{n}"))]
    tab = open_tab(served(*many))
    tab.sees("#left-out", "The first 200 are shown, 100 more are not.")
    assert tab.page.locator("#gangs tbody tr").count() == 200
    assert "300" in tab.text("#states li:has-text('forming')")
    assert not tab.page.locator("#no-gangs").is_visible()


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


def test_a_server_that_has_ended_is_said_to_be_lost(tmp_path: Path, open_tab: Open) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(snapshot(*CLUSTER))
    with serving(file) as client:
        tab = open_tab(client)
        tab.sees(row("waits"), "waiting")
    tab.sees("#lost", "Muster has not answered for")
    assert "waiting" in tab.text(row("waits")), "the last picture stays"
    tab.page.locator(f"{row('waits')} a").click()
    tab.sees("#answer", "Muster did not answer")


def test_a_server_that_is_lost_is_said_to_be_and_found_again(calm: Client, open_tab: Open) -> None:
    tab = open_tab(calm)
    tab.sees(row("waits"), "waiting")
    tab.page.context.set_offline(True)
    tab.sees("#lost", "Muster has not answered for")
    assert tab.page.get_by_role("alert").first.is_visible()
    assert "waiting" in tab.text(row("waits")), "the last picture stays"
    tab.page.context.set_offline(False)
    tab.page.locator("#lost").wait_for(state="hidden")
