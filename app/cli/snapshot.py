# SPDX-License-Identifier: Apache-2.0
"""`muster snapshot`: a redacted snapshot, from the API or from a running Muster, into a file or a pipe.

Decides where it goes and what is said about it on stderr. A file is there whole or not at all, and for its
owner alone: it describes a cluster. Never holds more than a few pages.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import orjson

from app.cli.client import CHUNK, Client, NoAnswerError
from app.cli.table import table
from app.cli.whole import whole
from app.codec.kinds import KINDS
from app.codec.snapshot import LIST_END, SnapshotInfo, info_of
from app.domain.errors import ApiError, InputError

Write: TypeAlias = Callable[[bytes], object]
Source: TypeAlias = Callable[[Write], SnapshotInfo]
"""Writes the text of a snapshot, and tells what it says of itself. Raises `MusterError`."""

STDOUT: Final = "-"
_LEVEL: Final = 4
_QUIET_SECONDS: Final = 2.0
_SERVER_SECONDS: Final = 120.0


def write(source: Source, output: str | None) -> bool:
    """Write it to `output`; whether nodes and pods are in it, without which nothing can be judged.

    None: stdout, and where that is a terminal a new file. Raises `MusterError`; there is no file then.
    """
    if output is None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        output = f"muster-snapshot-{stamp}.json.gz" if sys.stdout.isatty() else STDOUT
    try:
        with _opened(output) as put:
            info = source(put)
            if not info.counts:
                reasons = sorted({gap.why for gap in info.unseen})
                raise ApiError(f"nothing could be read: {'; '.join(reasons)}")
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", field=output) from None
    _tell(info, output)
    return not {"nodes", "pods"} & {gap.kind for gap in info.unseen}


def from_cluster(
    *, namespace: str | None, keep_environment: bool, kubeconfig: Path | None, context: str | None
) -> Source:
    """A live cluster, with the rights of whoever asks."""

    async def take(put: Write) -> SnapshotInfo:
        # Only here: the Kubernetes client takes most of a second to import, and --server needs none of it.
        from app.kube.client import Api  # noqa: PLC0415
        from app.kube.taking import Taking  # noqa: PLC0415

        api = await Api.connect(kubeconfig=str(kubeconfig) if kubeconfig else None, context=context)
        try:
            taking = Taking(api, namespace=namespace, keep_environment=keep_environment)
            with _progress() as progress:
                async with aclosing(taking.text()) as text:
                    async for bit in text:
                        await asyncio.to_thread(put, bit)  # zipping leaves the interpreter free
                        progress(f"{sum(taking.counts.values())} objects")
        finally:
            await api.close()
        assert taking.info is not None
        return taking.info

    return lambda put: asyncio.run(take(put))


def from_server(client: Client, *, keep_environment: bool) -> Source:
    """A running Muster, which redacts it before it is sent."""

    def take(put: Write) -> SnapshotInfo:
        tail, size = b"", 0
        path = f"/snapshot?redacted=true&keep-env={str(keep_environment).lower()}"
        with _progress() as progress:
            for bit in client.chunks(path, seconds=_SERVER_SECONDS):
                put(bit)
                tail, size = (tail + bit)[-CHUNK:], size + len(bit)
                progress(f"{size >> 20} MiB")
        return _last(tail, client.url)

    return take


def _last(tail: bytes, url: str) -> SnapshotInfo:
    """The `SnapshotInfo` at the end of what came."""
    if not tail.endswith(LIST_END):
        raise NoAnswerError(f"{url}: the snapshot broke off; take it again")
    line = tail.removesuffix(LIST_END).rpartition(b"\n")[2]
    info = info_of([orjson.loads(line)])
    if info is None or not info.redacted:
        raise NoAnswerError(f"{url}: what came is not redacted")
    return info


@contextmanager
def _opened(output: str) -> Iterator[Write]:
    """Where to write. A file appears under its name when all has been written."""
    if output == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    path = Path(output)
    with whole(path) as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", _LEVEL, raw) as packed:
                yield packed.write
        else:
            yield raw.write


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Shows how far it is, to people who have waited for a while, and wipes it off in the end."""
    begun, shown = time.monotonic(), 0.0

    def show(text: str) -> None:
        nonlocal shown
        now = time.monotonic()
        if sys.stderr.isatty() and now - begun > _QUIET_SECONDS and now - shown > 0.2:
            shown = now
            print(f"\r{text} …\033[K", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _tell(info: SnapshotInfo, output: str) -> None:
    gaps = {gap.kind: gap.why for gap in info.unseen}
    told: dict[str, object] = {**info.counts, **gaps}
    rows = [(kind.name, told[kind.name]) for kind in KINDS if kind.name in told]
    print(table(("kind", "objects"), rows), file=sys.stderr)
    if info.partial:
        print("Nodes or pods may be missing: what looks free here is an upper bound.", file=sys.stderr)
    if output != STDOUT:
        print(f"Written to {output}, {os.path.getsize(output) / 1e6:.1f} MB.", file=sys.stderr)
