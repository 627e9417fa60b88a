# SPDX-License-Identifier: Apache-2.0
"""The verbs as kube-scheduler calls them: over HTTP, one keep-alive connection, against an echo.

Starts `muster serve --snapshot` with N nodes and gangs in every state, and `material.echo` on the same
server; calls both in turn, with the offer in another order at every call, as kube-scheduler's is. Prints
per verb wall time (p50, p99), the p50 as a ratio to both echoes of the same body (`ECHO` sends all of it
back, `SHORT` a short answer), and the server's CPU time per call. Judges nothing.

    python -m loadtests.verbs_http [--nodes 1000 5000 15000] [--calls 300] [--runs 1] [--out DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from loadtests.material.objects import NAMESPACE, Json, group, node, node_name, pod
from loadtests.record import Record, append
from loadtests.shared.flags import add_nodes, add_out, add_runs, positive
from loadtests.shared.processes import module
from loadtests.shared.timing import timing
from tests.cluster import Process, free_port

HOST = "127.0.0.1"
START_SECONDS = 60.0
MEMBERS = 8
BOUND = 500
"""Members that can be bound in one run."""

ORDERS = 16
"""Orders in which one list of names is offered, one after the other."""


Request = Callable[[int], tuple[str, bytes]]
"""Path and body of a call, by its number."""


class Connection:
    """One keep-alive connection to a server of ours, and what that server has spent."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self._socket = socket.create_connection((HOST, port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def post(self, path: str, body: bytes) -> bytes:
        """The reply's body."""
        head = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        got = self._socket.recv(1 << 20)
        while b"\r\n\r\n" not in got:
            got += self._socket.recv(1 << 20)
        head_bytes, _, rest = got.partition(b"\r\n\r\n")
        length = int(head_bytes.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        parts, have = [rest], len(rest)
        while have < length:
            parts.append(self._socket.recv(1 << 20))
            have += len(parts[-1])
        return b"".join(parts)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def cpu_seconds(self) -> float:
        """What the server's main thread has run so far; it has no other that works."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9


class Figures(NamedTuple):
    """Wall seconds of each call, and CPU seconds of the server per call."""

    wall: list[float]
    cpu: float

    @property
    def p50(self) -> float:
        """Median wall seconds."""
        return float(np.median(self.wall))


def cluster(nodes: int) -> Json:
    """N nodes of 8 GPUs; gang `seated` gets its seats, `late` lacks one member; 500 more bind one by one."""
    gangs = [group("seated", MEMBERS), group("late", MEMBERS + 1)]
    members = [
        pod(f"{gang}-{i}", gpus=MEMBERS, gang=gang) for gang in ("seated", "late") for i in range(MEMBERS)
    ]
    bound = [group(f"bound-{i}", 1) for i in range(BOUND // MEMBERS + 1)] + [
        _bound_pod(i) for i in range(BOUND)
    ]
    single = pod("single", gpus=1)
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [*(node(i) for i in range(nodes)), *gangs, *members, *bound, single],
    }


def _bound_pod(index: int) -> Json:
    """Members that may be bound one by one: their gangs' minimum is 1."""
    return pod(f"bound-{index}", gpus=1, gang=f"bound-{index // MEMBERS}")


@contextlib.contextmanager
def servers(nodes: int) -> Iterator[tuple[Connection, Connection]]:
    """Muster and the echo, each connected."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "cluster.json").write_bytes(orjson.dumps(cluster(nodes)))

        def connected(module_name: str, *flags: str) -> Connection:
            port = free_port()
            words = [*flags, "--port", str(port)]
            process = stack.enter_context(module(module_name, *words, folder=folder))
            process.wait_ready(lambda: _listens(port), seconds=START_SECONDS)
            return stack.enter_context(contextlib.closing(Connection(process, port)))

        muster = connected("app", "serve", "--snapshot", str(folder / "cluster.json"), "--host", HOST)
        yield muster, connected("loadtests.material.echo")


def _listens(port: int) -> bool:
    with socket.create_connection((HOST, port)):
        return True


def in_turn(calls: int, *asked: tuple[Connection, Request]) -> list[Figures]:
    """Call each of `asked` once, `calls` times over: what slows the machine down slows all of them."""
    wall: list[list[float]] = [[] for _ in asked]
    cpu = [0.0 for _ in asked]
    for number in range(calls):
        for index, (connection, request) in enumerate(asked):
            path, body = request(number)
            before, began = connection.cpu_seconds(), time.perf_counter()
            connection.post(path, body)
            wall[index].append(time.perf_counter() - began)
            cpu[index] += connection.cpu_seconds() - before
    return [Figures(times, spent / calls) for times, spent in zip(wall, cpu, strict=True)]


class Bodies:
    """Bodies of filter and prioritize about one pod, its offer in another order at every call."""

    def __init__(self, asked: Json, names: list[str]) -> None:
        shuffled = random.Random(1)
        self._bodies = [
            orjson.dumps({"Pod": asked, "Nodes": None, "NodeNames": shuffled.sample(names, len(names))})
            for _ in range(ORDERS)
        ]

    def to(self, path: str) -> Request:
        """Requests by number."""
        return lambda number: (path, self._bodies[number % ORDERS])


class Table:
    """kubectl-like. `figures` keeps what was shown under a key."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}
        print(f"{'CALL':<44}{'P50':>10}{'P99':>10}{'÷ECHO':>8}{'÷SHORT':>8}{'CPU/CALL':>10}")

    def row(self, what: str, figures: Figures, *beside: Figures, key: str = "") -> None:
        """One verb, and its ratios to what ran beside it."""
        taken = timing(key, [1e3 * seconds for seconds in figures.wall])
        if key:
            self.figures |= {**taken, f"{key}_cpu_ms": figures.cpu * 1e3}
        times = "".join(f"{value:>7.3f} ms" for value in taken.values())
        ratios = "".join(f"{figures.p50 / other.p50:>8.2f}" for other in beside) or f"{'':>16}"
        print(f"{what:<44}{times}{ratios}{figures.cpu * 1e3:>7.3f} ms", flush=True)


def measure(table: Table, nodes: int, calls: int) -> None:
    """All verbs at one size."""
    print(f"verbs_http: {nodes:,} nodes", file=sys.stderr, flush=True)
    names = [node_name(i) for i in range(nodes)]
    with servers(nodes) as (muster, echo):
        member = pod("seated-0", gpus=MEMBERS, gang="seated")
        seat: list[str] = orjson.loads(muster.post(*Bodies(member, names).to("/filter")(0)))["NodeNames"]
        late, idle = pod("late-0", gpus=MEMBERS, gang="late"), pod("cpu", gpus=0)
        for key, what, asked, offered in (
            ("filter_planned", f"filter, planned member, {nodes:,} names", member, names),
            ("filter_seat_alone", "filter, planned member, its seat alone", member, seat),
            ("filter_refusal", f"filter, waiting refusal, {nodes:,} names", late, names),
            ("filter_cpu_pod", f"filter, CPU pod, {nodes:,} names", idle, names),
        ):
            bodies = Bodies(asked, offered)
            verb, whole, short = in_turn(
                calls, (muster, bodies.to("/filter")), (echo, bodies.to("/echo")), (echo, bodies.to("/short"))
            )
            table.row(what, verb, whole, short, key=key)
            table.row("  echo of it", whole, key=f"{key}_echo")
            table.row("  short answer to it", short, key=f"{key}_short")
        _ordinary(table, muster, Bodies(pod("single", gpus=1), names), nodes, calls)
        _bound(table, muster, names, min(calls, BOUND))


def _ordinary(table: Table, muster: Connection, bodies: Bodies, nodes: int, calls: int) -> None:
    """prioritize follows filter, about what filter has left."""
    filter_, left = bodies.to("/filter"), [b""] * ORDERS
    for number in range(ORDERS):
        answer = orjson.loads(muster.post(*filter_(number)))
        left[number] = orjson.dumps({**orjson.loads(filter_(number)[1]), "NodeNames": answer["NodeNames"]})
    filters, scores = in_turn(
        calls, (muster, filter_), (muster, lambda number: ("/prioritize", left[number % ORDERS]))
    )
    table.row(f"filter, ordinary GPU pod, {nodes:,} names", filters)
    table.row(f"prioritize, ordinary GPU pod, {nodes:,} names", scores)
    table.row("  both", _sum(filters, scores), key="ordinary")


def _sum(one: Figures, other: Figures) -> Figures:
    return Figures([a + b for a, b in zip(one.wall, other.wall, strict=True)], one.cpu + other.cpu)


def _bound(table: Table, muster: Connection, names: list[str], calls: int) -> None:
    """What a member costs that goes where it was nominated: one filter call with one name, one bind call."""
    members = [_bound_pod(i) for i in range(calls)]
    seats = [orjson.loads(muster.post(*Bodies(m, names).to("/filter")(0)))["NodeNames"] for m in members]

    def bind(number: int) -> tuple[str, bytes]:
        uid = members[number]["metadata"]["uid"]
        args = {"PodName": uid, "PodNamespace": NAMESPACE, "PodUID": uid, "Node": seats[number][0]}
        return "/bind", orjson.dumps(args)

    def filter_(number: int) -> tuple[str, bytes]:
        return Bodies(members[number], seats[number]).to("/filter")(0)

    filters, binds = in_turn(calls, (muster, filter_), (muster, bind))
    table.row("filter, member on its seat, 1 name", filters)
    table.row("bind, member on its seat", binds)
    table.row("  both", _sum(filters, binds), key="member")


def main() -> None:
    """Run all sizes."""
    parser = argparse.ArgumentParser(description="The verbs over HTTP, against an echo on the same server.")
    add_nodes(parser)
    parser.add_argument("--calls", type=positive, default=300, help="of each verb [300]")
    add_runs(parser)
    add_out(parser)
    args = parser.parse_args()
    for run in range(1, args.runs + 1):
        for nodes in args.nodes:
            table = Table()
            measure(table, nodes, args.calls)
            if args.out:
                found = Record(
                    scenario="verbs-http", contender="muster", nodes=nodes, run=run, figures=table.figures
                )
                append(args.out, found)


if __name__ == "__main__":
    main()
