# SPDX-License-Identifier: Apache-2.0
"""What a watch tells: an object is now so, or it is gone."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from app.domain.gang import PodGroup
from app.domain.node import Node
from app.domain.pod import Pod

Value: TypeAlias = Pod | Node | PodGroup


class Kind(StrEnum):
    """The kinds that are followed. The two PodGroup APIs are two kinds."""

    NODE = "nodes"
    POD = "pods"
    LABEL_GROUP = "podgroups.scheduling.x-k8s.io"
    NATIVE_GROUP = "podgroups.scheduling.k8s.io"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One event. `value` is the last known state also when `gone`."""

    value: Value
    gone: bool = False
