# SPDX-License-Identifier: Apache-2.0
"""One connection to the Kubernetes API: credentials, bounded pools, raw requests and watch streams.

Decides where credentials come from, how many connections there are and what counts as "no answer". Never
parses an object, never retries, never logs a body. `kubernetes.aio` brings kubeconfig, exec plugins,
in-cluster tokens and TLS. Neither its typed models are used (50 times slower, and the binding call fails to
parse its own success) nor its request layer (a third of the CPU of a write).
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Self
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

import aiohttp
import msgspec
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import (
    ConfigException,
    load_incluster_config,
    load_kube_config,
)
from yarl import URL

from app.codec.wire import Status
from app.domain.errors import ApiError, InputError
from app.domain.pod import FIELD_MANAGER

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

LINE_BYTES: Final = 4 << 20
"""Longest watch line accepted. etcd stores at most 1.5 MiB per object."""

WRITES: Final = 32
"""Connections for writes, and so the most in flight. Each costs a TLS handshake, which is as dear as several
writes; more of them would only queue in the API server."""

KEEP_ALIVE_SECONDS: Final = 45.0
"""How long an idle connection is kept: below the 90 s of the API server and the minute of many a proxy."""

_READ_BYTES: Final = 1 << 21
_CONNECT_SECONDS: Final = 10.0
_EXEC_PERIOD_SECONDS: Final = 60.0
_GOODBYE_SECONDS: Final = 1.0
_NO_ANSWER = (aiohttp.ClientError, OSError, TimeoutError, ConfigException)


class Api:
    """Raw calls to one API server with one identity. For one event loop; `close` when done."""

    def __init__(self, configuration: Any) -> None:
        # aiohttp would look for a netrc file and for proxies in the environment before every request, in a
        # thread: a fifth of the CPU of admitting a pod. Proxies are looked up once; netrc is nobody's wish.
        configuration.proxy = configuration.proxy or _proxy_from_environment(configuration.host)
        self.writes: Counter[str] = Counter()
        """Writes sent since start, by what they were for."""
        self._configuration = configuration
        self._library: Any = _untyped(RESTClientObject)(configuration)
        self._sockets: WeakSet[socket.socket] = WeakSet()
        most = configuration.connection_pool_maxsize
        # Two pools: a gang of hundreds that binds must not keep a look at the Lease waiting.
        self._reads, self._writes = self._session(most), self._session(min(most, WRITES))

    def _session(self, connections: int) -> aiohttp.ClientSession:
        pool = aiohttp.TCPConnector(
            limit=connections,
            ssl=self._library.ssl_context,
            socket_factory=self._socket,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        return aiohttp.ClientSession(
            connector=pool, cookie_jar=aiohttp.DummyCookieJar(), read_bufsize=_READ_BYTES
        )

    @classmethod
    async def connect(
        cls, *, kubeconfig: str | None = None, context: str | None = None, connections: int = 100
    ) -> Self:
        """Credentials from `kubeconfig`, else $KUBECONFIG, else in-cluster, else ~/.kube/config.

        `connections` bounds reads, watches included; `WRITES` bounds writes. Further requests wait for a
        free one inside their own timeout. Raises `InputError` when the configuration is missing or
        unusable. Sends no request.
        """
        configuration = _untyped(Configuration)()
        configuration.connection_pool_maxsize = connections
        try:
            await _load(configuration, kubeconfig or os.environ.get("KUBECONFIG"), context)
            return cls(configuration)
        except Exception as error:  # the library lets YAML, base64, SSL and attribute errors through
            raise InputError(f"no usable Kubernetes credentials: {error}", field="kubeconfig") from None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object | None = None,
        content_type: str = JSON,
        timeout_seconds: float = 30.0,
        write: str = "",
    ) -> tuple[int, bytes]:
        """One call; any HTTP status is an answer. Raises `ApiError(status=0)` when none came in time.

        A lost answer of a write leaves open whether it took effect. `write` says what it is counted as.
        """
        if write:
            self.writes[write] += 1
        limits = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=_CONNECT_SECONDS)
        try:
            response = await self._send(method, path, query, body, content_type, limits)
            return response.status, await response.read()
        except _NO_ANSWER as error:
            raise _no_answer(method, path, error) from None

    async def stream(
        self, path: str, *, query: Mapping[str, str], inactivity_seconds: float
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of a watch, as lists of those that had arrived together; ends when the server ends it.

        Raises `ApiError`: with the HTTP status when the server refuses, 0 when the connection breaks, a line
        is longer than `LINE_BYTES`, or nothing arrives for `inactivity_seconds`. `aclosing` hangs up.
        The first list is empty: it says that the server accepted.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_SECONDS, sock_read=inactivity_seconds
        )
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._send("GET", path, query, None, JSON, limits)
            if response.status != 200:
                raise refused("GET", path, response.status, await response.read())
            yield []
            rest = b""
            while data := await response.content.readany():
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > LINE_BYTES:
                    raise ApiError(f"GET {path}: a watch line is longer than {LINE_BYTES} bytes")
                if lines:
                    yield lines
        except _NO_ANSWER as error:
            raise _no_answer("GET", path, error) from None
        finally:
            if response is not None:
                response.close()

    async def close(self) -> None:
        """Close every connection; open streams break. May be called twice.

        No socket is left when this returns, or a second later. Connections that had been hung up are in
        no pool any more, yet TLS keeps them until the server has said goodbye too, and a loop that ends
        before that would leave them open.
        """
        await self._reads.close()
        await self._writes.close()
        for left in self._open():
            with suppress(OSError):  # not connected (any more)
                left.shutdown(socket.SHUT_RDWR)  # read as the end by whoever still waits on it
        loop = asyncio.get_running_loop()
        end = loop.time() + _GOODBYE_SECONDS
        while self._open() and loop.time() < end:  # noqa: ASYNC110 - sockets tell nobody that they close
            await asyncio.sleep(0.001)

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    def _open(self) -> list[socket.socket]:
        return [known for known in self._sockets if known.fileno() != -1]

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: object | None,
        content_type: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        # identity: inflating megabytes of list would hold the event loop for longer than the transfer saves.
        headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "muster"}
        # Runs the library's refresh hook: that is where in-cluster tokens are read again, once a minute.
        token = await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if token:
            headers["Authorization"] = token
        data = None
        if body is not None:
            data, headers["Content-Type"] = msgspec.json.encode(body), content_type
        session = self._reads if method == "GET" else self._writes
        return await session.request(
            method,
            URL(self._configuration.host + path + (f"?{urlencode(query)}" if query else ""), encoded=True),
            data=data,
            headers=headers,
            timeout=limits,
            proxy=self._library.proxy,
            proxy_headers=self._library.proxy_headers,
            server_hostname=self._configuration.tls_server_name,
        )


def refused(method: str, path: str, status: int, body: bytes) -> ApiError:
    """The error for an HTTP status that is not success, with the server's own sentence."""
    return ApiError(f"{method} {path}: {status} {status_of(body).message}".rstrip(), status=status)


def status_of(body: bytes) -> Status:
    """The meta/v1 Status of a failed call; plain text (load shedding answers so) becomes its message."""
    try:
        return msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status(message=body[:200].decode(errors="replace").strip())


def object_path(prefix: str, namespace: str, plural: str, name: str) -> str:
    """Path of a namespaced object, e.g. prefix `/api/v1`. Names are quoted, whatever they contain."""
    return f"{prefix}/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"


def writer_query(**more: str) -> dict[str, str]:
    """The query of every patch of ours: it names the field manager."""
    return {"fieldManager": FIELD_MANAGER, **more}


def _no_answer(method: str, path: str, error: BaseException) -> ApiError:
    cause = str(error) or type(error).__name__
    return ApiError(f"{method} {path}: no answer from the Kubernetes API: {cause}")


async def _load(configuration: Any, kubeconfig: str | None, context: str | None) -> None:
    in_cluster = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and context is None
    if kubeconfig is None and in_cluster:
        _untyped(load_incluster_config)(configuration)
        return
    default = os.path.expanduser("~/.kube/config")  # noqa: ASYNC240 - once, before anything runs
    if kubeconfig is None and not os.path.exists(default):  # noqa: ASYNC240 - once, before anything runs
        raise ConfigException("no kubeconfig given, KUBECONFIG is not set and this is not a pod")
    files = (kubeconfig or default).split(os.pathsep)
    if not any(map(os.path.exists, files)):  # the library would print a line of its own about it
        raise ConfigException(f"no such file: {kubeconfig}")
    loader = await _untyped(load_kube_config)(
        config_file=kubeconfig or default,
        context=context,
        client_configuration=configuration,
        persist_config=False,
    )
    if "exec" in loader._user:  # the library offers no public question for this
        configuration.refresh_api_key_hook = _exec_hook(loader, time.monotonic)


def _exec_hook(loader: Any, clock: Callable[[], float]) -> Callable[[Any], Awaitable[None]]:
    """Ask the exec plugin again when its token has run out, looking at most once a minute."""
    looked = clock()

    async def refresh(configuration: Any) -> None:
        nonlocal looked
        if clock() - looked >= _EXEC_PERIOD_SECONDS:
            looked = clock()
            await loader.load_from_exec_plugin()
            configuration.api_key["BearerToken"] = loader.token

    return refresh


def _untyped(function: Any) -> Any:
    # The library is annotated only in part; past this point its objects are Any on purpose.
    return function


def _proxy_from_environment(server: str) -> str | None:
    """HTTPS_PROXY and the like, unless NO_PROXY names the server; None without one."""
    url = urlsplit(server)
    if proxy_bypass(url.hostname or ""):
        return None
    return getproxies().get(url.scheme)
