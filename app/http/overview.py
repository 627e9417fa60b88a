# SPDX-License-Identifier: Apache-2.0
"""GET /overview: gangs and devices in one picture, for `muster top` and the page.

However many people look, a picture is made at most once a second: the verbs run on the same event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Query, Response

from app.extender.overview import Lookout
from app.extender.service import Service
from app.http.verbs import JSON

FRESH_SECONDS: Final = 1.0
GANGS: Final = 200
MOST_GANGS: Final = 1000


def overview(
    service: Service,
    *,
    replica: str,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> APIRouter:
    """The route. `replica` is how people call this process."""
    router, lookout = APIRouter(), Lookout(service, replica=replica)
    pictures: dict[int, tuple[float, bytes]] = {}

    def picture(limit: int) -> bytes:
        at, body = pictures.get(limit, (0.0, b""))
        if not body or clock() - at >= FRESH_SECONDS:
            body = msgspec.json.encode(lookout.look(now=wall(), limit=limit))
            pictures.clear()
            pictures[limit] = (clock(), body)
        return body

    @router.api_route("/overview", methods=["GET", "HEAD"])
    async def show(limit: Annotated[int, Query(ge=0, le=MOST_GANGS)] = GANGS) -> Response:
        return Response(picture(limit), media_type=JSON, headers={"Cache-Control": "no-store"})

    return router
