# SPDX-License-Identifier: Apache-2.0
"""One look at everything: gangs by state and why they wait, devices and what would fit.

Tells what is known. Never plans and never diagnoses, so that a look costs the verbs next to nothing however
many gangs wait: a sentence is the one that was last worked out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from operator import attrgetter

from app import __version__
from app.domain.gang import GangState
from app.domain.ids import GangApi, GangKey
from app.domain.overview import ORDER, GangLine, Overview
from app.extender.headroom import devices
from app.extender.service import Service
from app.extender.states import Stated, Tally
from app.inventory.reservations import Phase


class Lookout:
    """Looks at one service, called `replica` by people."""

    def __init__(self, service: Service, *, replica: str) -> None:
        self._service = service
        self._replica = replica
        self._tally = Tally(service.inventory)

    def look(self, *, now: float, limit: int) -> Overview:
        """As of `now`, in Unix seconds; with at most `limit` gangs."""
        service, inventory = self._service, self._service.inventory
        stated = self._tally.states()
        shown = first(stated, limit)
        return Overview(
            at=int(now),
            version=__version__,
            replica=self._replica,
            active=service.active,
            problems=service.unready(),
            nodes=inventory.nodes.count,
            closed_nodes=len(inventory.nodes.closed),
            pods=len(inventory.pods),
            states=dict(Counter(one.state for one in stated)),
            devices=devices(inventory),
            gangs=[self._line(one, now) for one in shown],
            left_out=len(stated) - len(shown),
        )

    def _line(self, one: Stated, now: float) -> GangLine:
        roll, key = one.gang.roll, one.gang.key
        bookings = self._service.inventory.book.of(key)
        reason, text, since = self._why(key, now)
        return GangLine(
            namespace=key.namespace,
            name=str(key).removeprefix(f"{key.namespace}/"),
            kind="pod" if key.api is GangApi.SINGLE else "podgroup",
            api=key.api,
            state=one.state,
            min=roll.minimum,
            ready=roll.counted - roll.settled,
            bound=roll.settled - roll.succeeded,
            held=sum(booking.phase is Phase.HELD for booking in bookings),
            seats=len(bookings),
            priority=roll.priority,
            created=roll.created,
            reason=reason,
            text=text,
            since=since,
        )

    def _why(self, key: GangKey, now: float) -> tuple[str, str, int]:
        """Code, sentence, and since when; nothing for a gang that waits for nothing here."""
        roster = self._service.roster
        if not self._service.active or not roster.waits(key):
            return "", "", 0
        refusal = roster.remembered(key)
        text = refusal.text.removesuffix(": ")  # nobody has asked for the blocker yet
        return refusal.reason.code, text, int(now - roster.quiet_seconds(key))


def first(stated: Iterable[Stated], limit: int) -> list[Stated]:
    """The first gangs of the order in which people look at them, at most `limit`."""
    by_state: dict[GangState, list[Stated]] = {state: [] for state in ORDER}
    for one in stated:
        by_state[one.state].append(one)
    found: list[Stated] = []
    for ones in by_state.values():
        found += nsmallest(limit - len(found), ones, key=attrgetter("turn"))
    return found
