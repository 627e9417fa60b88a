# SPDX-License-Identifier: Apache-2.0
"""Sends the head and the body of an answer together: one system call, and one wake-up of the reader.

Decides when bytes go out: at the end of the step of the event loop in which they were written. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class GatheringProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which writes an answer's head by itself, on a transport that waits for the rest."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected."""
        super().connection_made(_Gathering(transport, self.loop))


class _Gathering(asyncio.Transport):
    """What a server of HTTP needs of a transport; writes are kept until the loop comes round."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._parts: list[bytes | bytearray | memoryview[Any]] = []

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Goes out with all else that is written in this step."""
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.writelines(parts)

    def close(self) -> None:
        """What was written before still goes out."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Addresses and the like."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """The client is faster than we are."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        self._transport.resume_reading()
