# SPDX-License-Identifier: Apache-2.0
"""GET /: the page for people who would rather look. Read-only; everything it needs comes from here.

Its script asks `/overview` and `/explain` of the same address, and the policy below lets it ask nobody else.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

FOLDER: Final = Path(__file__).parent / "page"
FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.svg": ("page.svg", "image/svg+xml"),
}
"""Path → file and media type."""

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""`no-cache`: kept by the browser, and asked about each time, so that a new version shows at once."""


def page() -> APIRouter:
    """The page's own files."""
    router = APIRouter()
    for path, (name, kind) in FILES.items():
        _serve(router, path, (FOLDER / name).read_bytes(), kind)
    return router


def _serve(router: APIRouter, path: str, body: bytes, kind: str) -> None:
    headers = {**HEADERS, "ETag": f'"{sha256(body).hexdigest()[:32]}"'}

    @router.api_route(path, methods=["GET", "HEAD"])
    async def show(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=kind, headers=headers)
