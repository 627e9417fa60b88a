# SPDX-License-Identifier: Apache-2.0
"""A large cluster's API server, as bytes only: paged lists and watches of objects of real size, over TLS.

It stores nothing: object number n is made when it is asked for, always the same but for its version. Writes
are accepted and forgotten. `loadtests.coldstart` runs it as a process of its own and steers it by
`POST /control/churn` and `POST /control/burst`.

    python -m loadtests.material.big_api --port 6443 --cert crt --key key --nodes 15000 --pods 150000
"""

from __future__ import annotations

import argparse
import asyncio
import ssl
from collections.abc import Iterator
from typing import Final

from aiohttp import web

from loadtests.material.big_objects import GANG_SIZE, Objects

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/pods"
GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
GRAIN_SECONDS: Final = 0.05
BOOKMARK_SECONDS: Final = 30.0
CHUNK: Final = 1000
FIRST_VERSION: Final = 1_000_000


class BigApi:
    """Lists, watches and two levers. One watch per resource is what Muster opens."""

    def __init__(self, *, nodes: int, pods: int, gangs: int) -> None:
        self._objects = Objects(nodes=nodes, gangs=gangs)
        self._counts = {NODES: nodes, PODS: pods, GROUPS: gangs}
        self._version = FIRST_VERSION
        self._streams: dict[str, set[web.StreamResponse]] = {path: set() for path in self._counts}

    def app(self) -> web.Application:
        """Everything it serves; what it does not know is 404, as an API that is not installed."""
        app = web.Application()
        app.router.add_post("/control/churn", self._churn)
        app.router.add_post("/control/burst", self._burst)
        for path in self._counts:
            app.router.add_get(path, self._get)
        app.router.add_patch("/{path:.*}", self._accept)
        app.router.add_get("/{path:.*}", self._absent)
        return app

    async def _accept(self, request: web.Request) -> web.Response:
        return _json(b'{"kind":"Status","status":"Success"}')

    async def _absent(self, request: web.Request) -> web.Response:
        raise web.HTTPNotFound

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch"):
            return await self._watch(request)
        start, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 500))
        stop = min(start + limit, self._counts[request.path])
        more = b',"continue":"%d"' % stop if stop < self._counts[request.path] else b""
        head = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"%d"%b},"items":['
        items = b",".join(self._object(request.path, n, n + 1) for n in range(start, stop))
        return _json(head % (self._version, more) + items + b"]}")

    def _object(self, path: str, number: int, version: int, *, beat: int = 0) -> bytes:
        if path == NODES:
            return self._objects.node(number, version, beat=beat)
        return self._objects.pod(number, version, beat=beat) if path == PODS else self._objects.group(number)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._streams[request.path].add(response)
        try:
            while True:
                mark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n'
                await response.write(mark % self._version)
                await asyncio.sleep(BOOKMARK_SECONDS)
        except ConnectionError:  # the watcher has left
            return response
        finally:
            self._streams[request.path].discard(response)

    # -- the levers

    async def _churn(self, request: web.Request) -> web.Response:
        """So many node and pod changes each second, for so many seconds, evenly spread."""
        seconds, per_second = float(request.query["seconds"]), int(request.query["per_second"])
        loop = asyncio.get_running_loop()
        began, sent = loop.time(), 0
        while (now := loop.time() - began) < seconds:
            due = int(now * per_second)
            for path in (NODES, PODS):
                await self._send(path, self._changes(path, range(sent, due)))
            sent = due
            await asyncio.sleep(GRAIN_SECONDS)
        return _json(b'{"sent":%d}' % (2 * sent))

    async def _burst(self, request: web.Request) -> web.Response:
        """So many changes as fast as they are taken, every eleventh of them of a node; then one new pod, to
        tell when all of them have been applied."""
        events, sent = int(request.query["events"]), 0
        while sent < events:
            numbers = range(sent, sent := min(sent + CHUNK, events))
            await self._send(PODS, self._changes(PODS, numbers))
            await self._send(NODES, self._changes(NODES, numbers[::10]))
        self._counts[PODS] += 1
        await self._send(PODS, self._changes(PODS, range(self._counts[PODS] - 1, self._counts[PODS])))
        return _json(b'{"sent":%d}' % (events + -(-events // 10) + 1))

    def _changes(self, path: str, numbers: range) -> Iterator[bytes]:
        for number in numbers:
            self._version += 1
            item = self._object(path, number % self._counts[path], self._version, beat=self._version)
            yield b'{"type":"MODIFIED","object":%b}\n' % item

    async def _send(self, path: str, lines: Iterator[bytes]) -> None:
        data = b"".join(lines)
        for stream in list(self._streams[path]):
            await stream.write(data)


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description="A large cluster's API server, as bytes only.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    args = parser.parse_args()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(args.cert, args.key)
    gangs = args.pods // 5 // GANG_SIZE
    api = BigApi(nodes=args.nodes, pods=args.pods, gangs=gangs)
    web.run_app(api.app(), host="127.0.0.1", port=args.port, ssl_context=tls, print=None)


if __name__ == "__main__":
    main()
