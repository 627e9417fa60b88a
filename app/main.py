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
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI

from app.codec import snapshot as snapshots
from app.extender.service import Service
from app.http.explain import explanations
from app.http.metrics import Metrics
from app.http.ops import ops, version
from app.http.overview import overview
from app.http.page import page
from app.http.server import Listener, run, serve
from app.http.snapshot import live_snapshot, snapshot
from app.http.verbs import Verbs
from app.inventory.inventory import Inventory
from app.settings import Settings
from app.simulate.cluster import SnapshotCluster

log = structlog.get_logger()


def serve_snapshot(settings: Settings, file: Path, *, ops_port: int | None) -> None:
    """Serve the embedded cluster until SIGTERM. Raises `InputError` for an unusable file or port."""
    cluster = SnapshotCluster(snapshots.read(file))
    service = Service.embedded(
        cluster, clock=time.monotonic, timing=settings.timing, scheduler=settings.scheduler_name
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

    sight = (overview(service, replica=_replica(settings)), page(), explanations(service, cluster))
    rest = _app(snapshot(cluster), version(), *sight)
    front = Verbs(service, metrics, rest=rest)
    listeners = [Listener(front, settings.host, settings.port)]
    if ops_port is None:
        rest.include_router(ops(service, metrics))
    else:
        back = _app(ops(service, metrics), version(), *sight)
        listeners.append(Listener(back, settings.host, ops_port))
    run(serve(running(), listeners))


def serve_live(settings: Settings, *, kubeconfig: Path | None, context: str | None) -> None:
    """Serve a real cluster until SIGTERM. Raises `InputError` for unusable credentials or a taken port."""
    run(_live(settings, kubeconfig, context))


async def _live(settings: Settings, kubeconfig: Path | None, context: str | None) -> None:
    # Only here: the Kubernetes client takes most of a second to import, and a snapshot needs none of it.
    from app.kube.admitter import Admitter
    from app.kube.binder import Binder
    from app.kube.client import Api
    from app.kube.events import Reporter
    from app.kube.gatekeeper import Gatekeeper
    from app.kube.lease import AlwaysActive, LeaseWatch
    from app.kube.looking import Looker
    from app.kube.taking import Taking
    from app.kube.watches import Watches

    api = await Api.connect(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
    hostname = _replica(settings)
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
        gatekeeper=Gatekeeper(api, settings.namespace),
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

    def take(keep_environment: bool) -> AsyncGenerator[bytes, None]:
        return Taking(api, keep_environment=keep_environment).text()

    health = ops(service, metrics)
    sight = (overview(service, replica=hostname), page(), explanations(service, Looker(api)))
    front = Verbs(service, metrics, rest=_app(health, version(), live_snapshot(take), *sight))
    back = _app(health, version(), *(sight if settings.ops_page else ()))
    listeners = [
        Listener(front, settings.host, settings.port),
        Listener(back, settings.ops_host, settings.ops_port),
    ]
    await serve(running(), listeners)


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


def _replica(settings: Settings) -> str:
    """How this process is called: by the name of its host, which the scheduler's Lease knows as well."""
    return settings.hostname or socket.gethostname()


def _app(*routers: object) -> FastAPI:
    app = FastAPI(title="Muster", docs_url=None, redoc_url=None, openapi_url=None)
    for router in routers:
        app.include_router(router)  # type: ignore[arg-type]
    return app
