# SPDX-License-Identifier: Apache-2.0
"""The hand-over: a report, the objects it rests on without what is secret in them, and versions, in one file.

Decides which objects those are. The file is there whole or not at all, and for its owner alone; the same
report on the same objects gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import platform
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from app import __version__
from app.cli.forms import as_json
from app.cli.whole import whole
from app.codec.contents import Contents, Item
from app.codec.redact import Redactor
from app.codec.snapshot import ListText, SnapshotInfo
from app.domain.errors import InputError
from app.explain.report import Report
from app.explain.text import text

WHOLE: Final = ("Node", "Pod", "PodGroup.scheduling.x-k8s.io", "PodGroup.scheduling.k8s.io")
"""Kinds of which all are handed over: what is free, and who is before whom, rests on every one of them."""

FOLDER: Final = "muster-explain"

README: Final = """\
What `muster explain` said, and what it rests on. Nothing in here is needed to read the rest.

  report.txt        the report, with all of its evidence
  report.json       the same for programs (docs/explain.md)
  objects.json.gz   a v1 List of the objects it rests on: nodes, pods and PodGroups, and what else there is
                    in the namespace in question and outside of any. Environments, commands, annotations and
                    the like were removed.
  versions.txt      of Muster, Python and the API server

To look at the objects with Muster itself:

  muster explain {kind} {namespace}/{name} --snapshot objects.json.gz

The verdict is the one of report.txt. Other namespaces are there with their pods and PodGroups alone;
`muster snapshot` takes all of them, redacted likewise.
"""


def write(path: Path, report: Report, contents: Contents) -> None:
    """Write the bundle. Raises `InputError` if it cannot be written; there is no file then."""
    packed = _packed(_files(report, contents))
    try:
        with whole(path) as file:
            file.write(packed)
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
        "report.json": (as_json(report) + "\n").encode(),
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
    """`WHOLE` kinds; of others those of no namespace, of the subject's, and those in evidence."""
    names = {one.object for s in report.sections for found in s.findings for one in found.evidence}
    for item in contents.items:
        near = item.namespace in ("", report.subject.namespace) or _name(item) in names
        if item.kind in WHOLE or (near and item.kind != "SnapshotInfo.muster.dev"):
            yield item


def _name(item: Item) -> str:
    """As evidence names it."""
    kind = item.kind.partition(".")[0].lower()
    return "/".join(part for part in (kind, item.namespace, item.name) if part)


def _redacted(items: Iterable[Item]) -> list[bytes]:
    redactor = Redactor()
    found = (redactor.item(bytes(item.raw)) for item in items)
    return [raw for raw in found if raw is not None]


def _listed(raws: list[bytes], info: SnapshotInfo) -> bytes:
    """As a snapshot of its own."""
    text = ListText()
    return text.add(raws) + text.end(msgspec.structs.replace(info, redacted=True))
