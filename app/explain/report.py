# SPDX-License-Identifier: Apache-2.0
"""What an explanation says: a verdict, the sections of the reads, and what could not be seen.

Values alone, light to import: a client decodes them from JSON and prints them. Decides nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from app.domain.errors import InputError
from app.domain.ids import GangApi
from app.explain.finding import Finding


class Subject(msgspec.Struct, frozen=True):
    """What is asked about. `kind` is one of KINDS."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


KINDS: Final = {
    "pod": "Pod",
    "podgroup": "",
    "job": "Job.batch",
    "jobset": "JobSet.jobset.x-k8s.io",
    "replicaset": "ReplicaSet.apps",
    "statefulset": "StatefulSet.apps",
    "deployment": "Deployment.apps",
}
"""What can be asked about, and its `Kind.group`; a PodGroup may be of either API."""

GROUPS: Final = (GangApi.LABEL.value, GangApi.NATIVE.value)
"""The API groups of a PodGroup."""

ALIASES: Final = {
    "po": "pod",
    "pg": "podgroup",
    "rs": "replicaset",
    "sts": "statefulset",
    "deploy": "deployment",
}


def kind_named(word: str) -> str | None:
    """The kind that people mean: `Pods`, `po`, `jobs.batch`; None if it cannot be asked about."""
    name, _, group = word.lower().partition(".")
    name = ALIASES.get(name, name)
    kind = name if name in KINDS else name.removesuffix("s")
    if kind not in KINDS:
        return None
    groups = GROUPS if kind == "podgroup" else (KINDS[kind].partition(".")[2],)
    return kind if not group or group in groups else None


def asked(kind: str, namespace: str, name: str) -> Subject:
    """What somebody asks about. Raises `InputError` for a kind that cannot be."""
    found = kind_named(kind)
    if found is None:
        raise InputError(f"{kind} cannot be explained; ask about one of {', '.join(KINDS)}")
    return Subject(found, namespace, name)


class Outcome(StrEnum):
    """The verdict in one word. The words are stable: scripts compare them."""

    RUNS = "runs"
    FINISHED = "finished"
    FITS = "fits"
    """Could start now, and nothing that was seen speaks against it."""
    BUSY = "busy"
    """Would fit if others did not hold, or were not before it for, what it needs."""
    NEVER_FITS = "never-fits"
    """Proven: not even the empty cluster, as it stands, would hold it."""
    NO_PACKING = "no-packing-found"
    """No seats were found, and there is no proof that there are none."""
    BLOCKED = "blocked"
    """Something other than room: it could not start on an empty cluster."""
    UNKNOWN = "unknown"


EXITS: Final = {Outcome.RUNS: 0, Outcome.FINISHED: 0, Outcome.FITS: 0, Outcome.UNKNOWN: 2}
"""Exit code by outcome; 1 for all others."""


class Verdict(msgspec.Struct, frozen=True):
    """The first line. `exit` is the command's exit code: 0 fits or runs, 1 does not, 2 could not tell."""

    code: Outcome
    sentence: str
    exit: int


def verdict(code: Outcome, sentence: str) -> Verdict:
    """With its exit code."""
    return Verdict(code, sentence, EXITS.get(code, 1))


class Section(msgspec.Struct, frozen=True):
    """One read: its findings, or what is said when there are none."""

    title: str
    findings: tuple[Finding, ...]
    nothing: str


class Report(msgspec.Struct, frozen=True):
    """The answer to "why is it pending". `unseen` are sentences that limit what the rest is worth."""

    subject: Subject
    verdict: Verdict
    sections: tuple[Section, ...]
    unseen: tuple[str, ...] = ()
