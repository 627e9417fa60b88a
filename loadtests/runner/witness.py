# SPDX-License-Identifier: Apache-2.0
"""An independent witness: a ledger filled by a watch of its own, in a process of its own.

It trusts nobody's own account: not the driver's answers, not Muster's cache, not the scheduler's metrics.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Final, Self

from loadtests.runner.ledger import Ledger
from loadtests.runner.scenario import Task
from loadtests.runner.sightings import follow
from tests.cluster import Cluster
from tests.cluster.credentials import ADMIN

START_SECONDS: Final = 30.0


class Witness(Ledger):
    """Between `with` and its end it watches the pods of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, tasks: Iterable[Task]) -> None:
        super().__init__(tasks)
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe(duplex=False)
        path = f"/api/v1/namespaces/{namespace}/pods"
        args = (cluster.port, cluster.credentials.token(ADMIN), cluster.ca_file, path, theirs)
        self._process = spawn.Process(target=follow, args=args, name="witness", daemon=True)
        self._theirs: Connection = theirs
        self._thread = threading.Thread(target=self._listen, name="witness", daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()  # so that the pipe ends with the process
        if not self._pipe.poll(START_SECONDS):
            self._end()
            raise RuntimeError("the witness did not start")
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._end()
        self._thread.join()
        self._pipe.close()

    @property
    def pid(self) -> int:
        """Of its process."""
        assert self._process.pid is not None
        return self._process.pid

    def _end(self) -> None:
        self._process.terminate()
        self._process.join()
        self._process.close()

    def _listen(self) -> None:
        while True:
            try:
                batch = self._pipe.recv()
            except (EOFError, OSError):  # it ended, perhaps in the middle of a batch
                self.fail("its process ended")
                return
            self.take(batch)
