# SPDX-License-Identifier: Apache-2.0
"""An answer leaves in one piece, and a connection that goes takes nothing with it that was said before."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from app.http.gather import GatheringProtocol

REQUEST = b"POST /filter HTTP/1.1\r\nHost: muster\r\n%sContent-Length: 2\r\n\r\n{}"


class _Wire(asyncio.Transport):
    """A client that only listens. `sent` holds what each write brought."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def writelines(self, list_of_data: Any) -> None:
        self.sent.append(b"".join(list_of_data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"true"})


def _connect(wire: _Wire) -> GatheringProtocol:
    config = uvicorn.Config(_app, lifespan="off", log_config=None)
    config.load()
    protocol = GatheringProtocol(config, server_state=ServerState(), app_state={})
    protocol.connection_made(wire)
    return protocol


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_head_and_body_are_written_at_once() -> None:
    wire = _Wire()
    protocol = _connect(wire)
    for _ in range(2):
        protocol.data_received(REQUEST % b"")
        await _settle()
    assert wire.sent == [b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ntrue"] * 2
    assert not wire.closed
    protocol.connection_lost(None)


async def test_an_answer_goes_out_before_the_connection_closes() -> None:
    wire = _Wire()
    protocol = _connect(wire)
    protocol.data_received(REQUEST % b"Connection: close\r\n")
    await _settle()
    assert [answer.endswith(b"\r\n\r\ntrue") for answer in wire.sent] == [True]
    assert wire.closed
    protocol.connection_lost(None)


async def test_nothing_is_written_to_a_connection_that_is_gone() -> None:
    wire = _Wire()
    protocol = _connect(wire)
    protocol.transport.write(b"late")
    wire.closed = True
    await _settle()
    protocol.connection_lost(None)
    assert wire.sent == []
