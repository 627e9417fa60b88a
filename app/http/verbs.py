# SPDX-License-Identifier: Apache-2.0
"""POST /filter /prioritize /bind /preempt: raw bytes to the service and back.

An ASGI application in front of the one with all other routes: the verbs are called for every pod, and what a
framework adds to a call costs more than most answers do. A body that cannot be used is answered with HTTP 200
and an `Error`, because kube-scheduler does not read the text of any other status.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

from app.extender.service import Service
from app.http.metrics import Metrics

JSON = "application/json"

Answer: TypeAlias = Callable[[bytes, Receive], Awaitable[bytes]]
"""Body of the call, and what tells next that the caller has hung up."""


class Verbs:
    """The four verbs; every other path is left to `rest`."""

    def __init__(self, service: Service, metrics: Metrics, *, rest: ASGIApp) -> None:
        answers: dict[str, Answer] = {
            "filter": lambda body, receive: service.filter(body),
            "prioritize": lambda body, receive: service.prioritize(body),
            "preempt": lambda body, receive: service.preempt(body),
            "bind": lambda body, receive: service.bind_call(body, hung_up=lambda: _hung_up(receive)),
        }
        self._verbs = {f"/{verb}": (metrics.verb(verb), answer) for verb, answer in answers.items()}
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""
        verb = self._verbs.get(scope["path"]) if scope["type"] == "http" else None
        if verb is None:
            await self._rest(scope, receive, send)
        elif scope["method"] != "POST":
            await _reply(send, b'{"detail":"Method Not Allowed"}', status=405, more=((b"allow", b"POST"),))
        elif (body := await _body(receive)) is not None:
            observe, answer = verb
            began = perf_counter()
            try:
                said = await answer(body, receive)
            finally:
                observe(perf_counter() - began)
            await _reply(send, said)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when the caller hangs up before its end."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _hung_up(receive: Receive) -> None:
    """Ends when the caller drops the connection. The body has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reply(
    send: Send, body: bytes, *, status: int = 200, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    headers = [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(body)), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
