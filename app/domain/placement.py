# SPDX-License-Identifier: Apache-2.0
"""What a pod asks of a node: the shape two pods share when one seat serves either of them."""

from __future__ import annotations

import msgspec


class Requirement(msgspec.Struct, frozen=True, gc=False):
    """One `matchExpressions`/`matchFields` entry (core/v1 `NodeSelectorRequirement`)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Term(msgspec.Struct, frozen=True, gc=False):
    """A `NodeSelectorTerm`: its requirements are ANDed; an empty term matches nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """core/v1 `Toleration`; `operator` is Equal or Exists, an empty `effect` means every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Taint(msgspec.Struct, frozen=True, gc=False):
    """core/v1 `Taint`."""

    key: str
    effect: str
    value: str = ""


class Template(msgspec.Struct, frozen=True, gc=False):
    """The scheduling shape of a pod. Members with equal templates have interchangeable seats.

    `requests` is sorted by name, in the units of `domain.resources`, and includes `pods: 1`.
    `unmodelled` names the constraints that only kube-scheduler can judge.
    """

    requests: tuple[tuple[str, int], ...]
    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    unmodelled: tuple[str, ...] = ()
