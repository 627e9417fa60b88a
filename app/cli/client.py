# SPDX-License-Identifier: Apache-2.0
"""A small HTTP client for the service's own JSON interface.

Decides nothing and repeats nothing: what is not answered as the interface promises is an error of one line.
"""

from __future__ import annotations

import http.client
from typing import Any, Final

import orjson

from app.domain.errors import MusterError

CALL_SECONDS: Final = 10.0


class NoAnswerError(MusterError):
    """The service did not answer, or not with what the interface promises."""


class Client:
    """HTTP to one service, one connection a call."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    @property
    def url(self) -> str:
        """Where the service is, for clients of another kind."""
        return f"http://{self._host}:{self._port}"

    def status(self, path: str) -> int:
        """HTTP status of a GET; 0 while nobody listens."""
        try:
            return self._call("GET", path, None, CALL_SECONDS)[0]
        except NoAnswerError:
            return 0

    def get(self, path: str) -> bytes:
        """Body of a GET."""
        return self._good("GET", path, None, CALL_SECONDS)

    def post(self, path: str, body: object, *, seconds: float = CALL_SECONDS) -> Any:
        """JSON out, JSON back."""
        answer = self._good("POST", path, orjson.dumps(body), seconds)
        try:
            return orjson.loads(answer)
        except orjson.JSONDecodeError as error:
            raise NoAnswerError(f"POST {path} was not answered in JSON: {error}") from None

    def _good(self, method: str, path: str, body: bytes | None, seconds: float) -> bytes:
        status, answer = self._call(method, path, body, seconds)
        if status != 200:
            text = answer[:200].decode(errors="replace")
            raise NoAnswerError(f"{method} {path} was answered with {status}: {text}")
        return answer

    def _call(self, method: str, path: str, body: bytes | None, seconds: float) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswerError(f"{method} {path} was not answered: {error}") from None
        finally:
            connection.close()
