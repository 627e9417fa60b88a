# SPDX-License-Identifier: Apache-2.0
"""Names what keeps a gang from its seats. Never changes anything; costs a plan or two, so ask lazily.

The order of the questions is the order in which a person would rule things out: is the gang complete at
all, could an empty cluster hold it, is another gang before it, and only then: who holds the devices.
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest

import msgspec
import numpy as np

from app.domain.ids import GangApi
from app.domain.placement import Template, Toleration
from app.domain.plan import Demand, Plan
from app.domain.pod import Pod
from app.domain.reasons import Reason, Refusal
from app.domain.resources import is_device
from app.explain.words import in_units
from app.inventory.columns import Mask, Matrix
from app.inventory.gangs import Gang
from app.inventory.inventory import Inventory, holder_of
from app.inventory.view import View
from app.planner.capacity import seats_per_row
from app.planner.plan import impossible, plan


def unplannable(gang: Gang) -> Refusal | None:
    """Why a gang cannot be planned whatever is free; None when it could be."""
    roll = gang.roll
    if not gang.defined:
        return Refusal(reason=Reason.NO_POD_GROUP, gang=gang.key)
    if roll.quorum:
        return None
    gated = roll.gated_by_others
    if gated and roll.counted + len(gated) >= roll.minimum:
        subject = f"pod {gated[0].name} is held by gate {gated[0].foreign_gates[0]}"
        return Refusal(
            reason=Reason.FOREIGN_GATE, gang=gang.key, have=roll.counted, need=roll.minimum, subject=subject
        )
    return Refusal(reason=Reason.INCOMPLETE, gang=gang.key, have=roll.counted, need=roll.minimum)


def mixed_apis(pod: Pod) -> Refusal | None:
    """Why a pod that carries both PodGroup APIs belongs to no gang; None for any other pod."""
    if pod.mixed is None:
        return None
    return Refusal(reason=Reason.MIXED_APIS, subject=" and ".join(pod.mixed))


def blocker(inventory: Inventory, demand: Demand, found: Refusal) -> Refusal:
    """A BUSY refusal made exact: can never fit, behind another gang, or busy and who holds it.

    A gang that nodes are kept from (BEHIND already) would fit there now, which is as exact as can be."""
    if found.reason is Reason.BEHIND:
        return found
    never = _never_fits(inventory, demand)
    if never is not None:
        return never
    ahead = _ahead(inventory, demand)
    if ahead:
        return Refusal(
            reason=Reason.BEHIND, gang=demand.gang, have=found.have, need=found.need, subject=ahead
        )
    return Refusal(
        reason=Reason.BUSY,
        gang=demand.gang,
        have=found.have,
        need=found.need,
        subject=_held(inventory, demand),
    )


def surplus(refusal: Refusal) -> Refusal:
    """The same blocker, told to a member beyond the minimum of a gang that runs."""
    subject = refusal.text.partition(": ")[2] or refusal.text
    return Refusal(
        reason=Reason.SURPLUS, gang=refusal.gang, have=refusal.have, need=refusal.need, subject=subject
    )


def _never_fits(inventory: Inventory, demand: Demand) -> Refusal | None:
    empty = inventory.view_when_empty()
    verdict = plan(empty, demand)
    if isinstance(verdict, Plan):
        return None
    subject = f"an empty cluster would have seats for {verdict.have} of {verdict.need} members"
    for template in {member.template: None for member in demand.members}:
        if not seats_per_row(empty, template, empty.free, most=1).any():
            who = "a pod" if demand.gang.api is GangApi.SINGLE else "a member"
            subject = _no_node(inventory, template, who)
            break
    reason = Reason.NEVER_FITS if impossible(empty, demand) else Reason.NO_PACKING
    return Refusal(reason=reason, gang=demand.gang, have=verdict.have, need=verdict.need, subject=subject)


def _no_node(inventory: Inventory, template: Template, who: str) -> str:
    admits = inventory.admitting(template)
    if not admits.any():
        chosen = msgspec.structs.replace(template, tolerations=(Toleration(operator="Exists"),))
        if inventory.admitting(chosen).any():
            return f"every node that {who} may choose is tainted, cordoned or not ready"
        return f"no node matches the selector and affinity of {who}"
    for name, asked in sorted(template.requests, key=lambda item: not is_device(item[0])):
        able = inventory.columns.allocatable(name)
        largest, anywhere = int(able[admits].max(initial=0)), int(able.max(initial=0))
        if largest < asked:
            which = "node it may use" if anywhere > largest else "node"
            has = f"the largest {which} has {in_units(name, largest)}" if anywhere else "no node has any"
            return f"{who} requests {in_units(name, asked)} {name} and {has}"
    return f"no node that {who} may use could hold it even when empty"


def _ahead(inventory: Inventory, demand: Demand) -> str:
    """The gang whose reservation makes the difference, or nothing."""
    if not len(inventory.book):
        return ""
    verdict = plan(inventory.view_without_reservations(), demand)
    if not isinstance(verdict, Plan):
        return ""
    rows = {inventory.columns.row_of[seat.node] for seat in verdict.seats}
    holders = sorted(
        (booking.plan, str(booking.gang))
        for row in rows
        for booking in inventory.book.on(row)
        if booking.gang and booking.gang != demand.gang
    )
    return holders[0][1] if holders else ""


def _held(inventory: Inventory, demand: Demand) -> str:
    """Which resource is short where the members may go, and who holds most of it."""
    name = _scarcest(inventory, demand)
    rows = np.logical_or.reduce([inventory.admitting(member.template) for member in demand.members])
    columns = inventory.columns
    if not is_device(name):  # elsewhere it helps nobody who asks for devices too
        for device in _devices_with(demand, name):
            rows &= columns.allocatable(device) > 0
    each = (columns.allocatable(name), columns.used(name), columns.reserved(name))
    total, used, reserved = (int(amounts[rows].sum()) for amounts in each)
    holders = inventory.holders.get(name) or _holders(inventory, name)
    most = nsmallest(2, holders.items(), key=lambda item: (-item[1], item[0]))
    who = ", ".join(f"{holder} holds {in_units(name, held)}" for holder, held in most)
    free = f"{in_units(name, max(0, total - used))} of {in_units(name, total)} {name} free"
    if total < int(columns.allocatable(name).sum()):
        free += " on nodes it may use"
    if reserved:
        free += f", {in_units(name, reserved)} of them reserved"
    nominated = _nominated(inventory, demand, name, rows)
    if nominated:
        free += f", {in_units(name, nominated)} of them for nominated pods"
    return f"{free}; {who}" if who else free


def _devices_with(demand: Demand, name: str) -> set[str]:
    """Devices that every member asks for that asks for a resource."""
    asks = [{n for n, one in member.template.requests if one} for member in demand.members]
    sets = [{n for n in names if is_device(n)} for names in asks if name in names]
    return set.intersection(*sets) if sets else set()


def _nominated(inventory: Inventory, demand: Demand, name: str, rows: Mask) -> int:
    """What pods that are nominated and not bound keep of it there."""
    own = {member.uid for member in demand.members}
    before = inventory.nominations_before(demand.priority, but=own)
    return sum(dict(pod.template.requests).get(name, 0) for row, pod in before if rows[row])


def _holders(inventory: Inventory, name: str) -> Counter[str]:
    """Who holds a resource that is no device; those are kept count of as they change."""
    holders: Counter[str] = Counter()
    for pod in inventory.pods.values():
        held = dict(pod.template.requests).get(name, 0)
        if held and pod.node is not None and not pod.finished:
            holders[holder_of(pod)] += held
    return holders


def _room(view: View, template: Template, name: str, one: int) -> Matrix:
    """How many pods of a template one resource alone would seat by row, shape (rows,)."""
    column = view.column_of.get(name)
    if column is None:
        return np.zeros(view.rows, np.int64)
    free = np.where(view.admitting(template)[: view.rows], view.free[column, : view.rows], 0)
    room: Matrix = np.maximum(free // one, 0)
    return room


def _scarcest(inventory: Inventory, demand: Demand) -> str:
    """The resource that seats the fewest members if it alone is asked for; a device rather than another."""
    view = inventory.view(priority=demand.priority, gang=demand.gang)
    asked: Counter[str] = Counter()
    seated: Counter[str] = Counter()
    for template, count in Counter(member.template for member in demand.members).items():
        rooms = {name: _room(view, template, name, one) for name, one in template.requests}
        devices = [room for name, room in rooms.items() if is_device(name)]
        for name, one in template.requests:
            # another resource matters where the devices are: what is free elsewhere seats nobody
            room = rooms[name] if is_device(name) else np.minimum.reduce([rooms[name], *devices])
            asked[name] += count * one
            seated[name] += (
                min(int(room.sum()), count) - count
            )  # fewer templates may ask for it: starts level
    return min(asked, key=lambda name: (seated[name], not is_device(name), -asked[name], name))
