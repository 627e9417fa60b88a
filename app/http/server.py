# SPDX-License-Identifier: Apache-2.0
"""Runs ASGI applications on sockets until SIGTERM: uvicorn with httptools and uvloop. Knows no routes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Coroutine
from typing import Any, NamedTuple

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from app.domain.errors import InputError
from app.http.gather import GatheringProtocol

KEEP_ALIVE_SECONDS = 180
"""Longer than Go's idle connections (90 s): it does not repeat a POST on a connection that we closed."""

log = structlog.get_logger()


class Listener(NamedTuple):
    """An application and the address where it is served."""

    app: ASGIApp
    host: str
    port: int


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on uvloop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def serve(running: contextlib.AbstractAsyncContextManager[None], listeners: list[Listener]) -> None:
    """Serve until SIGTERM or SIGINT, inside `running`. Raises `InputError` for a port that is taken."""
    servers = [(_Server(_config(app)), _listen(host, port)) for app, host, port in listeners]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running:
        tasks = [asyncio.create_task(server.serve(sockets=[listening])) for server, listening in servers]
        log.info("serving", addresses=[f"{host}:{port}" for _, host, port in listeners])
        await stop.wait()
        log.info("stopping")
    for server, _ in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app, http=GatheringProtocol, ws="none", lifespan="off", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, date_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=1,
    )  # fmt: skip


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: ours answer held calls first."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=host == "::")
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
