# SPDX-License-Identifier: Apache-2.0
"""Tells the API server whether the members it creates get our gate: a label on Muster's own namespace, which
the admission policy looks at (deploy/admission-policy.yaml, binding `muster-burst`).

Decides nothing, and touches that label alone.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import structlog

from app.domain.errors import ApiError
from app.domain.plan import Outcome
from app.kube.binder import GONE
from app.kube.client import MERGE_PATCH, Api, refused, writer_query

LABEL: Final = "muster.dev/burst"
_SECONDS: Final = 10.0
_log = structlog.get_logger("muster.kube.gatekeeper")


class Gatekeeper:
    """One PATCH per word. Safe to repeat; expected failures are `Outcome`s."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}"
        self._off = False

    async def leave_gates_off(self, off: bool) -> Outcome:
        """`gone` when the namespace is not there."""
        try:
            status, answer = await self._api.request(
                "PATCH",
                self._path,
                query=writer_query(),
                body={"metadata": {"labels": {LABEL: "true" if off else None}}},
                content_type=MERGE_PATCH,
                timeout_seconds=_SECONDS,
                write="burst",
            )
            if status == HTTPStatus.NOT_FOUND:
                return GONE
            if status != HTTPStatus.OK:
                raise refused("PATCH", self._path, status, answer)
        except ApiError as error:
            _log.warning("whether new members get the gate could not be changed", error=str(error))
            return Outcome(error=str(error))
        if off is not self._off:
            _log.info("new members", gate="left off" if off else "put on")
        self._off = off
        return Outcome()
