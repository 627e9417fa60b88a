# SPDX-License-Identifier: Apache-2.0
"""A `muster serve` of our own: started on a free loopback port, and stopped by its own pid.

However the command ends, short of SIGKILL, the service does not outlive it. Never touches a process that it
has not started, and takes no settings from the environment: it behaves the same everywhere.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NoReturn

from app.cli.client import Client, NoAnswerError

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.02


@contextlib.contextmanager
def serving(snapshot: Path) -> Iterator[Client]:
    """A ready `muster serve`, stopped at the end. Raises `NoAnswerError` if it does not start."""
    port = _free_port()
    process: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as log:
        try:
            with _signals_deferred():
                process = _start(snapshot, port, log)
            client = Client(HOST, port)
            _await_ready(process, client, log)
            yield client
        finally:
            if process is not None:
                _stop(process)


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the command the orderly way, through every `finally`."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """A signal that comes while a process is being started counts once that process can be stopped."""
    came: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda got, frame: came.append(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for got in came:
        signal.raise_signal(got)


def _start(snapshot: Path, port: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """`-P`: a folder called `app` where the command is run must not be taken for the package."""
    command = [sys.executable, "-P", "-m", "app", "serve", "--snapshot", str(snapshot)]
    command += ["--host", HOST, "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def _await_ready(process: subprocess.Popen[bytes], client: Client, log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while client.status("/readyz") != 200:
        if process.poll() is not None:
            log.seek(0)
            last = log.read().decode(errors="replace").strip().splitlines()[-1:] or ["no output"]
            raise NoAnswerError(f"muster serve ended with {process.returncode}: {last[0]}")
        if time.monotonic() > deadline:
            raise NoAnswerError(f"muster serve was not ready within {START_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])
