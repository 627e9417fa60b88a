# SPDX-License-Identifier: Apache-2.0
"""Binds one pod to one node and finds out what became of it.

Decides whether an unclear answer was a success, by reading the pod back. Never binds twice, never retries a
binding that may have been made, and never another pod than the one whose UID was given.
"""

from __future__ import annotations

from typing import Final

import msgspec

from app.codec.wire import PodObject
from app.domain.errors import ApiError
from app.domain.ids import NodeName
from app.domain.plan import Outcome, PodRef
from app.kube.client import Api, object_path, refused

_BIND_SECONDS: Final = 15.0
_READ_SECONDS: Final = 5.0
_UNCLEAR: Final = (0, 404, 408, 409, 410)
_POD = msgspec.json.Decoder(PodObject)
GONE: Final = Outcome(error="the pod does not exist any more", gone=True)


class Binder:
    """POSTs core/v1 Binding with the pod's UID as precondition. One call takes at most 20 s."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def bind(self, pod: PodRef, node: NodeName) -> Outcome:
        """Bind this very pod. Safe to repeat; raises nothing for an expected failure.

        `error` may mean that the binding is still on its way (a lost answer, and the pod still unbound).
        """
        try:
            await self._post(pod, node)
        except ApiError as error:
            if error.status in _UNCLEAR or error.status >= 500:
                return await self._read_back(pod, node, str(error))
            return Outcome(error=str(error))
        return Outcome()

    async def _post(self, pod: PodRef, node: NodeName) -> None:
        path = f"{object_path('/api/v1', pod.namespace, 'pods', pod.name)}/binding"
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        status, answer = await self._api.request(
            "POST", path, body=body, timeout_seconds=_BIND_SECONDS, write="binding"
        )
        if status not in (200, 201, 202):
            raise refused("POST", path, status, answer)

    async def _read_back(self, pod: PodRef, node: NodeName, cause: str) -> Outcome:
        try:
            found = await read_pod(self._api, pod)
        except ApiError as error:
            return Outcome(error=f"{cause}; and reading the pod back failed: {error}")
        if found is None:
            return GONE
        bound = found.spec.node_name if found.spec else None
        if bound == node:
            return Outcome()
        return Outcome(error=f"already bound to node {bound} ({cause})" if bound else cause)


async def read_pod(api: Api, pod: PodRef) -> PodObject | None:
    """The pod now; None when it does not exist or is another one of that name. Raises `ApiError`."""
    path = object_path("/api/v1", pod.namespace, "pods", pod.name)
    status, body = await api.request("GET", path, timeout_seconds=_READ_SECONDS)
    if status == 404:
        return None
    if status != 200:
        raise refused("GET", path, status, body)
    try:
        found = _POD.decode(body)
    except msgspec.DecodeError as error:
        raise ApiError(f"GET {path}: not a pod: {error}") from None
    return found if found.metadata.uid == pod.uid else None
