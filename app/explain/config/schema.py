# SPDX-License-Identifier: Apache-2.0
"""The fields of a KubeSchedulerConfiguration (v1), to tell those that kube-scheduler does not know.

kube-scheduler decodes strictly: a field it does not know, or one of another type, and it does not start.
Arguments of plugins are not looked into: every plugin has its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from app.explain.config.configuration import shown
from app.explain.config.duration import seconds

Schema = Any
"""A name of a type, a map of fields to schemas, or a list that holds the schema of its items."""

_PLUGIN: Final[Schema] = {"name": "string", "weight": "integer"}
_POINT: Final[Schema] = {"enabled": [_PLUGIN], "disabled": [_PLUGIN]}
POINTS: Final = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve"),
    *("permit", "preBind", "bind", "postBind", "multiPoint", "placementGenerate", "placementScore"),
    "podGroupPostFilter",
)
"""The extension points of a plugin."""

_TLS: Final[Schema] = {
    "insecure": "boolean",
    **dict.fromkeys(
        ("serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"), "string"
    ),
}
_EXTENDER: Final[Schema] = {
    **dict.fromkeys(("urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "bindVerb"), "string"),
    **dict.fromkeys(("enableHTTPS", "nodeCacheCapable", "ignorable"), "boolean"),
    "weight": "integer",
    "tlsConfig": _TLS,
    "httpTimeout": "duration",
    "managedResources": [{"name": "string", "ignoredByScheduler": "boolean"}],
}
_PROFILE: Final[Schema] = {
    "schedulerName": "string",
    "percentageOfNodesToScore": "integer",
    "plugins": dict.fromkeys(POINTS, _POINT),
    "pluginConfig": [{"name": "string", "args": "anything"}],
}
CONFIGURATION: Final[Schema] = {
    "apiVersion": "string",
    "kind": "string",
    **dict.fromkeys(("parallelism", "percentageOfNodesToScore"), "integer"),
    **dict.fromkeys(("podInitialBackoffSeconds", "podMaxBackoffSeconds"), "integer"),
    **dict.fromkeys(("enableProfiling", "enableContentionProfiling", "delayCacheUntilActive"), "boolean"),
    "leaderElection": {
        "leaderElect": "boolean",
        **dict.fromkeys(("leaseDuration", "renewDeadline", "retryPeriod"), "duration"),
        **dict.fromkeys(("resourceLock", "resourceName", "resourceNamespace"), "string"),
    },
    "clientConnection": {
        **dict.fromkeys(("kubeconfig", "acceptContentTypes", "contentType"), "string"),
        "qps": "number",
        "burst": "integer",
    },
    "profiles": [_PROFILE],
    "extenders": [_EXTENDER],
}


class Odd(msgspec.Struct, frozen=True):
    """A field that is not known (`wanted` is empty; `near` is one that is), or not of its type."""

    where: str
    value: str
    wanted: str = ""
    near: str = ""


def odd(value: object, schema: Schema = CONFIGURATION, where: str = "") -> Iterator[Odd]:
    """All that does not fit, in the order of the file."""
    if value is None:
        return
    if isinstance(schema, dict):
        yield from _odd_map(value, schema, where)
    elif isinstance(schema, list):
        yield from _odd_list(value, schema[0], where)
    elif not _fits(value, schema):
        yield Odd(where, shown(value), wanted=schema)


def _odd_map(value: object, schema: Schema, where: str) -> Iterator[Odd]:
    if not isinstance(value, dict):
        yield Odd(where, shown(value), wanted="map")
        return
    for key, inner in value.items():
        place = f"{where}.{key}".removeprefix(".")
        if key in schema:
            yield from odd(inner, schema[key], place)
        else:
            near = {name.lower(): name for name in schema}
            close = get_close_matches(str(key).lower(), near, n=1, cutoff=0.6)
            yield Odd(place, shown(inner), near=near[close[0]] if close else "")


def _odd_list(value: object, schema: Schema, where: str) -> Iterator[Odd]:
    if not isinstance(value, list):
        yield Odd(where, shown(value), wanted="list")
        return
    for at, item in enumerate(value):
        yield from odd(item, schema, f"{where}[{at}]")


def _fits(value: object, name: str) -> bool:
    match name:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "duration":
            return seconds(value) is not None
        case _:
            return True
