# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler would send: bodies of the verbs for pods of every kind, and the cluster they are about.

Plain functions of their arguments. The cluster has one gang with seats, one that lacks its last member and
waits, and pods without a gang; `python -m loadtests.material.bodies --nodes 15000 > snapshot.json` writes it
for `muster serve --snapshot`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec
import orjson

from loadtests.material.objects import Json, gang, node, node_name, pod

SIZES = (1, 500, 5_000, 15_000)
"""Numbers of names offered in a body."""
SEATED = gang("seated", 8, gpus=8)
WAITING = gang("waiting", 9, gpus=8)[:-1]
MEMBER = SEATED[1]
MIX = (
    ("filter", "planned", 4),
    ("filter", "waiting", 2),
    ("filter", "gpu", 2),
    ("prioritize", "gpu", 2),
    ("filter", "cpu", 1),
    ("prioritize", "cpu", 1),
)
"""(verb, kind of pod, weight): half of the calls are about members of gangs."""


class Call(msgspec.Struct, frozen=True):
    """One call, ready to be sent `weight` times as often as others."""

    name: str
    verb: str
    body: bytes
    weight: int


def nodes_args(obj: Json, names: Sequence[str]) -> bytes:
    """ExtenderArgs of filter and prioritize, in name mode."""
    return orjson.dumps({"Pod": obj, "Nodes": None, "NodeNames": names})


def snapshot(nodes: int) -> Json:
    """The cluster, as `kubectl get nodes,pods,podgroups -A -o json` would print it."""
    items = [*(node(index) for index in range(nodes)), *SEATED, *WAITING]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def calls(nodes: int, seat: str) -> list[Call]:
    """The mix of calls, for every number of names the cluster has; `seat` is the node of `MEMBER`'s seat
    and is always among those offered."""
    pods = {
        "planned": MEMBER, "waiting": WAITING[1],
        "gpu": pod("single", gpus=1), "cpu": pod("cpu", gpus=0),
    }  # fmt: skip
    others = [name for index in range(nodes) if (name := node_name(index)) != seat]
    return [
        Call(f"{verb} {kind} {size}", verb, nodes_args(pods[kind], [seat, *others[: size - 1]]), weight)
        for size in SIZES
        if size <= nodes
        for verb, kind, weight in MIX
    ]


def main() -> None:
    """Write the snapshot to stdout."""
    parser = argparse.ArgumentParser(description="The cluster that the bodies of the verbs are about.")
    parser.add_argument("--nodes", type=int, default=max(SIZES))
    sys.stdout.buffer.write(orjson.dumps(snapshot(parser.parse_args().nodes)))


if __name__ == "__main__":
    main()
