# SPDX-License-Identifier: Apache-2.0
"""Stands between one client and the API server: forwards every byte, may hold requests back, notes writes.

It never alters, repeats or answers a request. A held request whose client hangs up is dropped unsent, as a
packet of a dead process would be. Plain HTTP on loopback towards the client, TLS towards the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster import Cluster, free_port

Match = Callable[[str, str], bool]
_POLL_SECONDS = 0.01


def is_binding(method: str, path: str) -> bool:
    """POST …/pods/<name>/binding."""
    return method == "POST" and path.endswith("/binding")


def is_gate_lift(method: str, path: str) -> bool:
    """PATCH of a pod itself, not of its status."""
    return method == "PATCH" and "/pods/" in path and not path.endswith("/status")


class Proxy:
    """Use as a context manager. `kubeconfig` is what the client gets."""

    def __init__(self, cluster: Cluster, name: str = "proxy") -> None:
        self.writes: list[tuple[str, str]] = []
        """(method, path without query) of what was forwarded, reads left out."""
        self._server_port = cluster.port
        self._ssl = ssl.create_default_context(cafile=str(cluster.ca_file))
        self._port = free_port()
        self._hold: Match = lambda method, path: False
        self._allowance = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        self.kubeconfig: Path = cluster.credentials.write_kubeconfig(
            name,
            token=cluster.credentials.token("admin"),
            server=f"http://127.0.0.1:{self._port}",
            ca_file=cluster.ca_file,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        serve = asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._server = asyncio.run_coroutine_threadsafe(serve, self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def hold(self, match: Match, *, after: int = 0) -> None:
        """Let `after` matching requests pass, keep all further ones until `release`."""
        self._allowance, self._hold = after, match

    def release(self) -> None:
        """Forward what is held; hold nothing more."""
        self._hold = lambda method, path: False

    def forwarded(self, match: Match) -> list[str]:
        """Paths of the writes of one kind, in order."""
        return [path for method, path in self.writes if match(method, path)]

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._relay(reader, writer)
        self._tasks.discard(task)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers: asyncio.Task[None] | None = None
        upstream: asyncio.StreamWriter | None = None
        try:
            source, upstream = await asyncio.open_connection("127.0.0.1", self._server_port, ssl=self._ssl)
            answers = asyncio.create_task(_pump(source, writer))
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(_length(head))
                method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
                if not await self._may_pass(method, target.partition("?")[0], reader):
                    return
                upstream.write(head + body)
                await upstream.drain()
        finally:
            for end in (upstream, writer):
                if end is not None:
                    end.close()
            if answers is not None:
                answers.cancel()
                await asyncio.gather(answers, return_exceptions=True)

    async def _may_pass(self, method: str, path: str, reader: asyncio.StreamReader) -> bool:
        """Wait while the request is held; False when its client has gone meanwhile."""
        if self._hold(method, path) and self._allowance > 0:
            self._allowance -= 1
        else:
            while self._hold(method, path) and not _hung_up(reader):  # noqa: ASYNC110 - another thread decides
                await asyncio.sleep(_POLL_SECONDS)
            if _hung_up(reader):
                return False
        if method != "GET":
            self.writes.append((method, path))
        return True


def _hung_up(reader: asyncio.StreamReader) -> bool:
    return reader.at_eof() or reader.exception() is not None


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    target.close()


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0
