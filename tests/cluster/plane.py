# SPDX-License-Identifier: Apache-2.0
"""The processes of a test cluster: what is started, in which order, and how each is found and stopped.

etcd, kube-apiserver (TLS, RBAC), kube-controller-manager, and kwok in place of kubelets. Every component can
be stopped, killed and started on its own, on the same port and data. Schedulers and API calls: cluster.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from tests.cluster import components
from tests.cluster.audit import audit_flags
from tests.cluster.client import ApiClient
from tests.cluster.components import Component, http_ok
from tests.cluster.credentials import ADMIN, Credentials, write_secret
from tests.cluster.kwok import kwok_config
from tests.cluster.processes import Process, free_port
from tests.cluster.schedulers import Scheduler

NODES_NEVER_DIE_SECONDS = 24 * 3600


class PlaneOptions(TypedDict, total=False):
    """The keyword arguments of ControlPlane, for those that pass them on."""

    native_groups: bool
    controller_manager: bool
    kwok: bool
    runtime_dir: Path | None
    users: Mapping[str, Sequence[str]] | None
    feature_gates: Mapping[str, bool] | None
    apiserver_args: Sequence[str]
    node_lease_seconds: int
    audit: bool


class ControlPlane:
    """`start_plane()` returns when every component serves; `stop()` when every process is gone.

    `native_groups` turns on the GenericWorkload gate and scheduling.k8s.io/v1beta1. `users` adds tokens
    (user name to groups) that have no rights until RBAC gives some. With `node_lease_seconds` (a kubelet
    has 40) nodes renew a Lease every quarter of it, and count as dead after one and a half of it. By
    default they have no Lease and never die, which keeps 5,000 of them cheap. With `audit` every request
    that changes something is a line of `audit_log`.
    """

    def __init__(
        self,
        *,
        native_groups: bool = False,
        controller_manager: bool = True,
        kwok: bool = True,
        runtime_dir: Path | None = None,
        users: Mapping[str, Sequence[str]] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        apiserver_args: Sequence[str] = (),
        node_lease_seconds: int = 0,
        audit: bool = False,
    ) -> None:
        # Imported here because that module is also run with `python -m`, after this package is imported.
        from tests.cluster import binaries  # noqa: PLC0415

        self.temporary = runtime_dir is None
        self.runtime_dir = runtime_dir or Path(tempfile.mkdtemp(prefix="muster-cluster-"))
        self.runtime_dir.mkdir(parents=True, exist_ok=True)
        self.bin_dir = binaries.ensure_binaries()
        self.cert_dir = self.runtime_dir / "pki"
        self.ca_file = self.cert_dir / "apiserver.crt"
        self.credentials = Credentials(self.runtime_dir, users or {})
        self.port = free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self._lease_seconds = node_lease_seconds
        self._gates = {**({"GenericWorkload": True} if native_groups else {}), **(feature_gates or {})}
        self._native_groups = native_groups
        self.with_controllers, self._with_kwok = controller_manager, kwok
        self.audit_log = self.runtime_dir / "audit.log"
        self.etcd = self._make_etcd()
        audit_args = audit_flags(self.runtime_dir / "audit.yaml", log=self.audit_log) if audit else []
        self.apiserver = self._make_apiserver([*audit_args, *apiserver_args])
        self.controller_manager = self._make_controller_manager()
        self.kwok = self._make_kwok()
        self.schedulers: dict[str, Scheduler] = {}
        self._others: list[Process] = []
        self._clients: list[ApiClient] = []

    def start_plane(self) -> None:
        self.etcd.start()
        self.apiserver.start()
        self.admin_kubeconfig = self.kubeconfig_for(ADMIN)
        write_secret(self.runtime_dir / "kwok.yaml", kwok_config(lease_seconds=self._lease_seconds))
        started = [c for c, on in self._optional() if on]
        for component in started:
            component.start(wait=False)  # both at once: each takes its seconds
        for component in started:
            component.wait_until_ready()

    def stop(self) -> None:
        """Everything, the most dependent first."""
        for client in self._clients:
            client.close()
        for process in (*self._others, *self.schedulers.values(), self.kwok, self.controller_manager):
            process.stop(grace_seconds=5.0)
        self.apiserver.stop()
        self.etcd.stop()

    @property
    def components(self) -> list[Component]:
        """Those that were asked for, in starting order."""
        return [
            self.etcd,
            self.apiserver,
            *(c for c, on in self._optional() if on),
            *self.schedulers.values(),
        ]

    def run(self, name: str, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start any other process (Muster itself, a load generator) that is to end with the cluster."""
        process = Process(name, argv, log=self.log_path(name), env=env)
        self._others.append(process)
        process.start()
        return process

    def client(self, token: str | None) -> ApiClient:
        """A client with another identity; None is anonymous."""
        self._clients.append(ApiClient(self.port, token=token, ca_file=self.ca_file))
        return self._clients[-1]

    def kubeconfig_for(self, user: str, *, token: str | None = None) -> Path:
        """A kubeconfig file for a user of `users`, for `admin`, or under any name for a token given."""
        secret = self.credentials.token(user) if token is None else token
        return self.credentials.write_kubeconfig(user, token=secret, server=self.server, ca_file=self.ca_file)

    def _make_etcd(self) -> Component:
        port = self._etcd_port = free_port()
        argv = components.etcd_argv(
            self.bin_dir / "etcd", data=self.runtime_dir / "etcd", client_port=port, peer_port=free_port()
        )
        return Component(
            "etcd", argv, log=self.log_path("etcd"), ready=lambda: http_ok(port, "/health", tls=False)
        )

    def _make_apiserver(self, extra: Sequence[str]) -> Component:
        argv = components.apiserver_argv(
            self.bin_dir / "kube-apiserver",
            port=self.port,
            etcd_port=self._etcd_port,
            cert_dir=self.cert_dir,
            token_file=self.credentials.token_file,
            controller_manager=self.with_controllers,
            gates=self._gates,
            runtime_config=["scheduling.k8s.io/v1beta1=true"] if self._native_groups else [],
        )
        # Unverified: before the first start there is no certificate to trust.
        server = Component(
            "kube-apiserver",
            [*argv, *extra],
            log=self.log_path("kube-apiserver"),
            ready=lambda: http_ok(self.port, "/readyz", tls=True),
        )
        # It would wait a minute for its watches to end. etcd has every write it has answered.
        server.grace_seconds = 2.0
        return server

    def _make_controller_manager(self) -> Component:
        port = free_port()
        argv = components.controller_manager_argv(
            self.bin_dir / "kube-controller-manager",
            port=port,
            kubeconfig=self.runtime_dir / "admin.kubeconfig",
            cert_dir=self.cert_dir,
            grace_seconds=self._lease_seconds * 3 // 2 or NODES_NEVER_DIE_SECONDS,
            gates=self._gates,
        )
        log = self.log_path("kube-controller-manager")
        return Component(
            "kube-controller-manager", argv, log=log, ready=lambda: http_ok(port, "/healthz", tls=True)
        )

    def _make_kwok(self) -> Component:
        port = free_port()
        argv = components.kwok_argv(
            self.bin_dir / "kwok",
            port=port,
            kubeconfig=self.runtime_dir / "admin.kubeconfig",
            config=self.runtime_dir / "kwok.yaml",
        )
        return Component(
            "kwok", argv, log=self.log_path("kwok"), ready=lambda: http_ok(port, "/healthz", tls=False)
        )

    def _optional(self) -> list[tuple[Component, bool]]:
        return [(self.controller_manager, self.with_controllers), (self.kwok, self._with_kwok)]

    def log_path(self, name: str) -> Path:
        return self.runtime_dir / f"{name}.log"

    def dead_components(self) -> str:
        gone: list[Process] = [p for p in (*self.components, *self._others) if not p.running]
        return "\n".join(f"{p.name} is not running (exit code {p.exit_code})\n{p.log_tail()}" for p in gone)
