# SPDX-License-Identifier: Apache-2.0
"""GET /healthz /readyz /metrics /version: for kubelet, Prometheus and people."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from app import __version__
from app.extender.service import Service
from app.http.metrics import Metrics


def ops(service: Service, metrics: Metrics) -> APIRouter:
    """Routes that may be open to the pod network."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> PlainTextResponse:
        return PlainTextResponse("ok")

    @router.get("/readyz")
    async def readyz() -> PlainTextResponse:
        problems = service.unready()
        return PlainTextResponse("\n".join(problems) or "ok", status_code=503 if problems else 200)

    @router.get("/metrics")
    async def metrics_page() -> Response:
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")

    return router


def version() -> APIRouter:
    """GET /version."""
    router = APIRouter()

    @router.get("/version")
    async def show() -> dict[str, str]:
        return {"version": __version__}

    return router
