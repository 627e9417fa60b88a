# SPDX-License-Identifier: Apache-2.0
"""GET /snapshot and POST /snapshot/events: only with `muster serve --snapshot`."""

from __future__ import annotations

import orjson
from fastapi import APIRouter, Request, Response

from app.domain.errors import InputError
from app.http.verbs import JSON
from app.simulate.cluster import SnapshotCluster


def snapshot(cluster: SnapshotCluster) -> APIRouter:
    """Routes of the embedded cluster."""
    router = APIRouter()

    @router.get("/snapshot")
    async def show() -> Response:
        return Response(orjson.dumps(cluster.as_list()), media_type=JSON)

    @router.post("/snapshot/events")
    async def events(request: Request) -> Response:
        try:
            applied = cluster.apply_events(orjson.loads(await request.body()))
        except (InputError, orjson.JSONDecodeError) as error:
            return Response(orjson.dumps({"error": f"events: {error}"}), status_code=400, media_type=JSON)
        return Response(orjson.dumps({"applied": applied}), media_type=JSON)

    return router
