# SPDX-License-Identifier: Apache-2.0
"""`muster top`: what a running Muster sees, as one plain text or as JSON.

Decides what the columns are called and which there are; `app.cli.live` shows the same in a terminal.
"""

from __future__ import annotations

from typing import Final

import msgspec
import orjson

from app.cli.age import age
from app.cli.client import Client, NoAnswerError
from app.cli.table import table
from app.domain.ids import GangApi
from app.domain.overview import ORDER, SIZES, DeviceLine, GangLine, Overview

PATH: Final = "/overview"
DEVICES: Final = (
    "resource", "nodes", "capacity", "allocatable", "used", "reserved", "free", "closed", "largest-pod",
    "whole-nodes", *(f"fits-{size}" for size in SIZES),
)  # fmt: skip
GANGS: Final = (
    "namespace", "name", "api", "state", "min", "ready", "seats", "held", "bound", "priority", "age", "waits",
    "reason",
)  # fmt: skip
APIS: Final = {GangApi.LABEL: "label", GangApi.NATIVE: "native", GangApi.SINGLE: "pod"}

Row = tuple[object, ...]


def fetch(client: Client) -> Overview:
    """The picture as of now. Raises `NoAnswerError`, also for an answer that is no picture."""
    try:
        return msgspec.json.decode(client.get(PATH), type=Overview)
    except msgspec.MsgspecError as error:
        raise _unexpected(client, error) from None


def _unexpected(client: Client, error: Exception) -> NoAnswerError:
    return NoAnswerError(f"{client.url} answered GET {PATH} with something else: {error}")


def once(client: Client, *, output: str, headers: bool) -> str:
    """All of it, to be printed once. Raises `NoAnswerError`."""
    if output == "json":
        try:
            return orjson.dumps(orjson.loads(client.get(PATH)), option=orjson.OPT_INDENT_2).decode()
        except orjson.JSONDecodeError as error:
            raise _unexpected(client, error) from None
    return text(fetch(client), headers=headers)


def text(seen: Overview, *, headers: bool) -> str:
    """A line about the replica, the devices, the gangs."""
    tables = [table(DEVICES, map(device, seen.devices))]
    if seen.gangs:
        tables.append(table(GANGS, [gang(line, seen.at) for line in seen.gangs]))
    if headers:
        return "\n\n".join([headline(seen), *tables])
    return "\n\n".join(one.partition("\n")[2] for one in tables)


def headline(seen: Overview) -> str:
    """Who tells this, and how much there is, in one line."""
    closed = f" ({seen.closed_nodes} closed)" if seen.closed_nodes else ""
    states = ", ".join(f"{seen.states[state]} {state}" for state in ORDER if seen.states.get(state))
    parts = [
        f"muster {seen.version} on {seen.replica} {standing(seen)}",
        f"{seen.nodes} nodes{closed}, {seen.pods} pods",
        f"gangs: {states or 'none'}",
    ]
    if seen.left_out:
        parts.append(f"the first {len(seen.gangs)} are shown")
    return "; ".join(parts)


def standing(seen: Overview) -> str:
    """Whether this replica decides anything."""
    if seen.problems:
        return f"is not ready ({seen.problems[0]})"
    return "is active" if seen.active else "stands by (another replica decides, and knows why gangs wait)"


def device(line: DeviceLine) -> Row:
    """The cells of `DEVICES`."""
    return (
        line.name, line.nodes, line.capacity, line.allocatable, line.used, line.reserved, line.free,
        line.closed, line.largest_pod, line.whole_nodes, *(line.fits.get(size, 0) for size in SIZES),
    )  # fmt: skip


def gang(line: GangLine, now: int) -> Row:
    """The cells of `GANGS`."""
    return (
        line.namespace, line.name, APIS.get(GangApi(line.api)), line.state, line.min, line.ready, line.seats,
        line.held, line.bound, line.priority, since(line.created, now), since(line.since, now), line.text,
    )  # fmt: skip


def since(then: int, now: int) -> str:
    """How long ago; nothing for a time that is not known."""
    return age(now - then) if then else ""
