# SPDX-License-Identifier: Apache-2.0
"""POST /filter /prioritize /bind /preempt: raw bytes to the service and back.

A body that cannot be used is answered with HTTP 200 and an `Error`, because kube-scheduler does not read
the text of any other status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from fastapi import APIRouter, Request, Response

from app.extender.service import Service
from app.http.metrics import Metrics

JSON = "application/json"
log = structlog.get_logger()


def verbs(service: Service, metrics: Metrics) -> APIRouter:
    """Routes of the four verbs."""
    router = APIRouter()

    def route(verb: str, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        observe = metrics.verb(verb)

        async def handler(request: Request) -> Response:
            body = await request.body()
            with observe():
                return Response(await answer(body), media_type=JSON)

        router.add_api_route(f"/{verb}", handler, methods=["POST"], name=verb)

    route("filter", service.filter)
    route("prioritize", service.prioritize)
    route("preempt", service.preempt)

    @router.post("/bind")
    async def bind(request: Request) -> Response:
        body = await request.body()
        with metrics.verb("bind")():
            return Response(await service.bind_call(body, hung_up=lambda: _hung_up(request)), media_type=JSON)

    return router


async def _hung_up(request: Request) -> None:
    """Ends when the caller drops the connection."""
    await request.receive()  # the body is read: what comes next is the disconnect
