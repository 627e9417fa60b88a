# SPDX-License-Identifier: Apache-2.0
"""Snapshots: the `v1 List` that `kubectl get nodes,pods,… -A -o json` prints, plain or gzipped.

Kinds that are not followed are kept as they are. Raises `InputError` naming the file and the item.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, Final

import orjson

from app.codec.objects import ObjectDecoder
from app.domain.changes import Value
from app.domain.errors import InputError
from app.domain.ids import GangApi

JsonObject = dict[str, Any]
_GZIP: Final = b"\x1f\x8b"


def read(path: Path) -> list[JsonObject]:
    """The items of a snapshot file."""
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"cannot read {path}: {reason}") from None
    return items_of(data, source=str(path))


def items_of(data: bytes, *, source: str) -> list[JsonObject]:
    """The items of a List in memory."""
    try:
        top = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{source} is not JSON: {error}") from None
    items = top.get("items") if isinstance(top, dict) else None
    if not isinstance(items, list):
        raise InputError(f"{source} is not a v1 List: it has no items; use the output of kubectl get -o json")
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
            raise InputError("is not a Kubernetes object with metadata", field=f"{source}: items[{index}]")
    return items


def value_of(decoder: ObjectDecoder, obj: JsonObject) -> Value | None:
    """The domain value of one object; None for kinds that are not followed."""
    kind, version = obj.get("kind"), str(obj.get("apiVersion") or "")
    raw = _bytes(obj)  # of any kind: what cannot be written could not be shown again
    if kind == "Pod" and version == "v1":
        return decoder.pod(raw)
    if kind == "Node" and version == "v1":
        return decoder.node(raw)
    if kind == "PodGroup" and version.partition("/")[0] in (GangApi.LABEL, GangApi.NATIVE):
        return decoder.pod_group(raw)
    return None


def _bytes(obj: JsonObject) -> bytes:
    try:
        return orjson.dumps(obj)
    except TypeError as error:  # orjson writes less deep than it reads
        raise InputError(f"{obj.get('kind')} cannot be written as JSON: {error}") from None
