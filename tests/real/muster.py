# SPDX-License-Identifier: Apache-2.0
"""Muster as a process under test, with the kube-scheduler it belongs to.

`Rig` is what a Pod of deploy/extender.yaml holds: one kube-scheduler started with
deploy/scheduler-config.yaml (ports and kubeconfig substituted) and one `muster serve` in live mode.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster import Cluster, Process, Scheduler, free_port, wait_for

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "deploy" / "scheduler-config.yaml"
NAMESPACE = "muster-system"


class Rig:
    """One replica. `start` returns when Muster is ready and the scheduler is alive."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        name: str = "muster",
        hostname: str | None = None,
        leader_elect: bool = False,
        kubeconfig: Path | None = None,
        muster_kubeconfig: Path | None = None,
        config: Path = CONFIG,
        supervise: bool = True,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        self.name = name
        self.port, self.ops_port = free_port(), free_port()
        self._hostname = hostname
        self._elect = leader_elect
        self._kubeconfig = kubeconfig
        self._muster_kubeconfig = muster_kubeconfig or kubeconfig
        self._config = config
        self._supervise = supervise
        self._settings = settings or {}
        self.process: Process | None = None
        self.scheduler: Scheduler | None = None

    def start(self) -> None:
        """Muster first, as any order is right and this one is quicker."""
        self.start_muster()
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """With the shipped configuration."""
        config = self.cluster.render_scheduler_config(
            self._config, extender_port=self.port, leader_elect=self._elect, kubeconfig=self._kubeconfig
        )
        self.scheduler = self.cluster.start_scheduler(
            config,
            f"scheduler-{self.name}",
            hostname=self._hostname,
            supervise=self._supervise,
            kubeconfig=self._kubeconfig,
        )

    def start_muster(self) -> None:
        """`muster serve`, as the Deployment runs it."""
        env = {
            **os.environ,
            "KUBECONFIG": str(self._muster_kubeconfig or self.cluster.admin_kubeconfig),
            "MUSTER_ACTIVE": "lease" if self._elect else "always",
            "MUSTER_NAMESPACE": NAMESPACE,
            "MUSTER_OPS_HOST": "127.0.0.1",
            **({"MUSTER_HOSTNAME": self._hostname} if self._hostname else {}),
            **{f"MUSTER_{name.upper()}": value for name, value in self._settings.items()},
        }
        argv = [
            sys.executable,
            "-m",
            "app",
            "serve",
            "--port",
            str(self.port),
            "--ops-port",
            str(self.ops_port),
        ]
        self.process = Process(self.name, argv, log=self.cluster.log_path(self.name), env=env)
        self.process.start()
        wait_for(self.ready, seconds=60, what=f"{self.name} is ready", hint=self.process.log_tail)

    def ready(self) -> bool:
        """GET /readyz."""
        return self.get("/readyz")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """(status, body) of the ops port; status 0 when nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops_port}{path}", timeout=5) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def metric(self, line: str) -> float:
        """The value of one sample line of /metrics, 0.0 when absent."""
        for text in self.get("/metrics")[1].splitlines():
            if text.startswith(f"{line} "):
                return float(text.rsplit(" ", 1)[1])
        return 0.0

    def stop(self) -> None:
        """Scheduler, then Muster."""
        if self.scheduler is not None:
            self.scheduler.stop()
            self.cluster.schedulers.pop(self.scheduler.name, None)  # it is not dead, it is over
        if self.process is not None:
            self.process.stop()
