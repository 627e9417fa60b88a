# SPDX-License-Identifier: Apache-2.0
"""Filter and prioritize against a plain reading of the same objects: name by name, in Python, over JSON.

Clusters, pods and offers are drawn; the offers are written as any encoder may write them. Only the seats that
gangs hold are taken from the service: giving them is the planner's, and judged elsewhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
import pytest

from app.codec.offer import FEW
from app.domain.reasons import Reason
from tests.builders import GPU, Json, PodBuilder, make_group, make_node, make_pod
from tests.extender.conftest import Make
from tests.extender.world import World

MIG = "nvidia.com/mig-1g.10gb"
AMOUNTS = ("cpu", "pods", GPU, MIG)
ODD = [
    "a", "aa", "ab", "ba", "a.a", "A", "", ",", '","', 'a","aa', " ", "a ", " a", "[", "]", "]}", "{a}",
    'a"', "\\", "\\u0061", "knöten", "<&>", "\u2028", "a" * 8, "a" * 9, "a" * 253, ',"NodeNames":[',
]  # fmt: skip
PLAIN = [name for name in ODD if not set(name) & set('"\\[]{}')]
"""Those that a list may hold and still be searched as bytes."""

LONG = [f"n-{number}" for number in range(FEW + 40)]
SENTENCES = {reason: reason.sentence for reason in (Reason.UNKNOWN_NODE, Reason.TOO_SMALL, Reason.RESERVED)}


class Plain(NamedTuple):
    """What each node of a world has, by resource."""

    total: dict[str, dict[str, int]]
    used: dict[str, dict[str, int]]
    reserved: dict[str, dict[str, int]]
    nominated: list[tuple[str, Json]]
    gone: frozenset[str]
    """Names of nodes that are no more: known, and of no amounts."""

    @classmethod
    def of(cls, world: World, *, gone: frozenset[str] = frozenset()) -> Plain:
        pods = world.objects("Pod")
        total = {n["metadata"]["name"]: amounts(n["status"]["allocatable"]) for n in world.objects("Node")}
        used: dict[str, dict[str, int]] = {}
        for pod in pods:
            node, phase = pod["spec"].get("nodeName"), pod.get("status", {}).get("phase")
            if node is not None and phase not in ("Succeeded", "Failed"):
                add(used.setdefault(node, {}), asked(pod))
        reserved: dict[str, dict[str, int]] = {}
        for booking in world.service.inventory.book:
            add(reserved.setdefault(booking.node, {}), dict(booking.template.requests))
        seated = {booking.uid for booking in world.service.inventory.book}
        nominated = [
            (pod["status"]["nominatedNodeName"], pod)
            for pod in pods
            if pod.get("status", {}).get("nominatedNodeName") and pod["metadata"]["uid"] not in seated
        ]
        return cls(total, used, reserved, nominated, gone)

    def left(self, node: str, name: str, *, used: bool = True, reserved: bool = True) -> int:
        left = self.total.get(node, {}).get(name, 0)
        left -= self.used.get(node, {}).get(name, 0) if used else 0
        return left - (self.reserved.get(node, {}).get(name, 0) if reserved else 0)

    def room(self, pod: Json, node: str, *, used: bool = True, reserved: bool = True) -> bool:
        return all(self.left(node, n, used=used, reserved=reserved) >= a for n, a in asked(pod).items())

    def free(self, pod: Json, node: str) -> bool:
        """Room beside everything, nominations of others included."""
        kept: dict[str, int] = {}
        for where, other in self.nominated:
            above = other["spec"].get("priority", 0) >= pod["spec"].get("priority", 0)
            if where == node and above and other["metadata"]["uid"] != pod["metadata"]["uid"]:
                add(kept, asked(other))
        return all(self.left(node, n) - kept.get(n, 0) >= a for n, a in asked(pod).items())

    def known(self, node: str) -> bool:
        named = (self.total, self.used, {where for where, _ in self.nominated}, self.gone)
        return any(node in some for some in named)

    def why(self, pod: Json, node: str) -> Reason | None:
        """Why a node does not take an ordinary pod; None where it does."""
        devices = any("/" in name for name in asked(pod))
        if not devices:
            blocked = node in self.reserved and not self.free(pod, node)
            return Reason.RESERVED if blocked else None
        if not self.known(node):
            return Reason.UNKNOWN_NODE
        if self.free(pod, node):
            return None
        if not self.room(pod, node, used=False, reserved=False):
            return Reason.TOO_SMALL
        if self.room(pod, node, reserved=False) or not self.room(pod, node, used=False):
            return Reason.RESERVED
        return Reason.FULL

    def score(self, pod: Json, node: str) -> int:
        devices = [name for name in asked(pod) if "/" in name]
        if not self.known(node):
            return 0
        if not devices:
            return 0 if any("/" in name and n for name, n in self.total.get(node, {}).items()) else 10
        total = sum(self.total.get(node, {}).get(name, 0) for name in devices)
        left = sum(self.left(node, name) for name in devices)
        if total >= 8 and left >= total:
            return 1
        return 2 + round(7 * (1 - max(left, 0) / max(total, 1)))


def amounts(raw: dict[str, str]) -> dict[str, int]:
    scale = {"cpu": 1000}
    return {name: int(raw[name]) * scale.get(name, 1) for name in AMOUNTS if name in raw}


def asked(pod: Json) -> dict[str, int]:
    requests = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return {name: n for name, n in (amounts(requests) | {"pods": 1}).items() if n}


def add(into: dict[str, int], more: dict[str, int]) -> None:
    for name, amount in more.items():
        into[name] = into.get(name, 0) + amount


# -- what is drawn


def cluster(rng: random.Random, make: Make) -> tuple[World, list[str]]:
    """A few kinds of nodes, pods on some, seats and nominations on others."""
    odd = rng.choice([ODD, PLAIN])
    long = LONG[: rng.choice([0, 5, FEW + 20, FEW + 20])]
    names = sorted({*rng.sample(odd, rng.randint(2, len(odd) - 2)), *long} - {""})
    nodes = [
        make_node(n).cpu(str(rng.randint(1, 8))).pods(rng.randint(1, 6)).gpus(rng.choice([0, 4, 8]))
        .amount(MIG, str(rng.choice([0, 7])))
        for n in names
    ]  # fmt: skip
    running = [shape(rng, f"r{i}").on(rng.choice([*names, "gone"])) for i in range(len(names) // 2)]
    waiting = [
        shape(rng, f"w{i}").priority(rng.choice([0, 5])).set("status.nominatedNodeName", rng.choice(names))
        for i in range(rng.choice([0, 0, 3]))
    ]
    gang = [make_pod(f"m{i}").gpus(1).cpu("1").gang("g").gated() for i in range(rng.choice([0, 1, 6]))]
    large = [make_pod(f"x{i}").gpus(9).gang("x").gated() for i in range(2)]
    groups = [make_group("g", 1), make_group("x", 2)]
    return make(*nodes, *running, *waiting, *groups, *gang, *large), names


def shape(rng: random.Random, name: str) -> PodBuilder:
    pod = make_pod(name)
    if rng.random() < 0.6:
        pod = pod.cpu(str(rng.randint(1, 8)))
    for device, most in ((GPU, 8), (MIG, 7)):
        if rng.random() < 0.4:
            pod = pod.gpus(rng.randint(1, most), device)
    return pod


def offered(rng: random.Random, names: list[str]) -> list[str]:
    odd = rng.choice([[], [], ODD, PLAIN])
    pool = list(dict.fromkeys([*names, *rng.sample(odd, min(5, len(odd)))]))
    offer = rng.sample(pool, rng.choice([0, 1, len(pool) // 2, max(0, len(pool) - 2), len(pool)]))
    if offer and rng.random() < 0.2:
        offer += rng.choices(offer, k=2)
    if rng.random() < 0.2:
        offer += [f"unknown-{number}" for number in range(rng.choice([1, FEW - len(offer) % FEW, FEW + 1]))]
    return offer


Encode = Callable[[Json], bytes]


def go(body: Json) -> bytes:
    text = orjson.dumps(body)
    for character in (b"<", b">", b"&"):
        text = text.replace(character, b"\\u00%02x" % ord(character))
    return text


ENCODERS: list[Encode] = [
    go,
    orjson.dumps,
    lambda body: orjson.dumps(body) + b"\n",
    lambda body: json.dumps(body).encode(),
    lambda body: json.dumps(body, indent=1, ensure_ascii=False).encode(),
    lambda body: orjson.dumps({key.lower(): part for key, part in body.items()}),
    lambda body: orjson.dumps({key.upper(): part for key, part in body.items()}),
    lambda body: orjson.dumps(dict(reversed(body.items()))),
]


def body(rng: random.Random, world: World, pod: Json, offer: list[str], *, full: bool) -> bytes:
    nodes = {node["metadata"]["name"]: node for node in world.objects("Node")}
    items = [nodes.get(name) or make_node(name).build() for name in offer]
    args = {
        "Pod": pod,
        "Nodes": {"metadata": {}, "items": items} if full else None,
        "NodeNames": None if full else offer,
    }
    return rng.choice(ENCODERS)(args)


# -- what is compared


def names_of(answer: Json, *, full: bool) -> list[str]:
    if full:
        assert answer["NodeNames"] is None
        return [node["metadata"]["name"] for node in answer["Nodes"]["items"]]
    assert answer["Nodes"] is None
    names: list[str] = answer["NodeNames"]
    return names


def ask(world: World, verb: str, raw: bytes) -> Any:
    return orjson.loads(world.run(getattr(world.service, verb)(raw)))


@pytest.mark.parametrize("seed", range(50))
def test_answers_are_those_of_a_plain_reading(make: Make, seed: int) -> None:
    rng = random.Random(seed)
    world, names = cluster(rng, make)
    ordinary = [shape(rng, f"p{i}").priority(rng.choice([0, 3, 9])) for i in range(4)]
    for seen in ordinary[:2]:
        world.put(seen)
    gone: frozenset[str] = frozenset()
    for turn in range(16):
        if turn == 8:
            world.put(make_node("late").gpus(8).cpu("8"))
            world.put(make_pod("more").gpus(1).on(names[0]))
            world.remove(make_node(names[-1]))
            gone |= {names[-1]}
            names.append("late")
        pod = rng.choice(ordinary).build()
        offer, full = offered(rng, names), rng.random() < 0.3
        plain = Plain.of(world, gone=gone)
        answer = ask(world, "filter", body(rng, world, pod, offer, full=full))
        assert not answer["Error"]
        left = names_of(answer, full=full)
        distinct = list(dict.fromkeys(offer))
        why = {name: plain.why(pod, name) for name in distinct}
        assert list(dict.fromkeys(left)) == [name for name in distinct if why[name] is None]
        assert answer["FailedNodes"] == {
            name: Reason.FULL.sentence for name in distinct if why[name] is Reason.FULL
        }
        assert answer["FailedAndUnresolvableNodes"] == {
            name: SENTENCES[reason] for name in distinct if (reason := why[name]) in SENTENCES and reason
        }
        for after in (left, offer):
            scores = ask(world, "prioritize", body(rng, world, pod, after, full=full))
            told = [(entry["Host"], entry["Score"]) for entry in scores]
            wanted = {name: n for name in after if (n := plain.score(pod, name))}
            assert len(told) == len(wanted)
            assert dict(told) == wanted


@pytest.mark.parametrize("seed", range(30))
def test_members_are_sent_to_what_was_offered_or_refused_in_one_sentence(make: Make, seed: int) -> None:
    rng = random.Random(seed)
    world, names = cluster(rng, make)
    for _ in range(10):
        pod = rng.choice([p for p in world.objects("Pod") if p["metadata"]["name"][0] in "mx"])
        offer, full = offered(rng, names), rng.random() < 0.3
        booking = world.service.inventory.book.get(pod["metadata"]["uid"])
        answer = ask(world, "filter", body(rng, world, pod, offer, full=full))
        left, told = names_of(answer, full=full), answer["FailedAndUnresolvableNodes"]
        assert not answer["Error"]
        assert not answer["FailedNodes"]
        assert set(left) <= set(offer)
        if booking is not None and booking.node in offer:
            assert left == [booking.node]
        seat = world.service.inventory.book.get(pod["metadata"]["uid"])
        if left:
            assert seat is not None
            assert left == [seat.node]
            continue
        distinct = list(dict.fromkeys(offer))
        assert list(told) == (distinct if len(distinct) <= FEW else distinct[:1])
        assert len(set(told.values())) <= 1
