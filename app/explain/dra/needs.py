# SPDX-License-Identifier: Apache-2.0
"""What open claims ask for, and how much of it there can be.

Counts are upper bounds: what a selector comes to is judged where that takes no CEL (`selectors`) and counts
as a match where not, parts of devices count as whole ones, and requests are looked at one by one. So "too
few" is proven, and "enough" is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from app.domain.pod import Pod
from app.explain.dra.claims import Asked
from app.explain.dra.dra import Dra
from app.explain.dra.pools import Supply
from app.explain.dra.requests import Request, Wanted


class Need(msgspec.Struct):
    """One request of open claims, alike in all of them. `supplies` has one for each alternative.

    `claims` has the name of each claim, empty for one that has not been made yet. `seats` is how many pods
    must have it at once, each by a claim of its own.
    """

    request: Request
    pods: dict[str, Pod]
    claims: list[str]
    supplies: list[Supply]
    seats: int = 1

    @property
    def options(self) -> Iterator[tuple[Wanted, Supply]]:
        """The alternatives, each with what there is for it."""
        return zip(self.request.alternatives, self.supplies, strict=True)

    def short(self, *, when_empty: bool) -> bool:
        """Whether too few are free, or would be if nobody held any, whichever alternative is taken."""
        return all(
            not supply.shared and _short(wanted, supply.usable if when_empty else supply.free, self.seats)
            for wanted, supply in self.options
        )


def needs_of(dra: Dra, claims: Iterable[Asked], *, pods: int, seats: int) -> list[Need]:
    """Each request of the open claims once; nothing where devices or classes were not read.

    `pods` is how many wait, `seats` how many of them must start together.
    """
    found: dict[Request, Need] = {}
    for asked in claims if dra.sighted else ():
        for request in asked.requests if asked.open else ():
            if request.alternatives and all(
                dra.device_class(one.device_class) for one in request.alternatives
            ):
                need = found.setdefault(request, Need(request, {}, [], []))
                need.pods[asked.pod.uid] = asked.pod
                need.claims.append(asked.reference.claim)
    for need in found.values():
        need.supplies = [dra.supply(wanted) for wanted in need.request.alternatives]
        if all(need.claims) and len(set(need.claims)) == len(need.claims) and len(need.pods) == pods:
            need.seats = seats
    return list(found.values())


def _short(wanted: Wanted, by_node: Mapping[str, int], seats: int) -> bool:
    count = wanted.count or 1
    return most(by_node) < count or sum(by_node.values()) < count * seats


def most(by_node: Mapping[str, int]) -> int:
    """At most so many devices can be had from one node; those of no single node count for each."""
    return by_node.get("", 0) + max((amount for node, amount in by_node.items() if node), default=0)
