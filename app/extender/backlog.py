# SPDX-License-Identifier: Apache-2.0
"""The gangs that wait for seats, in order, kept from one round to the next.

Gangs that ask for the same thing and see the same nodes stand in one line: when the first of a line is
refused, so are all behind it, and the line costs one comparison until that verdict may be wrong. A round
so costs what has changed and how many lines there are, not how many gangs wait. Decides nothing about
seats; the rounds do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterator
from heapq import heapify, heappop, heappush

import msgspec

from app.domain.ids import GangKey
from app.domain.reasons import Refusal
from app.extender.claims import Claim, Rank
from app.extender.fence import Fence


class Line(msgspec.Struct, eq=False):
    """Gangs that get the same answer. `ranks` are theirs, lowest first.

    `verdict` is the refusal of the last one that was planned. It rests on the `generations` of the columns
    it needs and, if it was planned behind one, on the `fence`.
    """

    alike: Hashable
    ranks: list[Rank] = []
    verdict: Refusal | None = None
    generations: tuple[int, ...] = ()
    fence: Fence | None = None

    def refuse(self, verdict: Refusal, generations: tuple[int, ...], fence: Fence | None) -> None:
        """The first that was planned found no seats."""
        self.verdict, self.generations, self.fence = verdict, generations, fence

    def stands(self, generations: tuple[int, ...], fence: Fence | None) -> bool:
        """Whether the verdict holds for a gang behind `fence`: what was refused without one, is with any."""
        return (
            self.verdict is not None
            and self.generations == generations
            and (self.fence is None or self.fence is fence)
        )


class Place(msgspec.Struct, frozen=True, eq=False):
    """Where a gang stands: with what claim, in which line."""

    key: GangKey
    claim: Claim
    line: Line


class Backlog:
    """At most one place per gang."""

    def __init__(self) -> None:
        self._places: dict[GangKey, Place] = {}
        self._lines: dict[Hashable, Line] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Place]:
        """All places, in no particular order."""
        return iter(list(self._places.values()))

    def get(self, key: GangKey) -> Place | None:
        """The place of a gang that waits."""
        return self._places.get(key)

    def put(self, key: GangKey, claim: Claim, *, apart: GangKey | None) -> Place:
        """Let a gang wait, or wait elsewhere. `apart` tells it from others of the same signature."""
        alike = (claim.signature, apart)
        known = self._places.get(key)
        if known is None or known.line.alike != alike or known.claim.rank != claim.rank:
            self.drop(key)
            line = self._lines.setdefault(alike, Line(alike=alike))
            insort(line.ranks, claim.rank)
        else:
            line = known.line
        place = self._places[key] = Place(key=key, claim=claim, line=line)
        return place

    def drop(self, key: GangKey) -> Place | None:
        """The gang does not wait any more; the place it had. A line that is left empty is forgotten."""
        place = self._places.pop(key, None)
        if place is not None:
            ranks = place.line.ranks
            del ranks[bisect_left(ranks, place.claim.rank)]
            if not ranks:
                del self._lines[place.line.alike]
        return place

    def in_order(self, refused: Callable[[Place], bool]) -> Iterator[Place]:
        """Places by rank. From the first that `refused` says yes to, the rest of its line is left out.

        Gangs may leave meanwhile, also the one that was yielded last.
        """
        heads = [(line.ranks[0], line) for line in self._lines.values()]
        heapify(heads)
        while heads:
            rank, line = heappop(heads)
            place = self._places.get(rank[-1])
            if place is not None and place.line is line:
                if refused(place):
                    continue
                yield place
            spot = bisect_right(line.ranks, rank)
            if spot < len(line.ranks):
                heappush(heads, (line.ranks[spot], line))
