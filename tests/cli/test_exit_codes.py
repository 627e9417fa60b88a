# SPDX-License-Identifier: Apache-2.0
"""Commands as they are run: bad input ends with 2 and one line, SIGTERM with 0 and every call answered."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from app import __version__
from app.cli.client import Client
from app.cli.serving import HOST, POLL_SECONDS
from tests.builders import bind_body, filter_body, make_group, make_node, make_pod, snapshot

COMMAND = [sys.executable, "-P", "-m", "app"]
LIST = snapshot(make_node("n1").gpus(1))
SECONDS = 60


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Case(NamedTuple):
    """What is run; `FILE` stands for the snapshot, `PORT` for a port that is taken."""

    arguments: str
    said: str
    file: bytes | None = None
    env: dict[str, str] = {}  # noqa: RUF012  never changed


SERVE = "serve --port 0 --snapshot FILE"
CASES = {
    "no such file": Case("serve --snapshot FILE", "No such file"),
    "a folder": Case("serve --snapshot /", "cannot read /: Is a directory"),
    "gzip broken inside": Case(SERVE, "cannot read", gzip.compress(LIST)[:12] + b"broken" * 20),
    "an item that is no object": Case(SERVE, "items[0]", b'{"items":[7]}'),
    "a port that is none": Case("serve --port 65536 --snapshot FILE", "setting port: ", LIST),
    "a settings file that is not there": Case(
        f"{SERVE} --config /nowhere", "read settings file /nowhere", LIST
    ),
    "a kubeconfig that is not there": Case("serve --kubeconfig /nowhere --port 0 --ops-port 0", "/nowhere"),
    "gzip cut off": Case(SERVE, "cannot read", gzip.compress(LIST)[:-20]),
    "JSON cut off": Case(SERVE, "is not JSON", LIST[:-20]),
    "not a List": Case(SERVE, "is not a v1 List", make_node("n1").json()),
    "a quantity that is none": Case(
        SERVE,
        "items[1]: node n1: status.allocatable[nvidia.com/gpu]",
        snapshot(make_pod("a"), make_node("n1").amount("nvidia.com/gpu", "1_000")),
    ),
    "a port that is taken": Case("serve --port PORT --snapshot FILE", "cannot listen on 127.0.0.1:", LIST),
    "no cluster": Case("serve --port 0 --ops-port 0", "", env={"KUBECONFIG": "/nowhere", "HOME": "/nowhere"}),
    "a kubeconfig that is none": Case("serve --kubeconfig FILE --port 0 --ops-port 0", "", b"a: [\n- b: }\n"),
    "a variable": Case(SERVE, "setting hold_seconds: ", LIST, {"MUSTER_HOLD_SECONDS": "soon"}),
}


FORKED = """
import json, os, sys
import app.main, app.kube.client, app.settings
from app.cli.main import run
for case in json.load(sys.stdin):
    child = os.fork()
    if not child:
        for number, path in enumerate(case["output"], 1):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        os.environ.update(case["env"])
        sys.argv = ["muster", *case["words"]]
        run()
        os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports what takes a second once: every case is a process of its own, forked from there."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Every case, as it ended."""
    folder = tmp_path_factory.mktemp("cases")
    with socket.create_server((HOST, 0)) as taken:
        jobs = [job(folder / str(n), case, taken.getsockname()[1]) for n, case in enumerate(CASES.values())]
        command = [sys.executable, "-P", "-c", FORKED]
        forked = subprocess.run(
            command, input=json.dumps(jobs), capture_output=True, text=True, env=clean(), timeout=SECONDS,
            check=True,
        )  # fmt: skip
    codes = map(int, forked.stdout.split())
    outputs = ([Path(path).read_text() for path in one["output"]] for one in jobs)
    return {name: Ended(code, out, err) for name, code, (out, err) in zip(CASES, codes, outputs, strict=True)}


def job(folder: Path, case: Case, port: int) -> dict[str, Any]:
    folder.mkdir()
    file = folder / "file"
    if case.file is not None:
        file.write_bytes(case.file)
    words = case.arguments.replace("FILE", str(file)).replace("PORT", str(port)).split()
    return {"words": words, "env": case.env, "output": [str(folder / "out"), str(folder / "err")]}


def clean() -> dict[str, str]:
    """The environment without settings of anybody's."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("MUSTER_", "KUBE"))}


def start(words: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [*COMMAND, *words]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, env=clean()
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    try:
        out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Ended(process.returncode, out, err)


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_used_ends_with_2_and_one_line(ended: dict[str, Ended], name: str) -> None:
    code, out, err = ended[name]
    assert (code, out) == (2, ""), err
    (line,) = err.splitlines()
    assert line.startswith("muster: ")
    assert CASES[name].said in line
    assert "Traceback" not in err


def test_version_is_printed() -> None:
    assert finish(start(["version"])) == Ended(0, f"muster {__version__}\n", "")


# -- a service that is stopped


class Serving(NamedTuple):
    process: subprocess.Popen[str]
    client: Client
    port: int


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A gang of two that has its seats."""
    file = tmp_path / "cluster.json.gz"
    pods = [make_pod(name).gpus(1).gang("g").gated() for name in "ab"]
    file.write_bytes(gzip.compress(snapshot(make_node("n1").gpus(2), make_group("g", 2), *pods)))
    with socket.create_server((HOST, 0)) as probe:
        port = int(probe.getsockname()[1])
    process = start(["serve", "--snapshot", str(file), "--port", str(port)])
    client = Client(HOST, port)
    deadline = time.monotonic() + SECONDS
    while client.status("/readyz") != 200:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(POLL_SECONDS)
    yield Serving(process, client, port)
    if process.poll() is None:
        process.kill()
    process.communicate()


def post(port: int, path: str, body: bytes) -> bytes:
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    try:
        connection.request("POST", path, body)
        response = connection.getresponse()
        assert response.status == 200
        return response.read()
    finally:
        connection.close()


def test_sigterm_answers_the_calls_that_are_held_and_ends_with_0(serving: Serving) -> None:
    pod = make_pod("a").gpus(1).gang("g")
    assert orjson.loads(post(serving.port, "/filter", filter_body(pod, ["n1"])))["NodeNames"] == ["n1"]
    answers: list[bytes] = []
    body = bind_body(pod, "n1")
    caller = threading.Thread(target=lambda: answers.append(post(serving.port, "/bind", body)))
    caller.start()
    deadline = time.monotonic() + SECONDS
    while b"muster_held_binds 1.0" not in get(serving.port, "/metrics"):
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)

    began = time.monotonic()
    serving.process.send_signal(signal.SIGTERM)
    ended = finish(serving.process)
    caller.join(SECONDS)
    assert time.monotonic() - began < 5
    assert ended.code == 0, ended.err
    assert [orjson.loads(answer)["Error"] for answer in answers] == [
        "Muster is shutting down; kube-scheduler will try again"
    ]
    assert "Traceback" not in ended.err and "rror" not in ended.err


def test_sigint_ends_it_as_well(serving: Serving) -> None:
    serving.process.send_signal(signal.SIGINT)
    assert finish(serving.process).code == 0


def get(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection(HOST, port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_as_a_plugin_it_goes_by_the_name_people_typed() -> None:
    for name, called in (("kubectl-muster", "kubectl muster"), ("muster", "muster")):
        script = (
            f"import sys; sys.argv = ['/bin/{name}', 'top', '--help']; from app.cli.main import run; run()"
        )
        done = subprocess.run(
            [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=False
        )
        assert done.stdout.startswith(f"Usage: {called} top [OPTIONS]\n")
