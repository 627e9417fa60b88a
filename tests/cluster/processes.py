# SPDX-License-Identifier: Apache-2.0
"""Start, watch and stop one process at a time, and leave none behind.

Every process gets its own session and a log file. It is stopped by its own pid only, never by name. Three
nets catch what a test forgets: the context managers, an atexit hook, and the kernel (PDEATHSIG) when Python
itself is killed. Nothing here waits for a fixed time: waits poll and fail with the end of the log.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import queue
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
Spawn = Callable[[], subprocess.Popen[bytes]]
POLL_SECONDS = 0.05
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(
    None, use_errno=True
)  # loaded before any fork: the child must not import or load anything


class WaitTimeout(AssertionError):
    """A condition did not come true in time; the message holds the end of the log that explains it."""


def wait_for(
    predicate: Callable[[], T], *, seconds: float, what: str, hint: Callable[[], str] = lambda: ""
) -> T:
    """Poll until the predicate is truthy and return its value. An error in it counts as "not yet"."""
    deadline = time.monotonic() + seconds
    last: Exception | None = None
    while True:
        began = time.monotonic()
        try:
            value, last = predicate(), None
            if value:
                return value
        except Exception as error:  # a server that is just starting refuses, resets or answers 5xx
            last = error
        if time.monotonic() >= deadline:
            because = f" (last error: {last!r})" if last else ""
            raise WaitTimeout(f"not within {seconds:g} s: {what}{because}\n{hint()}".rstrip()) from last
        # A dear predicate (a list of a thousand pods) must not keep the server busy with being asked.
        time.sleep(max(POLL_SECONDS, time.monotonic() - began))


_ports_given: set[int] = set()


def free_port() -> int:
    """A loopback port nobody listens on, never given twice by this process.

    Taken from below the ephemeral range: a port from inside it could become the local end of some connection
    while its server is stopped, and the server could not start again.
    """
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    first = 10_000 if low > 12_000 else 1024
    for _ in range(1000):
        port = random.SystemRandom().randrange(first, low if low > 2048 else 65_000)
        if port not in _ports_given and _is_free(port):
            _ports_given.add(port)
            return port
    raise OSError("no free loopback port found")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Process:
    """One command that can be started, stopped, killed and started again, always with the same arguments."""

    def __init__(
        self, name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.grace_seconds = 10.0  # how long `stop` waits unless told
        self.argv = [str(item) for item in argv]
        self.log = log
        self.env = dict(env or {})
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._popen is None:
            raise RuntimeError(f"{self.name} was never started")
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self._popen is None else self._popen.poll()

    def start(self) -> None:
        if self.running:
            raise RuntimeError(f"{self.name} is already running")
        _live.add(self)
        self._popen = _spawner.call(self._spawn)

    def stop(self, *, grace_seconds: float | None = None) -> None:
        """SIGTERM, then SIGKILL when it has not gone. Returns only when the process is gone."""
        self._end(
            signal.SIGTERM, grace_seconds=self.grace_seconds if grace_seconds is None else grace_seconds
        )

    def kill(self) -> None:
        """SIGKILL, as the out-of-memory killer would."""
        self._end(signal.SIGKILL, grace_seconds=self.grace_seconds)

    def send_signal(self, number: signal.Signals) -> None:
        """For pauses (SIGSTOP, SIGCONT) and the like."""
        os.kill(self.pid, number)

    def wait_exit(self, *, seconds: float) -> int:
        wait_for(lambda: not self.running, seconds=seconds, what=f"{self.name} exits", hint=self.log_tail)
        code = self.exit_code
        assert code is not None
        return code

    def wait_ready(self, check: Callable[[], object], *, seconds: float) -> None:
        """Poll the check; a process that dies meanwhile fails at once and not at the deadline."""

        def ready_or_dead() -> bool:
            return not self.running or bool(check())

        wait_for(ready_or_dead, seconds=seconds, what=f"{self.name} is ready", hint=self.log_tail)
        if not self.running:
            raise WaitTimeout(
                f"{self.name} exited with {self.exit_code} instead of becoming ready\n{self.log_tail()}"
            )

    def log_tail(self, lines: int = 25) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- end of {self.log}\n" + "\n".join(text.splitlines()[-lines:])

    def _spawn(self) -> subprocess.Popen[bytes]:
        parent = os.getpid()
        with self.log.open("ab") as out:  # appended: a restart must not lose why the last life ended
            return subprocess.Popen(
                self.argv,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: _die_with(parent),  # noqa: PLW1509 - two system calls, nothing that locks
            )

    def _end(self, first: signal.Signals, *, grace_seconds: float) -> None:
        popen = self._popen  # a supervisor may put the next life in its place meanwhile
        if popen is None:
            return
        if popen.poll() is None:
            popen.send_signal(first)
        try:
            popen.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
        if self._popen is popen:
            _live.discard(self)


def _die_with(parent: int) -> None:
    """Runs in the child between fork and exec: let the kernel kill it when its parent goes."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent died before prctl took effect
        os._exit(1)


class _Spawner:
    """One daemon thread that forks for everybody.

    PDEATHSIG fires when the *thread* that forked ends, so a process started from a short-lived test thread or
    a supervisor would die with that thread. This one lives as long as Python does.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Spawn, Future[subprocess.Popen[bytes]]]] = queue.SimpleQueue()
        self._begin = threading.Lock()
        self._thread: threading.Thread | None = None

    def call(self, job: Spawn) -> subprocess.Popen[bytes]:
        with self._begin:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="process-spawner", daemon=True)
                self._thread.start()
        result: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((job, result))
        return result.result()

    def _run(self) -> None:
        while True:
            job, result = self._jobs.get()
            try:
                result.set_result(job())
            except BaseException as error:  # handed to the caller, whatever it is
                result.set_exception(error)


_spawner = _Spawner()
_live: set[Process] = set()


@atexit.register
def stop_everything() -> None:
    """The net below the context managers: a test run that was interrupted leaves no process."""
    for process in list(_live):
        process.stop(grace_seconds=2.0)
