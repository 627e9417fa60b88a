# SPDX-License-Identifier: Apache-2.0
"""Writes the counts in a PodGroup's status (scheduling.x-k8s.io), unless somebody else does.

Decides whether there is something new to say, when, and whether the fields are ours. A gang that starts goes
through several counts in a moment: they are given a few seconds to settle. Never forces: when another field
manager owns a count, the group is left alone from then on. A field that is absent counts as 0.

The API server ignores `metadata.uid` in an apply of the status subresource (checked against 1.37): counts
for a group that was just recreated under its name are corrected by the next change, not refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import structlog
from cachetools import LRUCache

from app.domain.gang import PodGroup
from app.domain.ids import GangApi
from app.kube.admitter import is_ownership_conflict
from app.kube.client import APPLY_PATCH, Api, object_path, refused, writer_query
from app.kube.writer import PacedWriter, Rank

API_VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
SETTLE_SECONDS: Final = 3.0
"""From the first change to the write, which takes all that came meanwhile."""

_REMEMBERED: Final = 20_000
_WRITE_SECONDS: Final = 10.0
_log = structlog.get_logger("muster.kube.status")


class StatusCounts:
    """Coalesced and paced by the writer it shares with the events."""

    def __init__(self, api: Api, writer: PacedWriter) -> None:
        self._api = api
        self._writer = writer
        self._wanted: dict[str, dict[str, int]] = {}
        self._settling: dict[str, asyncio.TimerHandle] = {}
        self._written: LRUCache[str, dict[str, int]] = LRUCache(_REMEMBERED)
        self._off: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    def set(self, group: PodGroup, counts: Mapping[str, int]) -> None:
        """Have the status say so. Returns at once; does nothing where the counts are not ours to write."""
        uid = group.uid
        if group.key.api is not GangApi.LABEL or uid in self._off:
            return
        if group.status_owner:
            self._switch_off(group, group.status_owner)
            return
        wanted = dict(counts)
        if self._said(group, wanted):
            self.forget(uid)
            return
        self._wanted[uid] = wanted
        if uid not in self._settling:
            loop = asyncio.get_running_loop()
            self._settling[uid] = loop.call_later(SETTLE_SECONDS, self._settled, group)

    def forget(self, uid: str) -> None:
        """Drop what is not written yet."""
        self._wanted.pop(uid, None)
        self._writer.drop(("status", uid))
        if (timer := self._settling.pop(uid, None)) is not None:
            timer.cancel()

    def _settled(self, group: PodGroup) -> None:
        uid = group.uid
        del self._settling[uid]
        if uid in self._wanted and not self._writer.put(
            ("status", uid), Rank.GROUP_STATUS, lambda: self._write(group)
        ):
            del self._wanted[uid]

    def _said(self, group: PodGroup, wanted: dict[str, int]) -> bool:
        """Compared with our last write, even one under way, where there is one: the watch may be behind."""
        said = self._written.get(group.uid)
        if said is None:
            said = dict(group.status)
        return all(said.get(name, 0) == count for name, count in wanted.items())

    async def _write(self, group: PodGroup) -> None:
        counts = self._wanted.pop(group.uid, None)
        if counts is None:
            return
        key = group.key
        path = f"{object_path(f'/apis/{API_VERSION}', key.namespace, 'podgroups', key.name)}/status"
        body = {
            "apiVersion": API_VERSION,
            "kind": "PodGroup",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": group.uid},
            "status": counts,
        }
        self._written[group.uid] = counts
        try:
            status, answer = await self._api.request(
                "PATCH",
                path,
                query=writer_query(force="false"),
                body=body,
                content_type=APPLY_PATCH,
                timeout_seconds=_WRITE_SECONDS,
                write="status",
            )
            if status == HTTPStatus.CONFLICT and is_ownership_conflict(answer):
                self._switch_off(group, "another field manager")
            elif status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
                raise refused("PATCH", path, status, answer)
        except Exception:
            self._written.pop(group.uid, None)
            self._wanted.setdefault(group.uid, counts)  # the writer may try again
            raise

    def _switch_off(self, group: PodGroup, owner: str) -> None:
        _log.info(
            "status counts are written by another manager: left to it", group=str(group.key), owner=owner
        )
        self._off[group.uid] = True
        self.forget(group.uid)
