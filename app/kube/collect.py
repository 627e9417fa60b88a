# SPDX-License-Identifier: Apache-2.0
"""Reads every kind of `app.codec.kinds` once, page by page, for a snapshot or an explanation.

Decides in what version a kind is read, when it is asked again and what counts as unseen. Holds a few pages at
a time, never a whole list, and decodes no object: items are handed on as the bytes that came. Writes nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from http import HTTPStatus
from random import Random
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from app.codec.kinds import KINDS, ApiKind
from app.codec.snapshot import Unseen
from app.codec.wire import UNUSABLE, ObjectList
from app.domain.errors import ApiError
from app.kube.backoff import Backoff
from app.kube.client import Api, refused

PAGE: Final = 500
"""Objects per request."""

AHEAD: Final = 4
"""Kinds whose first page is on its way while another is read: most kinds are one page."""

TRIES: Final = 3
_PAGE_SECONDS: Final = 60.0
_LIST = msgspec.json.Decoder(ObjectList[Raw])


class Page(Struct, frozen=True):
    """Some objects of a kind, each as JSON with `apiVersion` and `kind`.

    Every kind that is served has a page, if an empty one.
    """

    kind: ApiKind
    items: list[bytes]


class Absent(Struct, frozen=True):
    """A kind that this cluster does not serve."""

    kind: ApiKind


async def collect(
    api: Api,
    *,
    namespace: str | None = None,
    kinds: Sequence[ApiKind] = KINDS,
    rng: Random | None = None,
) -> AsyncGenerator[Page | Absent | Unseen, None]:
    """The objects of `kinds`, in that order; of one namespace, or of all if it is None.

    What cannot be read is an `Unseen`, and the rest goes on. Raises `ApiError` when there is no API at all.
    A list that outlives the API server's memory goes on in a newer state, as the API offers it: objects that
    came or went meanwhile may be in it or not, none is there twice.
    """
    await knock(api)
    reader = _Reader(api, namespace, rng or Random())
    waiting: deque[asyncio.Task[_First]] = deque()
    rest = iter(kinds)
    try:
        while True:
            while len(waiting) < AHEAD and (kind := next(rest, None)) is not None:
                waiting.append(asyncio.create_task(reader.first(kind)))
            if not waiting:
                return
            async for found in reader.kind(await waiting.popleft()):
                yield found
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def knock(api: Api) -> str:
    """The API server's version; empty if it does not tell.

    Anybody may ask. Raises `ApiError` when there is no API, or none that takes these credentials.
    """
    status, body = await api.request("GET", "/version", timeout_seconds=10)
    if status == HTTPStatus.UNAUTHORIZED:
        raise refused("GET", "/version", status, body)
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except UNUSABLE:
        return ""


class _Version(Struct, rename="camel"):
    git_version: str = ""


class _First(Struct):
    """How reading a kind has begun: a first page of its first selector, or what became of it instead."""

    kind: ApiKind
    path: str
    api_version: str
    body: bytes
    instead: Absent | Unseen | None = None


class _Reader:
    def __init__(self, api: Api, namespace: str | None, rng: Random) -> None:
        self._api = api
        self._namespace = namespace
        self._rng = rng
        self._silent = False  # the API did not answer last time: others are asked once, not again and again

    async def first(self, kind: ApiKind) -> _First:
        """The newest version that is served, and its first page."""
        path = api_version = ""
        for version in kind.versions:
            api_version = kind.api_version(version)
            path = self._path(kind, api_version)
            try:
                return _First(kind, path, api_version, await self._get(path, _query(kind.selectors[0])))
            except ApiError as error:
                if error.status == HTTPStatus.FORBIDDEN and kind.optional and not await self._served(kind):
                    break
                if error.status != HTTPStatus.NOT_FOUND:
                    return _First(kind, path, api_version, b"", Unseen(kind.name, why(error)))
        return _First(kind, path, api_version, b"", Absent(kind))

    async def kind(self, first: _First) -> AsyncIterator[Page | Absent | Unseen]:
        if first.instead is not None:
            yield first.instead
            return
        count = 0
        try:
            async for page in self._pages(first):
                count += len(page.items)
                yield page
        except ApiError as error:
            yield Unseen(first.kind.name, f"only {count} were read: {why(error)}")

    async def _pages(self, first: _First) -> AsyncIterator[Page]:
        """All selectors, one after the other; the next page is on its way while one is worked on."""
        selectors = iter(first.kind.selectors)
        query: dict[str, str] | None = _query(next(selectors))
        coming: asyncio.Task[bytes] | None = None
        body = first.body
        try:
            while query is not None:
                listed = _listed(first.path, body)
                after = listed.metadata.continue_
                if after:
                    query = {**query, "continue": after}
                else:
                    selector = next(selectors, None)
                    query = None if selector is None else _query(selector)
                if query is not None:
                    coming = asyncio.create_task(self._get(first.path, query))
                yield Page(first.kind, named(listed.items or [], first.api_version, first.kind.kind))
                if coming is not None:
                    body, coming = await coming, None
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    def _path(self, kind: ApiKind, api_version: str) -> str:
        root = f"/apis/{api_version}" if kind.group else f"/api/{api_version}"
        if kind.namespaced and self._namespace is not None:
            root += f"/namespaces/{quote(self._namespace, safe='')}"
        return f"{root}/{kind.plural}"

    async def _served(self, kind: ApiKind) -> bool:
        """Rights are judged before paths: who has none is told so of what does not exist, too. Discovery is
        open to everybody; where it is not, the kind counts as served."""
        for version in kind.versions:
            status, body = await self._api.request("GET", f"/apis/{kind.api_version(version)}")
            if status != HTTPStatus.NOT_FOUND and (
                status != HTTPStatus.OK or f'"{kind.plural}"'.encode() in body
            ):
                return True
        return False

    async def _get(self, path: str, query: dict[str, str]) -> bytes:
        """One page. Raises `ApiError` when it cannot be had."""
        backoff = Backoff(self._rng)
        while True:
            try:
                status, body = await self._api.request(
                    "GET", path, query=query, timeout_seconds=_PAGE_SECONDS
                )
                self._silent = False
                if status == HTTPStatus.OK:
                    return body
                if status == HTTPStatus.GONE and (token := _newer(body)):
                    query = {**query, "continue": token}
                    continue
                raise refused("GET", path, status, body)
            except ApiError as error:
                tried_enough = backoff.failures + 1 >= TRIES or (error.status == 0 and self._silent)
                self._silent = self._silent or error.status == 0
                if not error.retry or tried_enough:
                    raise
            await asyncio.sleep(backoff.next())


def named(items: list[Raw], api_version: str, kind: str) -> list[bytes]:
    """Items of a list as objects of their own: built-in kinds come without `apiVersion` and `kind`.

    Those begin with their metadata, as Go writes a struct; custom ones with `apiVersion`, as Go sorts a map.
    """
    head = b'{"apiVersion":"%s","kind":"%s",' % (api_version.encode(), kind.encode())
    return [
        head + raw[1:] if raw[:12] == b'{"metadata":' else _with_type(raw, head) for raw in map(bytes, items)
    ]


class _Type(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


def _with_type(raw: bytes, head: bytes) -> bytes:
    try:
        found = msgspec.json.decode(raw, type=_Type)
    except UNUSABLE:
        return raw
    return raw if found.api_version and found.kind else head + raw.lstrip()[1:].lstrip()


def why(error: ApiError) -> str:
    """One sentence for the table and the file."""
    if error.status == HTTPStatus.FORBIDDEN:
        return "not allowed to list it"
    if error.status == 0:
        return "no answer from the API server"
    return str(error)


def _newer(body: bytes) -> str | None:
    """The token with which a list that took too long goes on behind its last object, in the present state."""
    try:
        return _LIST.decode(body).metadata.continue_
    except UNUSABLE:
        return None


def _query(selector: str) -> dict[str, str]:
    query = {"limit": str(PAGE)}
    return {**query, "fieldSelector": selector} if selector else query


def _listed(path: str, body: bytes) -> ObjectList[Raw]:
    try:
        return _LIST.decode(body)
    except UNUSABLE as error:
        raise ApiError(f"GET {path}: not a list: {error}") from None
