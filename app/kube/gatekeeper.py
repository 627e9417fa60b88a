# SPDX-License-Identifier: Apache-2.0
"""Tells the API server whether the pods it creates get our gate: a label on the ConfigMap that the admission
policy looks for (deploy/admission-policy.yaml, binding `muster-burst`).

Decides nothing. Touches that label alone, and never creates the ConfigMap: where somebody has taken it away,
every pod is gated.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import structlog

from app.domain.errors import ApiError
from app.domain.plan import Outcome
from app.kube.binder import GONE
from app.kube.client import MERGE_PATCH, Api, object_path, refused, writer_query

NAME: Final = "muster-burst"
LABEL: Final = "muster.dev/burst"
_SECONDS: Final = 10.0
_log = structlog.get_logger("muster.kube.gatekeeper")


class Gatekeeper:
    """One PATCH per change of mind. Safe to repeat; expected failures are `Outcome`s."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = object_path("/api/v1", namespace, "configmaps", NAME)

    async def leave_gates_off(self, off: bool) -> Outcome:
        """`gone` when the ConfigMap is not there."""
        body = {"metadata": {"labels": {LABEL: "true" if off else None}}}
        try:
            status, answer = await self._api.request(
                "PATCH",
                self._path,
                query=writer_query(),
                body=body,
                content_type=MERGE_PATCH,
                timeout_seconds=_SECONDS,
                write="burst",
            )
            if status == HTTPStatus.NOT_FOUND:
                return GONE
            if status != HTTPStatus.OK:
                raise refused("PATCH", self._path, status, answer)
        except ApiError as error:
            _log.warning("new pods stay as they were, with or without the gate", error=str(error))
            return Outcome(error=str(error))
        _log.info("new pods", gate="left off" if off else "put on")
        return Outcome()
