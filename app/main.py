# SPDX-License-Identifier: Apache-2.0
"""The composition root: the only place where the parts are built and handed to each other."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import structlog
import uvicorn
import uvloop
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


Serving = list[tuple[FastAPI, str, int]]


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

    metrics = Metrics(service)

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        service.observe(cluster.initial())
        gc.freeze()
        async with _background(service.run(), metrics.stalls.run()):
            yield
            await service.stop()

    front = _app(verbs(service, metrics), snapshot(cluster), version())
    serving: Serving = [(front, settings.host, settings.port)]
    if ops_port is None:
        front.include_router(ops(service, metrics))
    else:
        serving.append((_app(ops(service, metrics), version()), settings.host, ops_port))
    _run(_serve(running(), serving))


def serve_live(settings: Settings, *, kubeconfig: Path | None, context: str | None) -> None:
    """Serve a real cluster until SIGTERM. Raises `InputError` for unusable credentials or a taken port."""
    _run(_live(settings, kubeconfig, context))


async def _live(settings: Settings, kubeconfig: Path | None, context: str | None) -> None:
    # Only here: the Kubernetes client takes most of a second to import, and a snapshot needs none of it.
    from app.kube.admitter import Admitter
    from app.kube.binder import Binder
    from app.kube.client import Api
    from app.kube.events import Reporter
    from app.kube.lease import AlwaysActive, LeaseWatch
    from app.kube.watches import Watches

    api = await Api.connect(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
    hostname = settings.hostname or socket.gethostname()
    leadership: AlwaysActive | LeaseWatch = AlwaysActive()
    if settings.active == "lease":
        leadership = LeaseWatch(api, settings.namespace, hostname=hostname, name=settings.lease)
    reporter = Reporter(api, may_write=lambda: leadership.active, instance=hostname)
    service = Service(
        inventory=Inventory(scheduler=settings.scheduler_name),
        binder=Binder(api),
        admitter=Admitter(api, may_write=lambda: leadership.active),
        reporter=reporter,
        leadership=leadership,
        problems=lambda: watches.problems() + leadership.problems(),
        clock=time.monotonic,
        timing=settings.timing,
    )
    watches = Watches(api, service.observe, decoder=service.decoder, stale_seconds=settings.stale_seconds)
    metrics = Metrics(service)
    metrics.live(writes=lambda: api.writes, events=watches.events)

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with _background(
            watches.run(), leadership.run(), reporter.run(), service.run(), metrics.stalls.run(),
            _freeze(watches.wait_synced),
        ):  # fmt: skip
            yield
            await service.stop()
        await api.close()

    health = ops(service, metrics)
    front = _app(verbs(service, metrics), health, version())
    back = _app(health, version())
    serving: Serving = [
        (front, settings.host, settings.port),
        (back, settings.ops_host, settings.ops_port),
    ]
    await _serve(running(), serving)


async def _freeze(synced: Callable[[], Awaitable[None]]) -> None:
    """What the first lists brought lives long: keep the garbage collector from walking it again and again."""
    await synced()
    gc.freeze()  # without a collection before it: a quarter of a second for 50,000 pods, held up for nothing


@contextlib.asynccontextmanager
async def _background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these beside the servers. They end with them; one that fails takes the process down, loudly."""
    tasks = [asyncio.create_task(_loudly(one)) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _loudly(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("a background task failed; exiting, to be restarted with a fresh picture")
        os.kill(os.getpid(), signal.SIGTERM)


def _run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


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
            timeout_graceful_shutdown=1,
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
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024, dualstack_ipv6=host == "::")
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from None
