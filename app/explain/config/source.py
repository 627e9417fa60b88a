# SPDX-License-Identifier: Apache-2.0
"""Finds the KubeSchedulerConfiguration in a text: alone, among other documents, in a List, or in a ConfigMap.

Decides which one is meant, and says so; judges nothing in it. What cannot be read is an `InputError`.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import msgspec
import yaml

from app.codec.snapshot import JsonObject
from app.domain.errors import InputError
from app.explain.config.configuration import KIND, VERSION
from app.explain.objects import dig, kind_of, mapping, maps, name_of, namespace_of, number, text


class Source(msgspec.Struct, frozen=True):
    """What was found. `where` is empty when the text is nothing but the configuration.

    `replicas` of the workload that mounts the ConfigMap; None when it is not in the text.
    """

    raw: JsonObject
    where: str = ""
    replicas: int | None = None


def find(written: str) -> Source:
    """The one configuration in YAML or JSON.

    Raises `InputError` if there is none, or are several, or it is of another version.
    """
    documents = list(_items(parse(written)))
    unread: list[InputError] = []
    found = [*_plain(documents), *_in_config_maps(documents, unread)]
    if not found:
        if unread:
            raise unread[0]
        raise InputError(f"holds no {KIND}, neither as a document nor in a data key of a ConfigMap")
    if len(found) > 1:
        places = "; ".join(one.where or "a document of its own" for one in found)
        raise InputError(f"holds {len(found)} of kind {KIND} ({places}): give one of them alone")
    _right_version(found[0])
    return found[0]


def _right_version(found: Source) -> None:
    version = text(found.raw, "apiVersion")
    if version != VERSION:
        place = f"{found.where}: " if found.where else ""
        raise InputError(f"{place}apiVersion is {version or 'not set'}; kube-scheduler reads {VERSION} alone")


def _plain(documents: Iterable[JsonObject]) -> Iterator[Source]:
    for document in documents:
        if text(document, "kind") == KIND:
            yield Source(document)


def _in_config_maps(documents: list[JsonObject], unread: list[InputError]) -> Iterator[Source]:
    """Those in data keys. A key that cannot be parsed may be something else (a script): it is put aside."""
    for document in documents:
        if kind_of(document) != "ConfigMap":
            continue
        name = "/".join(filter(None, (namespace_of(document), name_of(document))))
        for key, written in mapping(document, "data").items():
            if isinstance(written, str) and KIND in written:
                where = f"ConfigMap {name}, key {key}"
                try:
                    inner = list(_items(parse(written)))
                except InputError as error:
                    unread.append(InputError(str(error), field=where))
                    continue
                for found in _plain(inner):
                    yield Source(found.raw, where, _replicas(documents, document))


def _replicas(documents: Iterable[JsonObject], config_map: JsonObject) -> int | None:
    """Of the workload that mounts it, if that is unambiguous."""
    found = []
    for one in documents:
        volumes = maps(one, "spec", "template", "spec", "volumes")
        mounted = any(text(volume, "configMap", "name") == name_of(config_map) for volume in volumes)
        if mounted and namespace_of(one) == namespace_of(config_map):
            replicas = number(one, "spec", "replicas")
            found.append(1 if replicas is None else replicas)
    return found[0] if len(found) == 1 else None


def _items(documents: Iterable[Any]) -> Iterator[JsonObject]:
    """Objects; those of a List one by one."""
    for document in documents:
        if not isinstance(document, dict):
            continue
        if isinstance(dig(document, "items"), list) and text(document, "kind").endswith("List"):
            yield from maps(document, "items")
        else:
            yield document


def parse(written: str) -> list[Any]:
    """All documents of YAML or JSON. A key that is there twice is an error, as it is for kube-scheduler."""
    if written.lstrip().startswith("{"):
        try:
            return [json.loads(written, object_pairs_hook=_pairs)]
        except json.JSONDecodeError:
            pass  # YAML may begin like that too, and its error has a line as well
    try:
        return list(yaml.load_all(written, _Loader))
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark is not None else ""
        raise InputError(f"is neither YAML nor JSON: {line}{error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none; brackets without end
        raise InputError(f"is neither YAML nor JSON: {error}") from None


def _pairs(pairs: list[tuple[str, Any]]) -> JsonObject:
    found: JsonObject = {}
    for key, value in pairs:
        if key in found:
            raise InputError(f"has the key {key} twice in one map")
        found[key] = value
    return found


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice in a map."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag == "tag:yaml.org,2002:str":
                raise InputError(f"has the key {key.value} twice in one map, line {key.start_mark.line + 1}")
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep)
