# SPDX-License-Identifier: Apache-2.0
"""The eyes of the witness, in a process of their own: what a watch of pods shows, and when.

A process of its own because a thread beside dozens that create pods would see late, and what it sees late
would be told of the scheduler. Decides nothing: it says `created`, `bound` and `gone`, each once for a pod.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, Literal

import msgspec

from tests.cluster import ApiClient

BATCH_SECONDS: Final = 0.005
"""Sightings are handed over in batches: the moments are taken before."""

What = Literal["created", "bound", "gone", "failed"]
Sighting = tuple[float, str, What]
"""Moment (monotonic, the same clock in all processes), pod, what. For `failed` the text is the reason."""


class _Metadata(msgspec.Struct):
    name: str = ""
    resourceVersion: str = ""


class _Spec(msgspec.Struct):
    nodeName: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    message: str = ""  # of a Status


class _Event(msgspec.Struct):
    type: str
    object: _Pod


def follow(port: int, token: str, ca_file: Path, path: str, out: Connection) -> None:
    """The child process: watch from now on. The first message is empty and says that it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's; the parent ends this process
    found: list[Sighting] = []
    threading.Thread(target=_hand_over, args=(found, out), daemon=True).start()
    client = ApiClient(port, token=token, ca_file=ca_file)
    try:
        version = str(client.get(f"{path}?limit=1")["metadata"]["resourceVersion"])
        out.send([])
        for event in _events(client, path, version):
            found.extend(_new(event))
    except Exception as error:
        found.append((time.monotonic(), repr(error), "failed"))
    while found:
        time.sleep(BATCH_SECONDS)


def _events(client: ApiClient, path: str, version: str) -> Iterator[_Event]:
    """Across watches: the server ends one that is slow or old, and serves the next from where it ended."""
    decode = msgspec.json.Decoder(_Event).decode
    while True:
        for line in client.watch(f"{path}?resourceVersion={version}").lines():
            event = decode(line)
            if event.type == "ERROR":
                raise RuntimeError(event.object.message)
            version = event.object.metadata.resourceVersion
            yield event


_seen: dict[str, set[What]] = {}


def _new(event: _Event) -> Iterator[Sighting]:
    """What the event shows for the first time."""
    now, name = time.monotonic(), event.object.metadata.name
    known = _seen.setdefault(name, set())
    shown: list[What] = ["created"]
    shown += ["bound"] if event.object.spec.nodeName else []
    shown += ["gone"] if event.type == "DELETED" else []
    for what in shown:
        if what not in known:
            known.add(what)
            yield now, name, what


def _hand_over(found: list[Sighting], out: Connection) -> None:
    while True:
        time.sleep(BATCH_SECONDS)
        count = len(found)
        if count:
            try:
                out.send(found[:count])
            except OSError:  # nobody listens any more
                os._exit(1)
            del found[:count]
