# SPDX-License-Identifier: Apache-2.0
"""The composition root: the only place where the parts are built and handed to each other."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from app.codec import snapshot as snapshots
from app.domain.errors import InputError
from app.extender.service import Service
from app.http.metrics import Metrics
from app.http.ops import ops, version
from app.http.snapshot import snapshot
from app.http.verbs import verbs
from app.inventory.inventory import Inventory
from app.settings import Settings
from app.simulate.cluster import SnapshotCluster

KEEP_ALIVE_SECONDS = 180
"""Longer than Go's idle connections (90 s): it does not repeat a POST on a connection that we closed."""

log = structlog.get_logger()


def serve_snapshot(settings: Settings, file: Path, *, ops_port: int | None) -> None:
    """Serve the embedded cluster until SIGTERM. Raises `InputError` for an unusable file or port."""
    cluster = SnapshotCluster(snapshots.read(file))
    service = Service(
        inventory=Inventory(scheduler=settings.scheduler_name),
        binder=cluster,
        admitter=cluster,
        reporter=cluster,
        leadership=cluster,
        problems=list,
        clock=time.monotonic,
        timing=settings.timing,
    )
    cluster.deliver = service.observe

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        service.observe(cluster.initial())
        gc.freeze()
        ticker = asyncio.create_task(service.run())
        try:
            yield
        finally:
            await service.stop()
            ticker.cancel()

    metrics = Metrics(service)
    front = _app(verbs(service, metrics), snapshot(cluster), version())
    health = ops(service, metrics)
    if ops_port is None:
        front.include_router(health)
        asyncio.run(_serve(running(), [(front, settings.host, settings.port)]))
    else:
        back = _app(health, version())
        asyncio.run(
            _serve(running(), [(front, settings.host, settings.port), (back, settings.host, ops_port)])
        )


def _app(*routers: object) -> FastAPI:
    app = FastAPI(title="Muster", docs_url=None, redoc_url=None, openapi_url=None)
    for router in routers:
        app.include_router(router)  # type: ignore[arg-type]
    return app


async def _serve(
    running: contextlib.AbstractAsyncContextManager[None], apps: list[tuple[FastAPI, str, int]]
) -> None:
    servers = []
    for app, host, port in apps:
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_keep_alive=KEEP_ALIVE_SECONDS, lifespan="off",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        servers.append((_Server(config), [_listen(host, port)]))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with running:
        tasks = [asyncio.create_task(server.serve(sockets=sockets)) for server, sockets in servers]
        log.info("serving", addresses=[f"{host}:{port}" for _, host, port in apps])
        await stop.wait()
        log.info("stopping")
    for server, _ in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)


class _Server(uvicorn.Server):
    """uvicorn without its own signal handlers: ours answer held calls first."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=1024)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
