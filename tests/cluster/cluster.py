# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane on loopback, for one test or one test session, and what tests do with it.

Schedulers are started by the test. Nothing here knows Muster.

    with Cluster() as cluster:
        cluster.add_nodes(4)
        cluster.start_scheduler(cluster.plain_scheduler_config(), "plain")
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack

import yaml

from tests.cluster import components, schedulers
from tests.cluster.client import MERGE_PATCH, ApiClient, Json, Object, Watch
from tests.cluster.credentials import ADMIN
from tests.cluster.kwok import make_node
from tests.cluster.plane import ControlPlane, PlaneOptions
from tests.cluster.processes import free_port, wait_for
from tests.cluster.schedulers import Scheduler

T = TypeVar("T")


class Cluster(ControlPlane):
    """A ControlPlane (whose options it takes) with GPU nodes, an admin client, kubectl and schedulers.

    As a context manager it ends with every process gone. A runtime folder of its own is removed then, unless
    the block failed: the logs are in it.
    """

    def __init__(self, *, nodes: int = 0, **options: Unpack[PlaneOptions]) -> None:
        super().__init__(**options)
        self._nodes_wanted = nodes

    def start(self) -> None:
        """Returns when pods can be created in the default namespace and the wanted nodes exist."""
        self.start_plane()
        if self.with_controllers:
            self.wait_for_service_account("default")
        if self._nodes_wanted:
            self.add_nodes(self._nodes_wanted)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stop()
        if self.temporary and error is None:
            shutil.rmtree(self.runtime_dir, ignore_errors=True)  # kept after a failure: the logs are in it

    # --- the API ---

    @cached_property
    def api(self) -> ApiClient:
        """The admin's client. It survives restarts of the API server."""
        return self.client(self.credentials.token(ADMIN))

    def get(self, path: str) -> Json:
        return self.api.get(path)

    def post(self, path: str, body: Json) -> Json:
        return self.api.post(path, body)

    def patch(self, path: str, body: Json, content_type: str = MERGE_PATCH) -> Json:
        return self.api.patch(path, body, content_type)

    def delete(self, path: str, body: Json = None) -> Json:
        return self.api.delete(path, body)

    def watch(self, path: str, *, seconds: float | None = None) -> Watch:
        return self.api.watch(path, seconds=seconds)

    def create_many(self, objects: Iterable[Object], *, threads: int = 64) -> list[Object]:
        return self.api.create_many(objects, threads=threads)

    def kubectl(self, *args: str, stdin: str | None = None, kubeconfig: Path | None = None) -> str:
        """kubectl's stdout; its stderr is in the error when it fails."""
        argv = [str(self.bin_dir / "kubectl"), f"--kubeconfig={kubeconfig or self.admin_kubeconfig}", *args]
        env = {**os.environ, "KUBECACHEDIR": str(self.runtime_dir / "kubectl-cache")}
        done = subprocess.run(
            argv, input=stdin, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(args)} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def apply(self, manifests: str | Iterable[Object]) -> str:
        """Server-side apply of YAML text or of objects, as the admin."""
        text = manifests if isinstance(manifests, str) else yaml.safe_dump_all(list(manifests))
        return self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def wait_for(self, predicate: Callable[[], T], seconds: float, what: str) -> T:
        """Poll; on failure the message tells which components have died, with the end of their logs."""
        return wait_for(predicate, seconds=seconds, what=what, hint=self.dead_components)

    # --- objects ---

    def create_namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> None:
        """Returns when pods can be created in it, which is when its default ServiceAccount exists."""
        meta = {"name": name, "labels": dict(labels or {})}
        self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        if self.with_controllers:
            self.wait_for_service_account(name)

    def wait_for_service_account(self, namespace: str, name: str = "default") -> None:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}"
        self.wait_for(lambda: self.api.exists(path), 60, f"ServiceAccount {namespace}/{name} exists")

    def add_nodes(
        self,
        n: int,
        prefix: str = "node",
        *,
        gpus: int = 8,
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Mapping[str, str]] = (),
        resources: Mapping[str, str] | None = None,
        first: int = 0,
    ) -> list[str]:
        """Create Ready nodes `<prefix>-<number>`, numbered from `first`, and return their names."""
        names = [f"{prefix}-{first + index}" for index in range(n)]
        kept = list(taints)
        self.create_many(
            make_node(name, gpus=gpus, labels=labels, taints=kept, resources=resources) for name in names
        )
        return names

    # --- identities ---

    def service_account_token(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """A real bound token from the TokenRequest API."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        answer = self.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        return str(answer["status"]["token"])

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        return self.kubeconfig_for(f"{namespace}:{name}", token=self.service_account_token(namespace, name))

    # --- schedulers ---

    def render_scheduler_config(
        self,
        path: Path | str,
        *,
        extender_port: int | None,
        kubeconfig: Path | None = None,
        leader_elect: bool | None = None,
        lease_namespace: str | None = None,
    ) -> Path:
        """See schedulers.render_scheduler_config; writes the result into the runtime folder."""
        text = schedulers.render_scheduler_config(
            path,
            kubeconfig=kubeconfig or self.admin_kubeconfig,
            extender_port=extender_port,
            leader_elect=leader_elect,
            lease_namespace=lease_namespace,
        )
        return self._scheduler_config(text)

    def plain_scheduler_config(self, scheduler_name: str = "default-scheduler") -> Path:
        text = schedulers.plain_scheduler_config(
            kubeconfig=self.admin_kubeconfig, scheduler_name=scheduler_name
        )
        return self._scheduler_config(text)

    def start_scheduler(
        self,
        config_path: Path | str,
        name: str,
        *,
        hostname: str | None = None,
        env: Mapping[str, str] | None = None,
        supervise: bool = False,
        feature_gates: Mapping[str, bool] | None = None,
        kubeconfig: Path | None = None,
        args: Sequence[str] = ("--v=2",),
        binary: Path | None = None,
    ) -> Scheduler:
        """Start a kube-scheduler with a rendered configuration and return when it is alive.

        `binary` is another scheduler that takes kube-scheduler's flags. Feature gates are its own:
        `native_groups` of the cluster does not turn them on here.
        """
        port = free_port()
        argv = components.scheduler_argv(
            binary or self.bin_dir / "kube-scheduler",
            port=port,
            kubeconfig=kubeconfig or self.admin_kubeconfig,
            config=Path(config_path),
            gates=feature_gates or {},
            extra=args,
        )
        scheduler = Scheduler(
            name, argv, log=self.log_path(name), port=port, hostname=hostname, supervise=supervise, env=env
        )
        if name in self.schedulers:
            self.schedulers[name].stop()
        self.schedulers[name] = scheduler
        scheduler.start()
        return scheduler

    def _scheduler_config(self, text: str) -> Path:
        descriptor, path = tempfile.mkstemp(dir=self.runtime_dir, prefix="scheduler-", suffix=".yaml")
        with os.fdopen(descriptor, "w") as out:
            out.write(text)
        return Path(path)
