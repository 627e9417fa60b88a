# SPDX-License-Identifier: Apache-2.0
"""A headless browser and tabs in it that take note of all they ask for and complain about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from app.cli.client import Client
from app.cli.serving import serving
from tests.browser.install import find
from tests.builders import Builder, snapshot

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE_MS = 60_000

Serve = Callable[..., Client]
Open = Callable[..., "Tab"]


class Tab:
    """A page; `asked` are the URLs it wanted, `troubles` its errors and the console's."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.troubles: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("console", lambda said: self.troubles.append(said.text))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(dialog.message)
        dialog.dismiss()

    def sees(self, selector: str, text: str) -> None:
        """Wait until an element holds the text."""
        self.page.locator(selector).filter(has_text=text).first.wait_for()

    def text(self, selector: str) -> str:
        """What an element shows now."""
        return self.page.locator(selector).first.inner_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for the tests of a module and no longer: as long as it is there, an event loop runs here."""
    path = find()
    if path is None:
        pytest.skip("no browser: see tests/browser/install.py")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE_MS)
        yield started
        started.close()


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Open]:
    """Opens a page of a service; `width` in CSS pixels. `prepare` is called with the page beforehand."""
    contexts = []

    def open_(
        client: Client, *, width: int = 1280, path: str = "/", prepare: Callable[[Page], None] | None = None
    ) -> Tab:
        context = browser.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        tab = Tab(context.new_page())
        if prepare is not None:
            prepare(tab.page)
        tab.page.goto(client.url + path)
        return tab

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serve]:
    """Starts `muster serve --snapshot` with these objects; stops it at the end."""
    running = []

    def serve(*objects: Builder) -> Client:
        file = tmp_path / "cluster.json"
        file.write_bytes(snapshot(*objects))
        running.append(serving(file))
        return running[-1].__enter__()

    yield serve
    for one in running:
        one.__exit__(None, None, None)
