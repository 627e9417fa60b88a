# SPDX-License-Identifier: Apache-2.0
"""The hand-over: a report, the objects it rests on without what is secret in them, and versions, in one file.

Decides which objects those are. The file is there whole or not at all, and for its owner alone; the same
report on the same objects gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from app import __version__
from app.codec.contents import Contents, Item
from app.codec.redact import Redactor
from app.codec.snapshot import ListText, SnapshotInfo, Unseen
from app.domain.errors import InputError
from app.domain.pod import Pod
from app.explain.report import Report
from app.explain.text import text

MOST_NODES: Final = 200
"""Nodes that are handed over beside those in evidence: enough to see what they look like."""

FOLDER: Final = "muster-explain"
UNCUT: Final = "only what the report rests on was handed over"

README: Final = """\
What `muster explain` said, and what it rests on. Nothing in here is needed to read the rest.

  report.txt        the report, with all of its evidence
  report.json       the same for programs (docs/explain.md)
  objects.json.gz   a v1 List of the objects it rests on: what was asked about and its namespace, the nodes in
                    evidence and some of the others, and the pods on them. Environments, commands, annotations
                    and the like were removed.
  versions.txt      of Muster, Python and the API server

To look at the objects with Muster itself:

  muster explain {kind} {namespace}/{name} --snapshot objects.json.gz

That is not the whole cluster, and the verdict may differ from the one in report.txt: that one was made with
everything in sight. `muster snapshot` takes the whole, redacted likewise.
"""


def write(path: Path, report: Report, contents: Contents) -> None:
    """Write the bundle. Raises `InputError` if it cannot be written; there is no file then."""
    packed = _packed(_files(report, contents))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(packed)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}", field="--bundle") from None


def _files(report: Report, contents: Contents) -> dict[str, bytes]:
    subject, info = report.subject, contents.info or SnapshotInfo()
    objects = _listed(_redacted(_rests_on(report, contents)), info)
    readme = README.format(kind=subject.kind, namespace=subject.namespace, name=subject.name)
    versions = (
        f"muster {__version__}\npython {platform.python_version()}\n"
        f"API server {info.server_version or 'not known'}\n"
    )
    return {
        "README": readme.encode(),
        "report.txt": (text(report, wide=True) + "\n").encode(),
        "report.json": msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n",
        "objects.json.gz": gzip.compress(objects, mtime=0),
        "versions.txt": versions.encode(),
    }


def _packed(files: dict[str, bytes]) -> bytes:
    """A tar file without dates and owners."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{FOLDER}/{name}")
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(tar.getvalue(), mtime=0)


# -- which objects


def _rests_on(report: Report, contents: Contents) -> Iterator[Item]:
    """All of the subject's namespace and of none; nodes as `MOST_NODES` says; pods on those nodes."""
    names = {one.object for s in report.sections for found in s.findings for one in found.evidence}
    nodes = _nodes(names, contents)
    pods = (change.value for change in contents.changes if isinstance(change.value, Pod))
    placed = {(pod.namespace, pod.name) for pod in pods if pod.node in nodes}
    for item in contents.items:
        if item.kind == "Node":
            wanted = item.name in nodes
        elif item.kind == "SnapshotInfo.muster.dev":
            wanted = False
        else:
            wanted = item.namespace in ("", report.subject.namespace) or _name(item) in names
            wanted = wanted or (item.kind == "Pod" and (item.namespace, item.name) in placed)
        if wanted:
            yield item


def _nodes(names: set[str], contents: Contents) -> set[str]:
    """Those in evidence, and the first of the others."""
    nodes = [item.name for item in contents.items if item.kind == "Node"]
    evident = [name for name in nodes if f"node/{name}" in names]
    return {*evident, *nodes[:MOST_NODES]}


def _name(item: Item) -> str:
    """As evidence names it."""
    kind = item.kind.partition(".")[0].lower()
    return "/".join(part for part in (kind, item.namespace, item.name) if part)


def _redacted(items: Iterable[Item]) -> list[bytes]:
    redactor = Redactor()
    found = (redactor.item(bytes(item.raw)) for item in items)
    return [raw for raw in found if raw is not None]


def _listed(raws: list[bytes], info: SnapshotInfo) -> bytes:
    """As a snapshot that says itself that it is a part: what is free is an upper bound then."""
    gaps = [gap for gap in info.unseen if gap.kind not in ("nodes", "pods")]
    cut = SnapshotInfo(
        taken=info.taken,
        server_version=info.server_version,
        namespaces=info.namespaces,
        redacted=True,
        absent=info.absent,
        unseen=(*gaps, *(Unseen(kind, UNCUT) for kind in ("nodes", "pods"))),
        api_gates=info.api_gates,
        scheduler_gates=info.scheduler_gates,
    )
    text = ListText()
    return text.add(raws) + text.end(cut)
