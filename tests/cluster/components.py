# SPDX-License-Identifier: Apache-2.0
"""The command lines of the control plane, and a process that knows when it is ready.

Only flags live here. Everything listens on 127.0.0.1; nothing is advertised elsewhere.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cluster.processes import Process

GIB = 1024**3


class Component(Process):
    """A Process with a readiness check: `start` returns when it serves, or fails with the end of its log."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        ready: Callable[[], object],
        env: Mapping[str, str] | None = None,
        ready_seconds: float = 90.0,
    ) -> None:
        super().__init__(name, argv, log=log, env=env)
        self._ready = ready
        self._ready_seconds = ready_seconds

    def start(self, *, wait: bool = True) -> None:
        super().start()
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        self.wait_ready(self._ready, seconds=self._ready_seconds)

    def restart(self, *, kill: bool = False) -> None:
        if kill:
            self.kill()
        else:
            self.stop()
        self.start()


def http_ok(port: int, path: str, *, tls: bool) -> bool:
    """For health endpoints with throw-away certificates: nothing secret is sent, so nothing is verified."""
    if tls:
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=2, context=_unverified()
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    finally:
        connection.close()


def https_get(port: int, path: str, *, token: str) -> tuple[int, str]:
    """(status, body), from a server of our own on loopback whose throw-away certificate is not verified."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=_unverified())
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def gates_flag(gates: Mapping[str, bool]) -> list[str]:
    if not gates:
        return []
    return ["--feature-gates=" + ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())]


def etcd_argv(binary: Path, *, data: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        str(binary),
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--quota-backend-bytes={4 * GIB}",
        "--unsafe-no-fsync",  # the data outlives a process, not the machine: enough for a test
        "--log-level=warn",
    ]


def apiserver_argv(
    binary: Path,
    *,
    port: int,
    etcd_port: int,
    cert_dir: Path,
    token_file: Path,
    controller_manager: bool,
    gates: Mapping[str, bool],
    runtime_config: Sequence[str],
) -> list[str]:
    # A node is created Ready: nobody plays the kubelet that would have it untainted step by step. Without a
    # controller manager there are no ServiceAccounts either, and this plugin would refuse every pod.
    disabled = ["TaintNodesByCondition"] + ([] if controller_manager else ["ServiceAccount"])
    # The server makes this key itself before it reads the flags about service accounts; it does for both.
    key = cert_dir / "apiserver.key"
    return [
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # loopback is no valid endpoint of the `kubernetes` service
        f"--secure-port={port}",
        f"--cert-dir={cert_dir}",
        f"--token-auth-file={token_file}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--service-account-issuer=https://127.0.0.1:{port}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--disable-admission-plugins={','.join(disabled)}",
        "--allow-privileged=true",
        *gates_flag(gates),
        *([f"--runtime-config={','.join(runtime_config)}"] if runtime_config else []),
    ]


def controller_manager_argv(
    binary: Path,
    *,
    port: int,
    kubeconfig: Path,
    cert_dir: Path,
    grace_seconds: int,
    gates: Mapping[str, bool],
) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--service-account-private-key-file={cert_dir / 'apiserver.key'}",
        f"--root-ca-file={cert_dir / 'apiserver.crt'}",
        "--leader-elect=false",
        f"--node-monitor-grace-period={grace_seconds}s",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        *gates_flag(gates),
    ]


def kwok_argv(binary: Path, *, port: int, kubeconfig: Path, config: Path) -> list[str]:
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--config={config}",
        "--manage-all-nodes=true",
        f"--server-address=127.0.0.1:{port}",
    ]


def scheduler_argv(
    binary: Path,
    *,
    port: int,
    kubeconfig: Path,
    config: Path,
    gates: Mapping[str, bool],
    extra: Sequence[str],
) -> list[str]:
    return [
        str(binary),
        f"--config={config}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        *gates_flag(gates),
        *extra,
    ]
