# SPDX-License-Identifier: Apache-2.0
"""`muster demo`: plays bundled snapshots against a real `muster serve` and shows where the pods end up.

Starts one service on a free loopback port, lets a stand-in for kube-scheduler drive it over HTTP, prints a
table for each scenario and judges its outcome. Needs no cluster, writes no file, and stops exactly the
process it has started. The snapshots are `demo/<scenario>.json`, fit for `muster serve --snapshot` as well.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

from app.cli.client import Client
from app.cli.scheduler import StandIn, View, view_of
from app.cli.serving import serving, stopped_by_sigterm
from app.cli.table import table
from app.codec.snapshot import JsonObject, read
from app.domain.errors import InputError
from app.domain.ids import GangKey
from app.domain.pod import Pod
from app.domain.resources import is_device

SNAPSHOTS: Final = Path(__file__).with_name("demo")
SETTLE_SECONDS: Final = 0.5
"""A scenario is over when it looks as it must and nothing has moved for this long …"""

LIMIT_SECONDS: Final = 8.0
"""… or after this, whatever it looks like."""


class Scenario(msgspec.Struct, frozen=True):
    """`outcome`: (bound, pending) of each gang, in any order. `names_blocker`: who waits names who runs."""

    name: str
    title: str
    expectation: str
    outcome: tuple[tuple[int, int], ...]
    names_blocker: bool = False


SCENARIOS: Final = (
    Scenario(
        name="three-of-six",
        title="three free GPUs, a gang of six pods, minMember 3",
        expectation="Three members are bound, and three wait for the next free GPU.",
        outcome=((3, 3),),
    ),
    Scenario(
        name="four-of-six",
        title="the same with minMember 4",
        expectation="Three seats are too few: nothing is bound, and nothing is taken from others.",
        outcome=((0, 6),),
    ),
    Scenario(
        name="race",
        title="two gangs of 2 x 8 GPUs race for two nodes",
        expectation="One gang runs whole; the other waits whole and names what blocks it.",
        outcome=((2, 0), (0, 2)),
        names_blocker=True,
    ),
    Scenario(
        name="launcher",
        title="two gangs with a launcher that needs no GPU, GPUs for one of them",
        expectation="One launcher is bound with its workers; the other waits, though cpu-a has room.",
        outcome=((3, 0), (0, 3)),
        names_blocker=True,
    ),
)


def demo(name: str | None = None) -> bool:
    """Play one scenario or all; whether each ended as it must. Raises `InputError` for an unknown name."""
    chosen = [scenario for scenario in SCENARIOS if name in (None, scenario.name)]
    if not chosen:
        known = ", ".join(scenario.name for scenario in SCENARIOS)
        raise InputError(f"there is no scenario {name!r}; choose one of {known}", field="--scenario")
    with stopped_by_sigterm():
        return _play_all(chosen[0], *chosen[1:])


def _file(scenario: Scenario) -> Path:
    return SNAPSHOTS / f"{scenario.name}.json"


def _play_all(first: Scenario, *others: Scenario) -> bool:
    _announce(first)
    with serving(_file(first)) as client:
        good = _play(client, first)
        for scenario in others:
            print()
            _announce(scenario)
            _replace(client, read(_file(scenario)))
            good &= _play(client, scenario)
    return good


def _replace(client: Client, items: list[JsonObject]) -> None:
    """Make the service's cluster the given one: pods go before the nodes they are on."""
    old = sorted(view_of(client.get("/snapshot")).items, key=lambda item: str(item["kind"]) == "Node")
    events = [("DELETED", item) for item in old] + [("ADDED", item) for item in items]
    client.post("/snapshot/events", [{"type": kind, "object": item} for kind, item in events])


# -- one scenario


def _announce(scenario: Scenario) -> None:
    print(f"{scenario.name}: {scenario.title}\n{scenario.expectation}", flush=True)


def _play(client: Client, scenario: Scenario) -> bool:
    scheduler = StandIn(client)
    view = scheduler.run(lambda now: not problem(scenario, now), settle=SETTLE_SECONDS, limit=LIMIT_SECONDS)
    print(_table(view, scheduler))
    wrong = problem(scenario, view)
    print(f"NOT as expected: {wrong}" if wrong else f"as expected: {_counts(view)}", flush=True)
    return not wrong


def _table(view: View, scheduler: StandIn) -> str:
    rows = (
        (pod.namespace, pod.name, _gpus(pod), _status(pod), pod.node, _reason(pod, view, scheduler))
        for pod in sorted(view.pods.values(), key=lambda pod: (pod.namespace, pod.name))
    )
    return table(("namespace", "name", "gpu", "status", "node", "reason"), rows)


def _gpus(pod: Pod) -> int:
    return sum(amount for name, amount in pod.template.requests if is_device(name))


def _status(pod: Pod) -> str:
    """As kubectl has it, but for `Bound`: nobody starts a container here."""
    if pod.phase == "Pending" and pod.node is not None:
        return "Bound"
    return "SchedulingGated" if pod.gates else pod.phase


def _reason(pod: Pod, view: View, scheduler: StandIn) -> str:
    """What Muster says in an event, or else what kube-scheduler was answered."""
    if pod.node is not None:
        return ""
    return view.events.get(pod.uid) or scheduler.refusals.get(pod.uid, "")


# -- the judgement


def tallies(view: View) -> dict[GangKey, tuple[int, int]]:
    """(bound, pending) members of each gang."""
    found = Counter((pod.gang, pod.node is not None) for pod in view.pods.values() if pod.gang is not None)
    return {gang: (found[gang, True], found[gang, False]) for gang, _ in found}


def problem(scenario: Scenario, view: View) -> str:
    """What is not as it must be; empty when everything is."""
    if sorted(tallies(view).values()) != sorted(scenario.outcome):
        return _counts(view) or "no gang is left"
    return _overcommitted(view) or _unexplained(view, blockers=scenario.names_blocker)


def _counts(view: View) -> str:
    return "; ".join(
        f"gang {gang} has {bound} bound, {pending} pending"
        for gang, (bound, pending) in tallies(view).items()
    )


def _overcommitted(view: View) -> str:
    taken = view.taken()
    for node in view.nodes:
        for name, amount in taken.get(node.name, {}).items():
            if amount > node.allocatable.get(name, 0):
                return f"node {node.name} has more {name} bound than it has"
    return ""


def _unexplained(view: View, *, blockers: bool) -> str:
    running = [str(pod.gang) for pod in view.pods.values() if pod.gang is not None and pod.node is not None]
    for pod in view.pods.values():
        if pod.gang is None or pod.node is not None:
            continue
        text = view.events.get(pod.uid, "")
        if not text:
            return f"pod {pod.key} has no event that tells why it waits"
        if blockers and not any(gang in text for gang in running):
            return f"the event of pod {pod.key} does not name the gang that blocks it"
    return ""
