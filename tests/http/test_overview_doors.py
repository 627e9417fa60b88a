# SPDX-License-Identifier: Apache-2.0
"""On which ports the page is: everywhere with a snapshot, on loopback alone in a cluster unless let out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app import main
from app.http.server import Listener
from app.kube.client import Api
from app.settings import Settings, load
from tests.builders import make_node, snapshot

SIGHT = {"/", "/page.css", "/page.js", "/page.svg", "/overview"}
HEALTH = {"/healthz", "/readyz", "/metrics", "/version"}


@pytest.fixture
def listeners(monkeypatch: pytest.MonkeyPatch) -> list[Listener]:
    """What would be served, once `main` has been told to serve."""
    found: list[Listener] = []

    async def serve(running: object, given: list[Listener]) -> None:
        found.extend(given)

    async def connect(**given: object) -> Any:
        return SimpleNamespace(writes={})

    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "run", asyncio.run)
    monkeypatch.setattr(Api, "connect", connect)
    return found


def paths(app: Any) -> set[str]:
    """Those of the routes above that it has, as a caller finds out: HEAD, or 405 where that is not served."""
    return {path for path in SIGHT | HEALTH if asyncio.run(status(app, path)) != 404}


async def status(app: Any, path: str) -> int:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "HEAD", "path": path, "query_string": b"", "headers": []}
    await app(scope, None, send)
    return int(sent[0]["status"])


def live(settings: Settings) -> None:
    main.serve_live(settings, kubeconfig=None, context=None)


def test_in_a_cluster_it_is_on_loopback_alone(listeners: list[Listener]) -> None:
    live(load(active="always"))
    front, back = listeners
    assert (front.host, front.port) == ("127.0.0.1", 8888)
    assert paths(front.app) >= SIGHT | HEALTH
    assert (back.host, back.port, paths(back.app)) == ("0.0.0.0", 8889, HEALTH)


def test_it_is_let_out_on_demand(listeners: list[Listener], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_OPS_PAGE", "true")
    live(load(active="always"))
    assert paths(listeners[1].app) == SIGHT | HEALTH


@pytest.mark.parametrize("ops_port", [None, 8889])
def test_with_a_snapshot_it_is_on_every_port(
    listeners: list[Listener], tmp_path: Path, ops_port: int | None
) -> None:
    file = tmp_path / "cluster.json"
    file.write_bytes(snapshot(make_node("n1")))
    main.serve_snapshot(load(), file, ops_port=ops_port)
    assert {one.host for one in listeners} == {"127.0.0.1"}
    assert len(listeners) == (1 if ops_port is None else 2)
    assert all(paths(one.app) >= SIGHT for one in listeners)
    assert paths(listeners[-1].app) >= HEALTH
