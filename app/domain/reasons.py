# SPDX-License-Identifier: Apache-2.0
"""Why not. Each reason has a stable code, a constant sentence and, in a `Refusal`, the detail around it.

kube-scheduler prints a histogram of the texts we answer with, so a node-level text never carries numbers
or names, and a gang-level text is the same for every node of one answer.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from app.domain.ids import GangKey


class Reason(Enum):
    """(code, sentence). `{gang}`, `{have}`, `{need}` and `{subject}` are filled from the refusal."""

    # The gang cannot start, whatever the node.
    NO_POD_GROUP = ("NoPodGroup", "gang {gang} has no PodGroup yet: create it in the same namespace")
    MIXED_APIS = ("MixedApis", "pod names two PodGroups: {subject}; keep one of the two")
    INCOMPLETE = ("Incomplete", "gang {gang} has {have} of {need} members")
    FOREIGN_GATE = ("ForeignGate", "gang {gang} has {have} of {need} members ready: {subject}")
    NEVER_FITS = ("NeverFits", "gang {gang} can never fit: {subject}")
    NO_PACKING = (
        "NoPacking",
        "gang {gang} found no packing, not even on an empty cluster, which is no proof: {subject}",
    )
    BUSY = ("Busy", "gang {gang} has seats for {have} of {need} members: {subject}")
    SURPLUS = ("Surplus", "gang {gang} has its minimum and runs; this further member waits: {subject}")
    BEHIND = ("Behind", "gang {gang} waits behind gang {subject}")
    BACKOFF = ("Backoff", "gang {gang} waits before its next try: {subject}")
    NOT_OFFERED = ("NotOffered", "gang {gang} has no seat on the nodes that kube-scheduler offers")
    PENDING = ("Pending", "gang {gang} is about to be planned")
    UNSEEN = ("Unseen", "pod is not in the cache yet")
    # The gang lost what it had.
    LAPSED = ("Lapsed", "gang {gang} gave its seats back: {have} of {need} members came to bind in time")
    DISPLACED = ("Displaced", "gang {gang} lost its seats: {subject}")
    WITHDRAWN = ("Withdrawn", "gang {gang} gave its seats back: {subject}")
    INTERNAL = ("Internal", "gang {gang} could not be planned, which is a fault of Muster: {subject}")
    # This node cannot take this pod.
    FULL = ("NodeFull", "node has too little free of what the pod requests")
    RESERVED = ("NodeReserved", "what is free on the node is reserved for a gang or a nominated pod")
    TOO_SMALL = ("NodeTooSmall", "node could not hold the pod even when empty")
    UNKNOWN_NODE = ("UnknownNode", "node is not in the cache yet")

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A reason with its detail. Pure value: the same facts give the same text."""

    reason: Reason
    gang: GangKey | None = None
    have: int = 0
    need: int = 0
    subject: str = ""

    @property
    def text(self) -> str:
        """One sentence for a FailedNodes entry, an event or a bind error."""
        return self.reason.sentence.format(
            gang=self.gang, have=self.have, need=self.need, subject=self.subject
        )
