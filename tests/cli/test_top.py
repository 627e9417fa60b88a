# SPDX-License-Identifier: Apache-2.0
"""`muster top`: the plain tables, JSON, the terminal, and what is said when nobody answers."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import orjson
import pytest
from click.testing import CliRunner, Result

from app.cli import top
from app.cli.age import age
from app.cli.client import Client, NoAnswerError
from app.cli.live import LEAST_REASON, fitting
from app.cli.main import app
from app.domain.errors import InputError
from app.domain.gang import GangState
from app.domain.overview import DeviceLine, GangLine, Overview

NOW = 1_800_000_000
WAITS = GangLine(
    namespace="ml", name="train", kind="podgroup", api="scheduling.x-k8s.io", state=GangState.WAITING, min=8,
    ready=8, bound=0, held=0, seats=0, priority=10, created=NOW - 4000, reason="Busy",
    text="gang ml/train has seats for 3 of 8 members: [bold]busy[/bold]", since=NOW - 130,
)  # fmt: skip
RUNS = GangLine(
    namespace="ml", name="eval", kind="pod", api="pod", state=GangState.RUNNING, min=1, ready=0, bound=1,
    held=0, seats=0, priority=0, created=0,
)  # fmt: skip
GPUS = DeviceLine(
    name="nvidia.com/gpu", nodes=3, capacity=24, allocatable=23, used=10, reserved=4, free=5, closed=4,
    largest_pod=3, whole_nodes=0, fits={1: 5, 2: 2, 4: 0, 8: 0},
)  # fmt: skip
SEEN = Overview(
    at=NOW, version="1.2.3", replica="muster-0", active=True, problems=[], nodes=4, closed_nodes=1, pods=20,
    states={GangState.RUNNING: 1, GangState.WAITING: 3}, devices=[GPUS], gangs=[WAITS, RUNS], left_out=2,
)  # fmt: skip
SECONDS = 60.0


class Server:
    """Answers `/overview`, also below `/base`, with `seen`, until told to be silent."""

    def __init__(self) -> None:
        self.body = msgspec.json.encode(SEEN)
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                found = self.path in ("/overview", "/base/overview")
                body = outer.body if found else b"nothing here"
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        """Nobody listens any more."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def run(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, ["top", *words], env={"MUSTER_SERVER": "", **(env or {})})


# -- plain


def test_piped_it_is_a_line_and_two_tables(server: Server) -> None:
    result = run("--server", server.url)
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "muster 1.2.3 on muster-0 is active; 4 nodes (1 closed), 20 pods; gangs: 3 waiting, 1 running; "
            "the first 2 are shown",
            "",
            "RESOURCE         NODES   CAPACITY   ALLOCATABLE   USED   RESERVED   FREE   CLOSED   "
            "LARGEST-POD   WHOLE-NODES   FITS-1   FITS-2   FITS-4   FITS-8",
            "nvidia.com/gpu   3       24         23            10     4          5      4        "
            "3             0             5        2        0        0",
            "",
            "NAMESPACE   NAME    API     STATE     MIN   READY   SEATS   HELD   BOUND   PRIORITY   "
            "AGE      WAITS    REASON",
            "ml          train   label   waiting   8     8       0       0      0       10         "
            "66m      2m10s    gang ml/train has seats for 3 of 8 members: [bold]busy[/bold]",
            "ml          eval    pod     running   1     0       0       0      1       0          "
            "<none>   <none>   <none>",
        ],
    )


def test_without_headers_the_rows_stand_alone(server: Server) -> None:
    lines = run("--server", server.url, "--no-headers").stdout.splitlines()
    assert [line.split()[0] if line else "" for line in lines] == ["nvidia.com/gpu", "", "ml", "ml"]


def test_json_is_what_the_service_says(server: Server) -> None:
    result = run("--server", server.url, "-o", "json")
    assert orjson.loads(result.stdout) == orjson.loads(server.body)
    assert result.stdout.startswith('{\n  "at": 1800000000,')


def test_the_server_may_be_in_the_environment_and_below_a_path(server: Server) -> None:
    assert run(env={"MUSTER_SERVER": f"{server.url}/base/"}).exit_code == 0


def test_a_server_that_knows_more_is_understood(server: Server) -> None:
    server.body = orjson.dumps({**orjson.loads(server.body), "newer": 1})
    assert run("--server", server.url).exit_code == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"active": False}, "stands by (another replica decides, and knows why gangs wait)"),
        ({"problems": ["pods are not listed yet"]}, "is not ready (pods are not listed yet)"),
        ({"states": {}, "gangs": [], "left_out": 0}, "; gangs: none"),
    ],
)
def test_the_first_line_says_what_to_think_of_it(change: dict[str, Any], said: str) -> None:
    text = top.text(msgspec.structs.replace(SEEN, **change), headers=True)
    assert said in text.splitlines()[0]
    assert ("NAMESPACE" in text) == bool(change.get("gangs", True))


# -- nobody there


def error_of(url: str | None, *, output: str = "table") -> str:
    with pytest.raises((NoAnswerError, InputError)) as caught:
        top.once(Client.of(url), output=output, headers=True)
    return str(caught.value)


def test_who_does_not_answer_is_named(server: Server) -> None:
    said = error_of("http://127.0.0.1:1")
    assert said == "http://127.0.0.1:1 did not answer GET /overview: Connection refused"
    assert "/elsewhere answered GET /overview with 404: nothing here" in error_of(f"{server.url}/elsewhere")
    server.body = b"<html>"
    assert f"{server.url} answered GET /overview with something else" in error_of(server.url, output="json")
    server.body = b"[1]"
    assert f"{server.url} answered GET /overview with something else" in error_of(server.url)
    assert "did not answer" in error_of(server.url.replace("http", "https"))


def test_where_nothing_was_said_it_is_told_how_to_reach_a_live_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.client.LOCAL", "http://127.0.0.1:1")
    assert error_of(None).endswith(
        "Connection refused (for a live Muster: kubectl -n muster-system port-forward deployment/muster 8888)"
    )


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8888", "ftp://host", "http://", "http://host:port", "http://host:70000", "http://h?q"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    assert error_of(url).startswith(f"--server: {url} is not a URL")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, "http://127.0.0.1:8888"), ("http://host", "http://host:80"),
        ("https://host", "https://host:443"), ("https://host:1/base/", "https://host:1/base"),
        ("http://[::1]:8888", "http://[::1]:8888"),
    ],
)  # fmt: skip
def test_a_url_is_understood(given: str | None, meant: str) -> None:
    assert Client.of(given).url == meant


# -- light


def test_nothing_heavy_is_imported(server: Server) -> None:
    script = (
        "import sys; from click.testing import CliRunner; from app.cli.main import app;"
        f"result = CliRunner().invoke(app, ['top', '--server', '{server.url}']);"
        "heavy = {'numpy', 'fastapi', 'pydantic', 'rich', 'yaml', 'structlog', 'kubernetes', 'uvloop'};"
        "print(result.exit_code, sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (done.stdout, done.stderr) == ("0 []\n", "")


# -- in a terminal


class Terminal:
    """`muster top` in a terminal of its own."""

    def __init__(self, url: str, *, lines: int = 24, columns: int = 200) -> None:
        self.master, slave = pty.openpty()
        self.resize(lines, columns)
        command = [sys.executable, "-P", "-m", "app", "top", "--server", url, "--interval", "0.2"]
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env={**env, "TERM": "xterm-256color"},
        )  # fmt: skip
        os.close(slave)
        self.shown = ""

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def wait_for(self, text: str) -> None:
        """Until it is shown from now on."""
        self.shown = ""
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self._read()

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 0.05)[0]:
            return True
        try:
            got = os.read(self.master, 65536)
        except OSError:
            return False
        self.shown += got.decode(errors="replace")
        return bool(got)

    def stop(self, number: int) -> int:
        """The exit code after this signal; reads what was said until the end."""
        self.process.send_signal(number)
        while self._read():
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
        return self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(server: Server) -> Iterator[Terminal]:
    made = Terminal(server.url)
    yield made
    made.close()


RESTORED = "\x1b[?1049l"
CURSOR = "\x1b[?25h"


def test_in_a_terminal_it_is_refreshed_in_place_until_ctrl_c(server: Server, terminal: Terminal) -> None:
    terminal.wait_for("[bold]busy[/bold]")
    server.body = msgspec.json.encode(msgspec.structs.replace(SEEN, replica="another"))
    terminal.wait_for("on another is active")
    assert terminal.stop(signal.SIGINT) == 0
    assert RESTORED in terminal.shown and CURSOR in terminal.shown
    assert "Traceback" not in terminal.shown and "Aborted" not in terminal.shown


def test_a_terminal_of_another_size_is_filled_anew(terminal: Terminal) -> None:
    terminal.wait_for("eval")
    terminal.resize(8, 200)
    terminal.wait_for("3 more gangs")
    terminal.resize(24, 60)
    terminal.wait_for("…")
    terminal.resize(1, 1)
    terminal.resize(24, 200)
    terminal.wait_for("[bold]busy[/bold]")


def test_in_a_narrow_terminal_what_matters_least_gives_way(server: Server, terminal: Terminal) -> None:
    terminal.wait_for("REASON")
    terminal.resize(24, 80)
    terminal.wait_for("has seats for 3 of 8 members")
    assert "PRIORITY" not in terminal.shown and "CAPACITY" not in terminal.shown
    head = next(line for line in terminal.shown.splitlines() if "NAMESPACE" in line)
    assert re.sub(r"\x1b\[[\d;?]*\w", "", head).split() == [
        "NAMESPACE", "NAME", "STATE", "MIN", "WAITS", "REASON",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "kept"),
    [(47, "name api bound reason"), (46, "name bound reason"), (38, "name reason"), (1, "name reason")],
)
def test_columns_give_way_in_order_until_the_rest_fits(width: int, kept: str) -> None:
    headers = ("name", "api", "bound", "reason")
    rows = [("gang-1", "label", "12", "x" * 22), ("g", "pod", "3", "y")]
    assert [headers[place] for place in fitting(headers, rows, width)] == kept.split()
    assert fitting(headers, [("gang-1", "label", "12", "x" * 999)], 6 + 5 + 5 + LEAST_REASON + 9) == [
        0,
        1,
        2,
        3,
    ]


def test_a_server_that_is_lost_is_said_to_be_in_place(server: Server, terminal: Terminal) -> None:
    terminal.wait_for("is active")
    server.body = b"starting"
    terminal.wait_for("trying again")
    assert "train" in terminal.shown, "the last picture stays"
    server.body = msgspec.json.encode(SEEN)
    terminal.wait_for("is active")
    assert terminal.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    assert RESTORED in terminal.shown


def test_a_server_that_was_never_there_ends_it() -> None:
    terminal = Terminal("http://127.0.0.1:1")
    terminal.wait_for("did not answer")
    assert terminal.process.wait(SECONDS) == 2
    assert RESTORED not in terminal.shown
    terminal.close()


# -- ages


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"), (605, "10m"),
        (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 125, "3h2m"), (8 * 3600 + 300, "8h"),
        (48 * 3600 - 1, "47h"), (48 * 3600, "2d"), (49 * 3600, "2d1h"), (8 * 86400 + 3600, "8d"),
        (2 * 365 * 86400, "2y"), (2 * 365 * 86400 + 181 * 86400, "2y181d"), (9 * 365 * 86400, "9y"),
    ],
)  # fmt: skip
def test_an_age_reads_as_in_kubectl(seconds: float, text: str) -> None:
    assert age(seconds) == text
