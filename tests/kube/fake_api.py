# SPDX-License-Identifier: Apache-2.0
"""A small API server over real HTTP: paged lists, watches, the few writes Muster makes, faults on demand.

What it answers is checked against the real kube-apiserver: test_contract.py runs on both. It stores dicts,
validates next to nothing and knows no RBAC.
"""

from __future__ import annotations

import asyncio
import copy
import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Object = dict[str, Any]

CORE = tuple(f"/api/v1/{plural}" for plural in ("pods", "nodes", "namespaces", "events"))
LEASES = "/apis/coordination.k8s.io/v1/leases"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


@dataclass
class Fault:
    """What happens to requests that match, `times` times. `action`: a status code, or one of
    `drop` (hang up unread), `lose` (do it, then hang up), `hang` (do not answer until the client leaves)."""

    method: str
    part: str
    action: int | str
    times: int = 1


@dataclass(eq=False)
class Stream:
    """An answer that is kept open, and what is still to be sent on it as it is."""

    request: web.Request
    lines: list[bytes] = field(default_factory=list)
    cut: bool = False


@dataclass(frozen=True)
class Place:
    """A parsed path: the collection over all namespaces, and what below it is meant."""

    collection: str
    namespace: str
    name: str
    sub: str


class Refused(Exception):
    def __init__(self, status: int, message: str, causes: list[dict[str, str]] | None = None) -> None:
        self.status = status
        self.body: Object = {
            "kind": "Status",
            "code": status,
            "message": message,
            "details": {"causes": causes or []},
        }
        super().__init__(message)


class FakeApi:
    """`async with FakeApi() as fake`; `fake.url` is where it listens (loopback)."""

    def __init__(self) -> None:
        self.served = {*CORE, LEASES, GROUPS, CRDS}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.bookmarks = True
        self.url = ""
        self._objects: dict[str, dict[tuple[str, str], Object]] = {}
        self._history: list[tuple[int, str, str, Object]] = []
        self._version = 100
        self._oldest = 0
        self._news = asyncio.Condition()
        self._open: set[Stream] = set()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.break_streams()
        await self._runner.cleanup()

    # -- what tests do to it

    async def break_streams(self) -> None:
        """Cut every open watch, without a word."""
        async with self._news:
            for stream in self._open:
                if stream.request.transport is not None:
                    stream.request.transport.abort()
                stream.cut = True
            self._news.notify_all()

    async def inject(self, *lines: bytes) -> None:
        """Send these lines, as they are, on every open watch."""
        async with self._news:
            for stream in self._open:
                stream.lines += lines
            self._news.notify_all()

    def compact(self) -> None:
        """Forget the history: a watch from an earlier version gets 410."""
        self._oldest = self._version

    async def store(self, path: str, item: Object, *, silent: bool = False) -> Object:
        """Put an object there whatever it looks like; `silent`: no event, as if the watch had missed it."""
        place = parse(path, self.served)
        kept = self._objects.setdefault(place.collection, {})
        kind = "MODIFIED" if (place.namespace, place.name) in kept else "ADDED"
        meta = item.setdefault("metadata", {})
        meta.update(name=place.name, resourceVersion=self._next())
        meta.setdefault("uid", str(uuid.uuid4()))
        if place.namespace:
            meta["namespace"] = place.namespace
        kept[place.namespace, place.name] = item
        if not silent:
            await self._tell(place.collection, kind, item)
        return item

    async def remove(self, path: str, *, silent: bool = False) -> None:
        place = parse(path, self.served)
        item = self._objects[place.collection].pop((place.namespace, place.name))
        item = copy.deepcopy(item)
        item["metadata"]["resourceVersion"] = self._next()
        if not silent:
            await self._tell(place.collection, "DELETED", item)

    @property
    def streams(self) -> int:
        """Watches (and hanging requests) that are open."""
        return len(self._open)

    def items(self, collection: str) -> list[Object]:
        return list(self._objects.get(collection, {}).values())

    def get(self, path: str) -> Object:
        place = parse(path, self.served)
        return self._objects[place.collection][place.namespace, place.name]

    # -- HTTP

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path, dict(request.query), dict(request.headers)))
        fault = self._fault(request)
        if fault is not None and fault.action == "hang":
            await self._until_gone(request)
        if fault is not None and fault.action == "drop":
            return self._cut(request)
        if fault is not None and isinstance(fault.action, int):
            return _answer(
                fault.action, {"kind": "Status", "code": fault.action, "message": "as the test wants"}
            )
        try:
            answer = await self._handle(request)
        except Refused as error:
            answer = _answer(error.status, error.body)
        return self._cut(request) if fault is not None and fault.action == "lose" else answer

    def _fault(self, request: web.Request) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fault.method == request.method and fault.part in request.path_qs:
                fault.times -= 1
                return fault
        return None

    def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _until_gone(self, request: web.Request) -> None:
        stream = Stream(request)
        self._open.add(stream)
        try:
            async with self._news:
                await self._news.wait_for(lambda: stream.cut)
        finally:
            self._open.remove(stream)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        place = parse(request.path, self.served)
        if request.method == "GET" and not place.name:
            if request.query.get("watch"):
                return await self._watch(request, place)
            return self._list(request, place)
        body = json.loads(await request.read() or b"null")
        if request.method == "POST" and place.sub == "binding":
            return await self._bind(place, body)
        if request.method == "POST":
            if place.collection == CRDS:
                self.served.add(f"/apis/{body['spec']['group']}/v1/{body['spec']['names']['plural']}")
            name = body["metadata"]["name"]
            if (place.namespace, name) in self._objects.get(place.collection, {}):
                raise Refused(409, f"{name} already exists")
            body["metadata"].pop("uid", None)
            return _answer(201, await self.store(f"{request.path}/{name}", body))
        if request.method == "PATCH" and request.content_type == "application/apply-patch+yaml":
            return await self._apply(request, place, body)
        item = self._objects.get(place.collection, {}).get((place.namespace, place.name))
        if item is None:
            raise Refused(404, f"{place.name} not found")
        if request.method == "PATCH":
            return await self._patch(request, place, copy.deepcopy(item), body)
        if request.method == "DELETE":
            if place.collection == "/api/v1/pods":  # also a forced deletion is first seen as a change
                item["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
                await self.store(request.path, item)
            await self.remove(request.path)
        return _answer(200, item)

    def _list(self, request: web.Request, place: Place) -> web.Response:
        token, _, newer = request.query.get("continue", "").partition("@")
        start = int(token or 0)
        if start and self._oldest >= self._version and not newer:
            refused = Refused(410, "The provided continue parameter is too old")
            refused.body["metadata"] = {"continue": f"{start}@newer"}
            raise refused
        items = self._select(request, place)
        page = items[start : start + int(request.query.get("limit") or len(items) or 1)]
        more = start + len(page) < len(items)
        meta = {"resourceVersion": str(self._version)} | (
            {"continue": str(start + len(page))} if more else {}
        )
        return _answer(200, {"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page})

    def _select(self, request: web.Request, place: Place) -> list[Object]:
        found = self._objects.get(place.collection, {}).values()
        return [item for item in found if _matches(request, place, item)]

    async def _watch(self, request: web.Request, place: Place) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        since, sent = int(request.query["resourceVersion"]), 0
        if since < self._oldest:
            await response.write(_line("ERROR", {"kind": "Status", "code": 410, "message": "too old"}))
            return response
        stream = Stream(request)
        self._open.add(stream)
        loop = asyncio.get_running_loop()
        end = loop.time() + float(request.query.get("timeoutSeconds", 300))
        try:
            while loop.time() < end and not stream.cut:
                for version, collection, kind, item in self._history[sent:]:
                    sent += 1
                    if version > since and collection == place.collection and _matches(request, place, item):
                        await response.write(_line(kind, item))
                while stream.lines:
                    await response.write(stream.lines.pop(0) + b"\n")
                await self._wait(stream, sent, end)
            if self.bookmarks and not stream.cut:
                await response.write(_line("BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}}))
        finally:
            self._open.remove(stream)
        return response

    async def _wait(self, stream: Stream, sent: int, end: float) -> None:
        try:
            async with asyncio.timeout_at(end), self._news:
                await self._news.wait_for(
                    lambda: bool(stream.cut or stream.lines or len(self._history) > sent)
                )
        except TimeoutError:
            return

    # -- writes

    async def _bind(self, place: Place, body: Object) -> web.Response:
        pod = self._objects.get(place.collection, {}).get((place.namespace, place.name))
        if pod is None:
            raise Refused(404, "pod not found")
        if body["metadata"].get("uid") not in (None, pod["metadata"]["uid"]):
            raise Refused(409, "Precondition failed: UID in precondition")
        if pod["spec"].get("nodeName"):
            raise Refused(409, f"pod is already assigned to node {pod['spec']['nodeName']}")
        if pod["spec"].get("schedulingGates"):
            raise Refused(409, "pod has non-empty .spec.schedulingGates")
        pod = copy.deepcopy(pod)
        pod["spec"]["nodeName"] = body["target"]["name"]
        pod.get("status", {}).pop("nominatedNodeName", None)
        await self.store(f"{place.collection[:7]}/namespaces/{place.namespace}/pods/{place.name}", pod)
        return _answer(201, {"kind": "Status", "status": "Success", "code": 201})

    async def _patch(self, request: web.Request, place: Place, item: Object, body: Object) -> web.Response:
        uid = body.get("metadata", {}).get("uid")
        if uid is not None and uid != item["metadata"]["uid"]:
            raise Refused(422, "metadata.uid: field is immutable", [{"field": "metadata.uid"}])
        gates = body.get("spec", {}).get("schedulingGates")
        if "strategic" in request.content_type and gates:
            gone = {gate["name"] for gate in gates if gate.get("$patch") == "delete"}
            left = [gate for gate in item["spec"].get("schedulingGates", []) if gate["name"] not in gone]
            body = {**body, "spec": {**body["spec"], "schedulingGates": left or None}}
        nominated = body.get("status", {}).get("nominatedNodeName")
        if place.sub == "status" and nominated and item["spec"].get("nodeName"):
            raise Refused(422, "may not be set on bound pods", [{"field": "status.nominatedNodeName"}])
        _merge(item, body)
        if place.sub == "status":
            _own(item, request.query.get("fieldManager", "unknown"), body.get("status", {}))
        path = request.path.removesuffix(f"/{place.sub}") if place.sub else request.path
        return _answer(200, await self.store(path, item))

    async def _apply(self, request: web.Request, place: Place, body: Object) -> web.Response:
        manager = request.query["fieldManager"]
        item = copy.deepcopy(self._objects.get(place.collection, {}).get((place.namespace, place.name)))
        if item is None and (place.sub or place.collection != "/api/v1/events"):
            raise Refused(404, f"{place.name} not found")
        path = request.path.removesuffix(f"/{place.sub}") if place.sub else request.path
        if item is None:
            return _answer(201, await self.store(path, body))
        for name, value in body.get("status", {}).items():
            owner = _owner(item, name)
            if owner not in ("", manager) and item.get("status", {}).get(name) != value:
                raise Refused(409, f'conflict with "{owner}"', [{"reason": "FieldManagerConflict"}])
        body.get("metadata", {}).pop("uid", None)
        _merge(item, body)
        if place.sub:
            _own(item, manager, body.get("status", {}))
        return _answer(200, await self.store(path, item))

    def _next(self) -> str:
        self._version += 1
        return str(self._version)

    async def _tell(self, collection: str, kind: str, item: Object) -> None:
        async with self._news:
            self._history.append((self._version, collection, kind, copy.deepcopy(item)))
            self._news.notify_all()


def parse(path: str, served: set[str]) -> Place:
    parts = path.strip("/").split("/")
    head, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    rest += [""] * (3 - len(rest))
    collection = f"/{'/'.join(head)}/{rest[0]}"
    if collection not in served:
        raise Refused(404, "the server could not find the requested resource")
    return Place(collection, namespace, rest[1], rest[2])


def _matches(request: web.Request, place: Place, item: Object) -> bool:
    for term in filter(None, request.query.get("fieldSelector", "").split(",")):
        path, _, wanted = term.replace("!=", "=").partition("=")
        found: Any = item
        for name in path.split("."):
            found = found.get(name, {})
        if (found == wanted) == ("!=" in term):
            return False
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, request.query.get("labelSelector", "").split(",")):
        name, _, wanted = term.partition("=")
        if labels.get(name) != wanted:
            return False
    return not place.namespace or item["metadata"].get("namespace") == place.namespace


def _merge(item: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            item.pop(key, None)
        elif isinstance(value, dict):
            _merge(item.setdefault(key, {}), value)
        else:
            item[key] = value


def _own(item: Object, manager: str, fields: Object) -> None:
    """The entry of managedFields that a status write leaves; one per manager."""
    kept = [entry for entry in item["metadata"].get("managedFields", []) if entry["manager"] != manager]
    names: Object = {f"f:{name}": {} for name, value in fields.items() if value is not None}
    entry = {"manager": manager, "subresource": "status", "fieldsV1": {"f:status": names}}
    for other in kept:
        for name in names:
            other["fieldsV1"]["f:status"].pop(name, None)
    item["metadata"]["managedFields"] = [*kept, *([entry] if names else [])]


def _owner(item: Object, name: str) -> str:
    for entry in item["metadata"].get("managedFields", []):
        if f"f:{name}" in entry["fieldsV1"]["f:status"]:
            return str(entry["manager"])
    return ""


def _line(kind: str, item: Object) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"


def _answer(status: int, body: Object) -> web.Response:
    return web.Response(status=status, body=json.dumps(body).encode(), content_type="application/json")
