# SPDX-License-Identifier: Apache-2.0
"""Which feature gates are on, from the metrics of those who have them.

Decides which gates matter here. Where metrics are out of reach the answer is None, "could not tell", and
never a default: those differ from version to version.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from app.codec.wire import UNUSABLE, Header, ObjectList
from app.domain.errors import ApiError
from app.kube.client import Api

_FEATURE: Final = b"kubernetes_feature_enabled{"
_LINE: Final = re.compile(rb'name="(\w+)".*\} ([01])')
_MATTERS: Final = re.compile(
    r"(Generic|TopologyAware)?Workload|Gang|DynamicResourceAllocation|DRA|ResourceHealth|PodLevelResources"
    r"|.*NominatedNodeName|OpportunisticBatching|MutatingAdmissionPolicy|SchedulerAsyncAPICalls"
)
_SECONDS: Final = 20.0
_SCHEDULERS: Final = 3
"""Replicas of the cluster's scheduler that are asked: control planes have three."""


async def api_gates(api: Api) -> dict[str, bool] | None:
    """Of the API server."""
    return await _gates(api, "/metrics")


async def scheduler_gates(api: Api) -> dict[str, dict[str, bool]] | None:
    """Of the cluster's own kube-schedulers, by the name of the pod, through the API server's proxy.

    That needs rights which few have, and a scheduler that shows its metrics to anybody.
    """
    pods = "/api/v1/namespaces/kube-system/pods"
    try:
        query = {"labelSelector": "component=kube-scheduler", "limit": str(_SCHEDULERS)}
        status, body = await api.request("GET", pods, query=query, timeout_seconds=_SECONDS)
        found = msgspec.json.decode(body, type=ObjectList[Header]) if status == HTTPStatus.OK else None
    except (ApiError, *UNUSABLE):
        return None
    names = [pod.metadata.name for pod in (found.items if found else None) or []]
    paths = {name: f"{pods}/{quote(f'https:{name}:10259', safe='')}/proxy/metrics" for name in names}
    told = {name: await _gates(api, path) for name, path in paths.items()}
    return {name: gates for name, gates in told.items() if gates is not None} or None


async def _gates(api: Api, path: str) -> dict[str, bool] | None:
    """Metrics are sorted and may be megabytes: hangs up behind the lines that are asked for."""
    found: dict[str, bool] = {}
    try:
        async with (
            asyncio.timeout(_SECONDS),
            aclosing(api.stream(path, query={}, inactivity_seconds=_SECONDS)) as batches,
        ):
            async for lines in batches:
                features = [line for line in lines if line.startswith(_FEATURE)]
                if found and not features:
                    break
                found |= _of(features)
    except (ApiError, TimeoutError):
        return None
    return {name: on for name, on in sorted(found.items()) if _MATTERS.match(name)} or None


def _of(lines: list[bytes]) -> dict[str, bool]:
    matches = filter(None, map(_LINE.search, lines))
    return {match[1].decode(): match[2] == b"1" for match in matches}
