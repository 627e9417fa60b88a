# SPDX-License-Identifier: Apache-2.0
"""Reads on demand what an explanation rests on beside the inventory: the subject, its pods and owners, the
small kinds of its namespace. Decides which; what it may not read is an `Unseen`. Writes nothing.

All claims and slices of the cluster are read only where a pod of the subject has a claim.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec
import orjson

from app.codec.kinds import KINDS, ApiKind
from app.codec.objects import GROUP_LABEL
from app.codec.snapshot import JsonObject
from app.codec.snapshot import Unseen as Gap
from app.codec.wire import UNUSABLE, ObjectList
from app.domain.errors import ApiError
from app.explain.facts import Unseen
from app.explain.objects import Objects, dig, mapping, maps, text
from app.explain.report import KINDS as SUBJECTS
from app.explain.report import Subject
from app.explain.sight import Sight, agreed, kind_name
from app.kube.client import Api, object_path, refused
from app.kube.collect import Page, collect, why
from app.kube.gates import scheduler_gates

PAGE: Final = 100
"""Pods of a request: they are decoded in one step of the event loop."""

STEP: Final = 50
"""Other objects that are."""

_JOBSET: Final = "jobset.sigs.k8s.io/jobset-name"
_OF_DEVICES: Final = ("ResourceClaim", "ResourceSlice", "DeviceTaintRule")
_ELSEWHERE: Final = ("Node", "Pod", "Namespace", *_OF_DEVICES)
"""Kinds that are followed already, or read in another way."""

NEAR: Final = tuple(k for k in KINDS if k.namespaced and k.kind not in (*_ELSEWHERE, "Lease"))
CLUSTER: Final = tuple(
    k for k in KINDS if (not k.namespaced or k.kind == "Lease") and k.kind not in _ELSEWHERE
)
DEVICES: Final = tuple(k for k in KINDS if k.kind in _OF_DEVICES)


class Looker:
    """Reads with the rights that Muster has."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._gates: dict[str, bool | None] | None = None

    async def read(self, subject: Subject) -> Sight:
        """What is there now. Raises `ApiError` when there is no API at all."""
        found, unseen = await self._listed(NEAR, subject.namespace)
        more, gaps = await self._listed(CLUSTER, None)
        found, unseen = found + more, unseen + gaps
        namespace = f"/api/v1/namespaces/{quote(subject.namespace, safe='')}"
        for what, read in (("Namespace", self._one(namespace)), ("Pod", self._pods(subject, Objects(found)))):
            try:
                found += await read
            except ApiError as error:
                unseen.append(Unseen(what, why(error)))
        if any(maps(item, "spec", "resourceClaims") for item in found if item.get("kind") == "Pod"):
            more, gaps = await self._listed(DEVICES, None)
            found, unseen = found + more, unseen + gaps
        return Sight(objects=found, unseen=tuple(unseen), gates=await self._scheduler_gates())

    async def _scheduler_gates(self) -> dict[str, bool | None] | None:
        """They change only when a scheduler is started anew."""
        if self._gates is None:
            self._gates = agreed(await scheduler_gates(self._api))
        return self._gates

    async def _listed(
        self, kinds: tuple[ApiKind, ...], namespace: str | None
    ) -> tuple[list[JsonObject], list[Unseen]]:
        found: list[JsonObject] = []
        unseen: list[Unseen] = []
        names = {kind.name: kind_name(kind) for kind in kinds}
        async for one in collect(self._api, namespace=namespace, kinds=kinds):
            if isinstance(one, Page):
                found += await _decoded(one.items)
            elif isinstance(one, Gap):
                unseen.append(Unseen(names[one.kind], one.why))
        return found, unseen

    # -- pods

    async def _pods(self, subject: Subject, objects: Objects) -> list[JsonObject]:
        """The pod and those of its gang; those of the group; those that the owner selects."""
        where, name = subject.namespace, subject.name
        if subject.kind == "pod":
            pods = await self._one(object_path("/api/v1", where, "pods", name))
            label = text(pods[0], "metadata", "labels", GROUP_LABEL) if pods else ""
            native = text(pods[0], "spec", "schedulingGroup", "podGroupName") if pods else ""
            return pods if not label and not native else await self._of_group(where, label, native)
        if subject.kind == "podgroup":
            return await self._of_group(where, name, name)
        owner = objects.get(SUBJECTS[subject.kind], where, name)
        labels = (
            {_JOBSET: name} if subject.kind == "jobset" else mapping(owner, "spec", "selector", "matchLabels")
        )
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        return await self._selected(where, selector) if owner is not None and selector else []

    async def _of_group(self, namespace: str, label: str, native: str) -> list[JsonObject]:
        """Members by label, and by the field of the native API, which no selector knows."""
        labelled = await self._selected(namespace, f"{GROUP_LABEL}={label}") if label else []
        if not native or labelled:
            return labelled
        everybody = await self._selected(namespace, "")
        return [pod for pod in everybody if dig(pod, "spec", "schedulingGroup", "podGroupName") == native]

    async def _selected(self, namespace: str, selector: str) -> list[JsonObject]:
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        query, found = {"limit": str(PAGE), "labelSelector": selector}, list[JsonObject]()
        while True:
            status, body = await self._api.request("GET", path, query=query)
            if status != HTTPStatus.OK:
                raise refused("GET", path, status, body)
            try:
                page = msgspec.json.decode(body, type=ObjectList[JsonObject])
            except UNUSABLE as error:
                raise ApiError(f"GET {path}: not a list of pods: {error}") from None
            found += ({"apiVersion": "v1", "kind": "Pod", **pod} for pod in page.items or ())
            if not page.metadata.continue_:
                return found
            query = {**query, "continue": page.metadata.continue_}

    async def _one(self, path: str) -> list[JsonObject]:
        """The object at a path, if it is there."""
        status, body = await self._api.request("GET", path)
        if status == HTTPStatus.NOT_FOUND:
            return []
        if status != HTTPStatus.OK:
            raise refused("GET", path, status, body)
        try:
            return [msgspec.json.decode(body, type=JsonObject)]
        except UNUSABLE as error:
            raise ApiError(f"GET {path}: not an object: {error}") from None


async def _decoded(items: list[bytes]) -> list[JsonObject]:
    """A page, some objects at a time: kube-scheduler's calls are answered in between."""
    found: list[JsonObject] = []
    for start in range(0, len(items), STEP):
        found += map(orjson.loads, items[start : start + STEP])
        await asyncio.sleep(0)
    return found
