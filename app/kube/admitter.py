# SPDX-License-Identifier: Apache-2.0
"""Admits pods: nominates a node for one, clears the nomination, lifts our scheduling gate.

Decides what a refused patch means and whether to try again. Never touches another gate or field, and never
another pod than the one whose UID was given: the UID is part of the patch, and the API server answers 422 on
`metadata.uid` when a recreated pod has the name (checked against 1.37).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from random import Random
from typing import Final

import msgspec
from msgspec import Struct

from app.domain.errors import ApiError
from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from app.domain.pod import GATE, SINGLE_LABEL
from app.kube.backoff import Backoff
from app.kube.binder import GONE, read_pod
from app.kube.client import (
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Api,
    object_path,
    refused,
    writer_query,
)

TRIES: Final = 4
"""Attempts per patch while the API sheds load, fails or does not answer: about 2 s in all."""

_PATCH_SECONDS: Final = 10.0


class Admitter:
    """Patches with field manager `muster`. Safe to repeat; expected failures are `Outcome`s.

    `may_write` is asked before every attempt (design: *active*), so that retries stop when the lease is lost.
    """

    def __init__(
        self, api: Api, *, rng: Random | None = None, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._api = api
        self._rng = rng or Random()
        self._may_write = may_write

    async def nominate(self, pod: PodRef, node: NodeName | None) -> Outcome:
        """Set `status.nominatedNodeName`; None clears it. On a bound pod this has no effect and is ok."""
        path = f"{object_path('/api/v1', pod.namespace, 'pods', pod.name)}/status"
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node}}
        return await self._patch("nomination", pod, path, body, MERGE_PATCH)

    async def lift_gate(self, pod: PodRef, *, single: bool = False) -> Outcome:
        """Remove `muster.dev/gang` from `spec.schedulingGates`, and no other gate; ok when it is off.

        `single` labels the pod as a gang of one in the same patch.
        """
        path = object_path("/api/v1", pod.namespace, "pods", pod.name)
        gates = [{"$patch": "delete", "name": GATE}]
        meta: dict[str, object] = {"uid": pod.uid, **({"labels": {SINGLE_LABEL: "true"}} if single else {})}
        body = {"metadata": meta, "spec": {"schedulingGates": gates}}
        return await self._patch("gate", pod, path, body, STRATEGIC_PATCH)

    async def _patch(self, kind: str, pod: PodRef, path: str, body: object, content_type: str) -> Outcome:
        backoff = Backoff(self._rng)
        for attempt in range(1, TRIES + 1):
            if not self._may_write():
                return Outcome(error="not active: another Muster has taken over")
            try:
                return await self._try(kind, pod, path, body, content_type)
            except ApiError as error:
                # 409 without a UID in it: the object changed between the server's read and write.
                if attempt == TRIES or not (error.retry or error.status == HTTPStatus.CONFLICT):
                    return Outcome(error=str(error))
            await asyncio.sleep(backoff.next())
        raise AssertionError("unreachable")

    async def _try(self, kind: str, pod: PodRef, path: str, body: object, content_type: str) -> Outcome:
        status, answer = await self._api.request(
            "PATCH",
            path,
            query=writer_query(),
            body=body,
            content_type=content_type,
            timeout_seconds=_PATCH_SECONDS,
            write=kind,
        )
        if status == HTTPStatus.OK:
            return Outcome()
        if status == HTTPStatus.NOT_FOUND:
            return GONE
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            if "metadata.uid" in invalid_fields(answer):
                return GONE
            found = await read_pod(self._api, pod)
            if found is None:
                return GONE
            if found.spec is not None and found.spec.node_name:
                return Outcome()  # bound meanwhile: there is nothing left to admit
        raise refused("PATCH", path, status, answer)


class _Cause(Struct, gc=False):
    reason: str = ""
    field: str = ""


class _Details(Struct, gc=False):
    causes: list[_Cause] = []


class _Refusal(Struct, gc=False):
    details: _Details | None = None


def invalid_fields(body: bytes) -> set[str]:
    """The fields that a refused write names (meta/v1 Status `details.causes[].field`)."""
    return {cause.field for cause in _causes(body)}


def is_ownership_conflict(body: bytes) -> bool:
    """Whether a 409 says that another field manager owns what was applied."""
    return any(cause.reason == "FieldManagerConflict" for cause in _causes(body))


def _causes(body: bytes) -> list[_Cause]:
    try:
        details = msgspec.json.decode(body, type=_Refusal).details
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return details.causes if details else []
