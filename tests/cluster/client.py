# SPDX-License-Identifier: Apache-2.0
"""A small JSON client of the API server for tests: plain dicts in and out, one kept connection per thread.

It is deliberately not the client that Muster uses, so that a fault of that one cannot hide behind itself.
It never caches an object and repeats a request only if the server cannot have begun to answer it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = Any
Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(Exception):
    """The API server answered with a status of 400 or above."""

    def __init__(self, status: int, method: str, path: str, body: bytes) -> None:
        self.status = status
        self.body = body
        super().__init__(f"{method} {path}: {status} {self.message}")

    @property
    def message(self) -> str:
        try:
            return str(json.loads(self.body)["message"])
        except (ValueError, KeyError, TypeError):
            return self.body[:500].decode(errors="replace")

    @property
    def reason(self) -> str:
        """The Status reason, such as `NotFound` or `Conflict`; empty when the body is not a Status."""
        try:
            return str(json.loads(self.body)["reason"])
        except (ValueError, KeyError, TypeError):
            return ""


class _Connection(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        # Go's server and Nagle's algorithm together would cost 40 ms per request with a body.
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close_if_stale(self) -> None:
        """An idle connection with something to read has been ended by the server (it was restarted, say)."""
        if self.sock is not None and select.select([self.sock], [], [], 0)[0]:
            self.close()


class ApiClient:
    """One identity (token) at one API server. May be used from any number of threads."""

    def __init__(self, port: int, *, token: str | None, ca_file: Path, timeout_seconds: float = 60.0) -> None:
        self.port = port
        self._token, self._ca_file = token, ca_file
        self._headers = {"Accept": "application/json"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        self._ssl = ssl.create_default_context(cafile=str(ca_file))
        self._timeout = timeout_seconds
        self._local = threading.local()
        self._kept: list[_Connection] = []
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def get(self, path: str) -> Json:
        return self.request("GET", path)

    def items(self, path: str) -> list[Object]:
        """The items of a list; kind and apiVersion, which lists leave out of their items, are not added."""
        found: list[Object] = self.request("GET", path)["items"]
        return found

    def post(self, path: str, body: Json) -> Json:
        return self.request("POST", path, body)

    def put(self, path: str, body: Json) -> Json:
        return self.request("PUT", path, body)

    def patch(self, path: str, body: Json, content_type: str = MERGE_PATCH) -> Json:
        return self.request("PATCH", path, body, content_type=content_type)

    def delete(self, path: str, body: Json = None) -> Json:
        return self.request("DELETE", path, body)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True

    def text(self, path: str) -> str:
        """The raw body, for /readyz, /metrics and /openapi."""
        return self._send("GET", path, None, {}).decode()

    def request(
        self, method: str, path: str, body: Json = None, *, content_type: str = "application/json"
    ) -> Json:
        payload = None if body is None else json.dumps(body).encode()
        answer = self._send(method, path, payload, {"Content-Type": content_type} if payload else {})
        return json.loads(answer) if answer else None

    def create(self, item: Object) -> Object:
        created: Object = self.post(self.path_of(item, collection=True), item)
        return created

    def create_many(self, objects: Iterable[Object], *, threads: int = 64) -> list[Object]:
        """Create all concurrently, answers in the order given. The first error is raised at the end."""
        clone = ApiClient(self.port, token=self._token, ca_file=self._ca_file)  # its connections end with it
        try:
            with ThreadPoolExecutor(threads, thread_name_prefix="create-many") as pool:
                return list(pool.map(clone.create, objects))
        finally:
            clone.close()

    def close(self) -> None:
        """Close the kept connections. The client stays usable and opens new ones."""
        while self._kept:
            self._kept.pop().close()
        self._local = threading.local()

    def path_of(self, item: Mapping[str, Any], *, collection: bool = False) -> str:
        """The object's path, or its collection's, from apiVersion, kind and metadata; kinds by discovery."""
        version, meta = str(item["apiVersion"]), item["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = self._kind(root, str(item["kind"]))
        place = f"/namespaces/{meta.get('namespace', 'default')}" if namespaced else ""
        return f"{root}{place}/{plural}" + ("" if collection else f"/{meta['name']}")

    def watch(self, path: str, *, seconds: float | None = None) -> Watch:
        """Watch a collection from now, or from the `resourceVersion` in the path. See Watch."""
        return Watch(self._connect(), path, self._headers, seconds=seconds)

    def _kind(self, root: str, kind: str) -> tuple[str, bool]:
        known = self._kinds.get(root, {})
        if kind not in known:  # asked again for an unknown kind: its CRD may be new
            found = self.get(root)["resources"]
            known = {r["kind"]: (r["name"], r["namespaced"]) for r in found if "/" not in r["name"]}
            self._kinds[root] = known
        return known[kind]

    def _connect(self) -> _Connection:
        return _Connection("127.0.0.1", self.port, timeout=self._timeout, context=self._ssl)

    def _connection(self) -> _Connection:
        kept: _Connection | None = getattr(self._local, "connection", None)
        if kept is None:
            kept = self._local.connection = self._connect()
            self._kept.append(kept)
        return kept

    def _send(self, method: str, path: str, payload: bytes | None, headers: dict[str, str]) -> bytes:
        connection = self._connection()
        connection.close_if_stale()
        reused = connection.sock is not None
        try:
            status, answer = self._exchange(connection, method, path, payload, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            # The server had closed a kept connection. A POST or PATCH may have got through: not repeated.
            if not reused or method not in {"GET", "PUT", "DELETE"}:
                raise
            status, answer = self._exchange(connection, method, path, payload, headers)
        if status >= 400:
            raise ApiError(status, method, path, answer)
        return answer

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        payload: bytes | None,
        headers: dict[str, str],
    ) -> tuple[int, bytes]:
        try:
            connection.request(method, path, payload, self._headers | headers)
            response = connection.getresponse()
            return response.status, response.read()
        except BaseException:
            connection.close()  # never leave half an exchange on a kept connection
            raise


class Watch:
    """The events of one watch, each `{"type": ..., "object": ...}`.

    Iterating ends when the server ends the watch, when `seconds` are over, or when another thread calls
    `close()`. It never reconnects, and a connection that breaks is raised: a test wants to see both.
    """

    def __init__(
        self,
        connection: http.client.HTTPSConnection,
        path: str,
        headers: Mapping[str, str],
        *,
        seconds: float | None = None,
    ) -> None:
        limit = "" if seconds is None else f"&timeoutSeconds={max(1, round(seconds))}"
        full = f"{path}{'&' if '?' in path else '?'}watch=true{limit}"
        self._closed = False
        self._reading = False
        self._connection = connection
        connection.timeout = None  # a quiet watch is not a broken one
        try:
            connection.request("GET", full, headers=dict(headers))
            self._socket = connection.sock
            self._response = connection.getresponse()
            if self._response.status >= 400:
                raise ApiError(self._response.status, "GET", full, self._response.read())
        except BaseException:
            connection.close()
            raise

    def __iter__(self) -> Iterator[Object]:
        for line in self.lines():
            try:
                event = json.loads(line)
            except ValueError:
                if self._closed:  # cut off in the middle
                    return
                raise
            yield event

    def lines(self) -> Iterator[bytes]:
        """The events undecoded, for those who need few of their fields and many events."""
        self._reading = True
        try:
            for line in self._response:
                if line.strip():
                    yield line
        except (OSError, http.client.HTTPException, ValueError):
            if not self._closed:
                raise
        finally:
            self._connection.close()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            # Wakes a reader in another thread; close() alone does not. Not SSLSocket.shutdown: that drops
            # TLS, and the reader would be handed what is still on its way as it is, encrypted.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        if not self._reading:  # else the reading thread closes it, once it has seen the end
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()
