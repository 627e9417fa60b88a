# SPDX-License-Identifier: Apache-2.0
"""Identities. Plain strings at run time, distinct types for the checker."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, NewType

NodeName = NewType("NodeName", str)
PodUid = NewType("PodUid", str)


class GangApi(StrEnum):
    """Where a gang's minimum comes from; part of its key, so that the two PodGroup APIs never mix."""

    LABEL = "scheduling.x-k8s.io"
    NATIVE = "scheduling.k8s.io"
    SINGLE = "pod"
    """A gang of one: a gated pod without a group, in a namespace where singles queue with the gangs."""


class GangKey(NamedTuple):
    """`name` is the PodGroup's name; for a gang of one, the pod's name and UID."""

    api: GangApi
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name.partition('@')[0]}"


def single_key(namespace: str, name: str, uid: str) -> GangKey:
    """Key of the gang of one made of this very pod."""
    return GangKey(GangApi.SINGLE, namespace, f"{name}@{uid}")
