# SPDX-License-Identifier: Apache-2.0
"""`muster explain`: whom to ask (a running Muster, a file, the API), what about, and how the answer is shown.

Light to import: what works an explanation out here is imported when that is the wish. Changes nothing.
"""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from app.cli.client import Client, NoAnswerError
from app.cli.forms import as_json, as_yaml
from app.domain.errors import InputError
from app.explain.report import Report, Subject, asked
from app.explain.text import text

NAMESPACE: Final = "default"
CALL_SECONDS: Final = 60.0
"""A busy cluster's objects may take their time; the report itself does not."""


class Request(msgspec.Struct, frozen=True):
    """What was asked for. `what` are one or two words; without `snapshot` and `server` the API is read."""

    what: tuple[str, ...]
    namespace: str | None = None
    snapshot: Path | None = None
    server: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    bundle: Path | None = None
    config: Path | None = None


def report(request: Request) -> Report:
    """The answer. Raises `MusterError` when there is none."""
    _check(request)
    if request.server is not None:
        return _of_server(request)
    from app.cli import explain_local  # noqa: PLC0415 - everything heavy is behind this

    return explain_local.report(request)


def subject_of(request: Request, *, namespace: str = NAMESPACE) -> Subject:
    """What is asked about, as people write it: `pod NAME`, `pod NAMESPACE/NAME`, `pod/NAME`, `pod/NS/NAME`.

    `namespace` is meant where none is named. Raises `InputError`.
    """
    kind, *rest = [part for word in request.what for part in word.split("/")]
    if not all((kind, *rest)) or len(rest) not in (1, 2):
        raise InputError(f"{' '.join(request.what)} names nothing; write KIND NAME, such as: pod my-pod")
    *spaces, name = rest
    if spaces and request.namespace not in (None, spaces[0]):
        raise InputError(f"the namespace is {spaces[0]} in the name and {request.namespace} in -n")
    return asked(kind, spaces[0] if spaces else request.namespace or namespace, name)


def shown(report: Report, *, output: str, headers: bool) -> str:
    """In the form that is wanted: text, wide, json or yaml."""
    if output in ("text", "wide"):
        return text(report, wide=output == "wide", headers=headers)
    if output == "json":
        return as_json(report)
    return as_yaml(report)


def _check(request: Request) -> None:
    """What can be said before anybody is asked."""
    local = request.snapshot or request.kubeconfig or request.context
    if request.server is not None and local:
        raise InputError("give --server URL alone, without --snapshot, --kubeconfig and --context")
    if request.snapshot is not None and (request.kubeconfig or request.context):
        raise InputError("give --snapshot FILE alone, without --kubeconfig and --context")
    if request.server is not None and request.config is not None:
        raise InputError("a running Muster reads no --config: use --snapshot or the API")
    if request.server is not None and request.bundle is not None:
        raise InputError("a running Muster hands no objects over: use --bundle with --snapshot or the API")
    subject_of(request)


def _of_server(request: Request) -> Report:
    """From `GET /explain/…` of a running Muster."""
    client, subject = Client.of(request.server), subject_of(request)
    parts = (quote(part, safe="") for part in (subject.namespace, subject.kind, subject.name))
    path = "/explain/" + "/".join(parts)
    status, body = client.reply(path, seconds=CALL_SECONDS)
    try:
        if status == HTTPStatus.OK:
            return msgspec.json.decode(body, type=Report)
        raise InputError(msgspec.json.decode(body, type=_Error).error)
    except msgspec.DecodeError:
        raise NoAnswerError(f"{client.url} did not answer GET {path} with a report ({status})") from None


class _Error(msgspec.Struct):
    """Why a running Muster has none."""

    error: str
