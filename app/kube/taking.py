# SPDX-License-Identifier: Apache-2.0
"""Takes a snapshot of a live cluster: reads it, redacts it and writes it as the text of a List, bit by bit.

Decides what the snapshot says of itself. Never holds the whole, nor the event loop for more than a slice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from app.codec.objects import stamp
from app.codec.redact import Redactor
from app.codec.snapshot import ListText, SnapshotInfo, Unseen
from app.kube.client import Api
from app.kube.collect import Absent, Page, collect, knock
from app.kube.gates import api_gates, scheduler_gates

SLICE: Final = 100
"""Objects redacted before other tasks get their turn: a few milliseconds."""


class Taking:
    """One snapshot. `counts` grow while it is taken; `info` is there once the text has ended."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str | None = None,
        keep_environment: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.counts: dict[str, int] = {}
        self.info: SnapshotInfo | None = None
        self._api = api
        self._namespace = namespace
        self._keep = keep_environment
        self._redactor = Redactor(keep_environment=keep_environment)
        self._now = now
        self._absent: list[str] = []
        self._unseen: list[Unseen] = []

    async def text(self) -> AsyncGenerator[bytes, None]:
        """The file. Raises `ApiError`, before the first bit, when there is no API."""
        begun = stamp(self._now())
        version = await knock(self._api)
        gates = asyncio.gather(api_gates(self._api), scheduler_gates(self._api))
        try:
            text = ListText()
            async with aclosing(collect(self._api, namespace=self._namespace)) as found:
                async for one in found:
                    async for items in self._items(one):
                        yield text.add(items)
            of_api, of_schedulers = await gates
            self.info = SnapshotInfo(
                taken=begun,
                server_version=version,
                namespaces=None if self._namespace is None else (self._namespace,),
                redacted=True,
                environment_kept=self._keep,
                counts=self.counts,
                absent=tuple(self._absent),
                unseen=tuple(self._unseen),
                api_gates=of_api,
                scheduler_gates=of_schedulers,
            )
            yield text.end(self.info)
        finally:
            gates.cancel()
            await asyncio.gather(gates, return_exceptions=True)

    async def _items(self, one: Page | Absent | Unseen) -> AsyncGenerator[list[bytes], None]:
        if isinstance(one, Unseen):
            self._unseen.append(one)
        elif isinstance(one, Absent):
            self._absent.append(one.kind.name)
        else:
            name = one.kind.name
            self.counts[name] = self.counts.get(name, 0) + len(one.items)
            for start in range(0, len(one.items), SLICE):
                yield self._redactor.items(one.kind, one.items[start : start + SLICE])
                await asyncio.sleep(0)
