# SPDX-License-Identifier: Apache-2.0
"""Drives the HTTP verbs of one Muster with the mix of `loadtests.material.bodies`, and nothing else.

Every user is a scheduler that waits for one answer before it asks again. Needs a service on the snapshot
that `loadtests.material.bodies` writes; `python -m loadtests.verbs` brings both together.

    locust -f loadtests/locustfile.py --headless -u 2 -t 20s --host http://127.0.0.1:8888 [--judge]

locust itself rounds to milliseconds, which is longer than most answers take: times are kept here as they are.
"""

from __future__ import annotations

import logging
import random
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
from locust import FastHttpUser, constant, events

from app.cli.client import Client
from loadtests.material.bodies import MEMBER, Call, calls, nodes_args
from loadtests.material.objects import node_name
from loadtests.reporting.limits import exceeded, figures
from loadtests.reporting.thresholds import load

HEADERS = {"Content-Type": "application/json"}
SEED = 4


class Load:
    """The calls of this run and what they took, in milliseconds by name."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.weights: list[int] = []
        self.taken: dict[str, list[float]] = defaultdict(list)
        self.choice = random.Random(SEED)

    def prepare(self, host: str, nodes: int) -> None:
        """Learn where the planned member's seat is, so that it is always among the names offered."""
        address, _, port = host.rpartition("//")[2].rpartition(":")
        offered = [node_name(index) for index in range(nodes)]
        answer = Client(address, int(port)).post("/filter", orjson.loads(nodes_args(MEMBER, offered)))
        if len(answer["NodeNames"]) != 1:
            sys.exit(f"the planned member has no seat: {answer['Error'] or 'is this the right snapshot?'}")
        self.calls = calls(nodes, answer["NodeNames"][0])
        self.weights = [call.weight for call in self.calls]

    def next(self) -> Call:
        """Any call, by weight."""
        return self.choice.choices(self.calls, self.weights)[0]


load_of_run = Load()


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _arguments(parser: Any) -> None:
    parser.add_argument("--nodes", type=int, default=15_000, help="nodes of the snapshot that is served")
    parser.add_argument("--figures", default="", help="write the figures to this file, as JSON")
    parser.add_argument(
        "--judge", action="store_true", help="exit 1 if a limit of thresholds.yaml is exceeded"
    )


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _prepare(environment: Any, **rest: object) -> None:
    options = environment.parsed_options
    load_of_run.prepare(environment.host, options.nodes)
    if options.figures:  # whoever takes those has no use for locust's own tables
        logging.getLogger("locust.stats_logger").disabled = True


@events.request.add_listener  # type: ignore[untyped-decorator]
def _keep(name: str, response_time: float, exception: Exception | None, **rest: object) -> None:
    if exception is None:
        load_of_run.taken[name].append(response_time)


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def _report(environment: Any, **rest: object) -> None:
    options, failed = environment.parsed_options, environment.stats.total.num_failures
    if options.figures:
        Path(options.figures).write_bytes(orjson.dumps(figures(load_of_run.taken)))
    slow = exceeded(load_of_run.taken, load().verbs) if options.judge else []
    print(*slow, sep="\n", file=sys.stderr, end="\n" if slow else "")
    environment.process_exit_code = 1 if failed or slow or not load_of_run.taken else 0


class Scheduler(FastHttpUser):  # type: ignore[misc]
    """Asks, waits for the answer, asks again."""

    wait_time = constant(0)

    def ask(self) -> None:
        """One call. An answer with an `Error` is a failure, whatever its status."""
        call = load_of_run.next()
        with self.client.post(
            f"/{call.verb}", data=call.body, headers=HEADERS, name=call.name, catch_response=True
        ) as answer:
            if answer.status_code != 200:
                answer.failure(f"status {answer.status_code}")
            elif call.verb == "filter" and not answer.content.endswith(b'"Error":""}'):
                answer.failure(f"Error: {answer.content[-200:]!r}")

    tasks = [ask]  # noqa: RUF012 - locust's own way to say what a user does
