# SPDX-License-Identifier: Apache-2.0
"""Manifest files: YAML with any number of documents, or JSON, flattened into single objects.

Judges shape alone: what a kind means is for `submit` to say. Raises `InputError` naming file and document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from app.codec.snapshot import JsonObject
from app.domain.errors import InputError

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_LOADER):  # type: ignore[misc,valid-type]
    """Timestamps stay text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in _LOADER.yaml_implicit_resolvers.items()
}


def read_manifests(path: Path) -> list[JsonObject]:
    """The objects of a file, in order; items of a List one by one."""
    try:
        documents = list(yaml.load_all(path.read_bytes(), Loader=_Loader))  # JSON is YAML
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is neither YAML nor JSON: {error}") from None
    found = [
        obj
        for number, document in enumerate(documents, start=1)
        if document is not None
        for obj in _objects(document, f"{path}: document {number}")
    ]
    if not found:
        raise InputError(f"{path} has no object in it")
    return found


def _objects(document: Any, where: str) -> Iterator[JsonObject]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        if not isinstance(items, list):
            raise InputError("is a List without items", field=where)
        for index, item in enumerate(items):
            yield from _objects(item, f"{where}: items[{index}]")
        return
    yield _checked(document, where)


def _checked(document: Any, where: str) -> JsonObject:
    if not (isinstance(document, dict) and _text(document.get("kind")) and _text(document.get("apiVersion"))):
        raise InputError("is not a Kubernetes object: it has no apiVersion and kind", field=where)
    meta = document.get("metadata")
    if not isinstance(meta, dict) or not _text(meta.get("name") or meta.get("generateName")):
        raise InputError(f"{document['kind']} has no metadata.name", field=where)
    return document


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
