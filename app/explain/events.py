# SPDX-License-Identifier: Apache-2.0
"""Events about an object, of either API (core/v1 and events.k8s.io/v1), newest last.

Reads raw objects that nobody has checked. Judges nothing.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final, TypeAlias

import msgspec

from app.codec.objects import seconds
from app.codec.snapshot import JsonObject
from app.explain.objects import Objects, mapping, number, text

KINDS: Final = ("Event", "Event.events.k8s.io")
_TIMES: Final = (("series", "lastObservedTime"), ("lastTimestamp",), ("deprecatedLastTimestamp",),
                 ("eventTime",), ("firstTimestamp",), ("metadata", "creationTimestamp"))  # fmt: skip


class Happened(msgspec.Struct, frozen=True, gc=False):
    """One event: who said what of whom, when it was last seen (Unix seconds, 0 unknown), how often."""

    object: str
    reason: str
    message: str
    source: str = ""
    at: int = 0
    times: int = 1

    @property
    def count(self) -> str:
        """How often, if more than once."""
        return f", {self.times} times" if self.times > 1 else ""


ByObject: TypeAlias = dict[tuple[str, str], list[Happened]]
"""Events by kind and name of what they are about, oldest first."""


def events_of(objects: Objects, namespace: str) -> ByObject:
    """All events of a namespace."""
    found: defaultdict[tuple[str, str], list[Happened]] = defaultdict(list)
    for kind in KINDS:
        for raw in objects.of(kind, namespace):
            about = mapping(raw, "involvedObject") or mapping(raw, "regarding")
            found[text(about, "kind"), text(about, "name")].append(_happened(raw))
    return {about: sorted(events, key=lambda event: event.at) for about, events in found.items()}


def _happened(raw: JsonObject) -> Happened:
    return Happened(
        object=f"event/{text(raw, 'metadata', 'namespace')}/{text(raw, 'metadata', 'name')}",
        reason=text(raw, "reason"),
        message=" ".join((text(raw, "message") or text(raw, "note")).split()),
        source=text(raw, "source", "component") or text(raw, "reportingController")
        or text(raw, "reportingComponent"),
        at=max(seconds(text(raw, *path)) for path in _TIMES),
        times=number(raw, "series", "count") or number(raw, "count") or 1,
    )  # fmt: skip
