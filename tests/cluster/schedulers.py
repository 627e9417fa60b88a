# SPDX-License-Identifier: Apache-2.0
"""Real kube-schedulers for tests: their configuration with this machine's ports in it, and their supervision.

The configuration is the one that users are given (a KubeSchedulerConfiguration file, or the ConfigMap of a
manifest that holds one); only addresses and what the caller names are replaced.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.components import Component, http_ok, https_get

EXTENDER_ADDRESS = "http://127.0.0.1:8888"
KIND = "KubeSchedulerConfiguration"


def render_scheduler_config(
    path: Path | str,
    *,
    kubeconfig: Path | str,
    extender_port: int | None,
    leader_elect: bool | None = None,
    lease_namespace: str | None = None,
) -> str:
    """The text of a configuration file ready to run.

    `extender_port` replaces 8888 in the extenders' urlPrefix; None removes the extenders. `leader_elect` and
    `lease_namespace` override the file only when given.
    """
    config = _find(list(yaml.safe_load_all(Path(path).read_text())), path)
    config["clientConnection"] = {**config.get("clientConnection", {}), "kubeconfig": str(kubeconfig)}
    if extender_port is None:
        config.pop("extenders", None)
    for extender in config.get("extenders", []):
        url = str(extender["urlPrefix"])
        extender["urlPrefix"] = url.replace(EXTENDER_ADDRESS, f"http://127.0.0.1:{extender_port}")
    election = dict(config.get("leaderElection", {}))
    if leader_elect is not None:
        election["leaderElect"] = leader_elect
    if lease_namespace is not None:
        election["resourceNamespace"] = lease_namespace
    if election:
        config["leaderElection"] = election
    return yaml.safe_dump(config, sort_keys=False)


def plain_scheduler_config(*, kubeconfig: Path | str, scheduler_name: str = "default-scheduler") -> str:
    """kube-scheduler as it comes, without leader election and extenders."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": KIND,
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": scheduler_name}],
    }
    return yaml.safe_dump(config, sort_keys=False)


def _find(documents: Sequence[Any], path: Path | str) -> dict[str, Any]:
    found = list(_configurations(documents))
    if len(found) != 1:
        raise ValueError(f"{path} holds {len(found)} {KIND} documents, not one")
    return found[0]


def _configurations(documents: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == KIND:
            yield document
        elif kind == "ConfigMap":
            for text in document.get("data", {}).values():
                if KIND in text:
                    yield from _configurations(list(yaml.safe_load_all(text)))


class Scheduler(Component):
    """One kube-scheduler. With `supervise`, it is started again whenever it exits, as the kubelet would do.

    `stop` ends the supervision first. `kill` does not: it is the crash a supervised scheduler recovers from.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        port: int,
        hostname: str | None = None,
        supervise: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> None:
        # /livez and not /readyz: a replica that waits for the Lease is alive and well.
        super().__init__(
            name,
            _with_hostname(argv, hostname),
            log=log,
            env=env,
            ready=lambda: http_ok(port, "/livez", tls=True),
        )
        self.port = port
        self.restarts = 0
        self._supervise = supervise
        self._wanted = threading.Event()
        self._supervisor: threading.Thread | None = None

    def page(self, path: str, *, token: str) -> str:
        """What its own port serves to a user, such as /metrics. Raises OSError."""
        status, body = https_get(self.port, path, token=token)
        if status != 200:
            raise OSError(f"{self.name} answers {path} with {status}: {body[:200]}")
        return body

    def start(self, *, wait: bool = True) -> None:
        super().start(wait=wait)
        if self._supervise and not self._wanted.is_set():
            self._wanted.set()
            self._supervisor = threading.Thread(
                target=self._watch_over, name=f"supervise-{self.name}", daemon=True
            )
            self._supervisor.start()

    def stop(self, *, grace_seconds: float | None = None) -> None:
        self._wanted.clear()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
        super().stop(grace_seconds=grace_seconds)

    def _watch_over(self) -> None:
        while self._wanted.is_set():
            if not self.running:
                self.restarts += 1
                super().start(wait=False)
            time.sleep(0.2)  # the poll interval, and the pause between two lives


def _with_hostname(argv: Sequence[str], hostname: str | None) -> list[str]:
    """A UTS namespace of its own: the scheduler's Lease identity is `<hostname>_<uuid>`. Needs root."""
    if hostname is None:
        return list(argv)
    if os.geteuid() != 0:
        raise PermissionError("a scheduler with its own host name needs root (unshare --uts)")
    # Both exec, so that the pid this process is stopped by stays the scheduler's own.
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', hostname, *argv]
