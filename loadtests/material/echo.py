# SPDX-License-Identifier: Apache-2.0
"""What the verbs' HTTP figures are compared with: the product's own server around an application that does
nothing. Lives here so that the product carries no route for the sake of a measurement.

`POST /echo` reads the body and sends it back; `POST /short` reads it and sends `SHORT`, as long as the
answer to a planned member.

    python -m loadtests.material.echo --port 9999
"""

from __future__ import annotations

import argparse
import contextlib

from starlette.types import Message, Receive, Scope, Send

from app.http.server import Listener, run, serve

SHORT = b"." * 128


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The least an ASGI application can do: no framework in between."""
    parts: list[bytes] = []
    message: Message = {"more_body": True}
    while message.get("more_body"):
        message = await receive()
        parts.append(message.get("body", b""))
    body = SHORT if scope["path"] == "/short" else b"".join(parts)
    length = b"%d" % len(body)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="An echo on the server that Muster uses.")
    parser.add_argument("--port", type=int, required=True)
    run(serve(contextlib.nullcontext(), [Listener(app, "127.0.0.1", parser.parse_args().port)]))


if __name__ == "__main__":
    main()
