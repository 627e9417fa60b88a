# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client for the service's own JSON interface.

Decides nothing and repeats nothing: what is not answered as the interface promises is an error of one line.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self
from urllib.parse import urlsplit

import orjson

from app.domain.errors import InputError, MusterError

CALL_SECONDS: Final = 10.0
LOCAL: Final = "http://127.0.0.1:8888"
"""Where a Muster is looked for when nothing else is said: on the port of the verbs, on loopback."""

CHUNK: Final = 1 << 20
"""Bytes of a large answer that are held at a time."""

FORWARD: Final = "kubectl -n muster-system port-forward deployment/muster 8888"
"""What brings a live one there."""


class NoAnswerError(MusterError):
    """The service did not answer, or not with what the interface promises."""


class Client:
    """HTTP to one service, one connection a call. `base` comes before every path."""

    def __init__(self, host: str, port: int, *, scheme: str = "http", base: str = "") -> None:
        self._host = host
        self._port = port
        self._scheme = scheme
        self._base = base

    @classmethod
    def of(cls, url: str | None) -> Self:
        """To the service at a URL, at `LOCAL` if it is None. Raises `InputError` for what is no such URL."""
        try:
            parts = urlsplit(url or LOCAL)
            port = parts.port
        except ValueError as error:
            raise InputError(f"{url} is not a URL: {error}", field="--server") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InputError(f"{url} is not a URL like {LOCAL}", field="--server")
        port = port or (443 if parts.scheme == "https" else 80)
        return cls(parts.hostname, port, scheme=parts.scheme, base=parts.path.rstrip("/"))

    @property
    def url(self) -> str:
        """Where the service is, for clients of another kind."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{self._scheme}://{host}:{self._port}{self._base}"

    def status(self, path: str) -> int:
        """HTTP status of a GET; 0 while nobody listens."""
        try:
            return self._call("GET", path, None, CALL_SECONDS)[0]
        except NoAnswerError:
            return 0

    def get(self, path: str) -> bytes:
        """Body of a GET."""
        return self._good("GET", path, None, CALL_SECONDS)

    def reply(self, path: str, *, seconds: float = CALL_SECONDS) -> tuple[int, bytes]:
        """HTTP status and body of a GET, whatever the status."""
        return self._call("GET", path, None, seconds)

    def post(self, path: str, body: object, *, seconds: float = CALL_SECONDS) -> Any:
        """JSON out, JSON back."""
        answer = self._good("POST", path, orjson.dumps(body), seconds)
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            raise NoAnswerError(f"POST {path} was not answered in JSON: {error}") from None

    def chunks(self, path: str, *, seconds: float) -> Iterator[bytes]:
        """Body of a GET, as it comes, for what is too large to be held."""
        with self._asked("GET", path, None, seconds) as response:
            if response.status != 200:
                raise self._refused("GET", path, response.status, response.read(CHUNK))
            while bit := response.read(CHUNK):
                yield bit

    def _good(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        status, answer = self._call(method, path, body, seconds)
        if status != 200:
            raise self._refused(method, path, status, answer)
        return answer

    def _refused(self, method: str, path: str, status: int, answer: bytes) -> NoAnswerError:
        return NoAnswerError(f"{self.url} answered {method} {path} with {status}: {_sentence(answer)}")

    def _call(self, method: str, path: str, body: bytes | None, seconds: float) -> tuple[int, bytes]:
        with self._asked(method, path, body, seconds) as response:
            return response.status, response.read()

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, to be read; whatever breaks off is a `NoAnswerError`."""
        secure = self._scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = connect(self._host, self._port, timeout=seconds)
        try:
            connection.request(method, self._base + path, body, {"Content-Type": "application/json"})
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or error  # without the number, which tells nobody anything
            raise NoAnswerError(f"{self.url} did not answer {method} {path}: {why}{self._hint}") from None
        finally:
            connection.close()

    @property
    def _hint(self) -> str:
        """How a live Muster is reached from a machine where none listens."""
        return f" (for a live Muster: {FORWARD})" if self.url == LOCAL else ""


def _sentence(answer: bytes) -> str:
    """Why there is no answer, in the service's own words where it has any."""
    try:
        return str(orjson.loads(answer)["error"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return answer[:200].decode(errors="replace")
