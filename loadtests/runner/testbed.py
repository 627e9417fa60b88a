# SPDX-License-Identifier: Apache-2.0
"""A fresh control plane with nodes, and one contender's scheduler at work on it. Decides nothing about load.

Every run has its own: nothing is left over from the run before, so that the order of runs cannot matter.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from loadtests.runner.contender import ROOT, Contender
from loadtests.runner.measure import AuditLog, Samples, samples
from loadtests.runner.scenario import Task
from tests.cluster import ApiClient, Cluster, Scheduler
from tests.cluster.credentials import ADMIN
from tests.real import workloads
from tests.real.muster import NAMESPACE as RIG_NAMESPACE
from tests.real.muster import Rig

NAMESPACE = "load"
WARM_UP = "warm-up"
TASK_LABEL = "loadtest.muster.dev/task"
MASTERS = ("system:masters",)
SCHEDULER, MUSTER = "scheduler", "muster"


class Testbed:
    """Between `with` and its end: the plane runs, the scheduler has bound a gang to warm up."""

    __test__ = False  # not a class of tests, whatever pytest makes of its name

    def __init__(self, contender: Contender, *, nodes: int, gpus_per_node: int) -> None:
        self.contender = contender
        self.nodes, self.gpus_per_node = nodes, gpus_per_node
        # Users of their own, so that the audit log tells them apart; no limits of priority and fairness.
        self.cluster = Cluster(
            native_groups=contender.groups == "native",
            feature_gates=contender.feature_gates,
            controller_manager=False,
            users={SCHEDULER: MASTERS, MUSTER: MASTERS},
            audit=True,
        )
        self.audit = AuditLog(self.cluster.audit_log, shared=ADMIN)
        self.setup_seconds = 0.0
        self._rig: Rig | None = None
        self._scheduler: Scheduler | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        began = time.monotonic()
        try:
            self._stack.enter_context(self.cluster)
            self._prepare()
            self._start_contender()
            self._warm_up()
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)  # keeps the logs
            raise
        self.setup_seconds = time.monotonic() - began
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.__exit__(*failure)  # type: ignore[arg-type]

    @property
    def client(self) -> ApiClient:
        """The driver's."""
        return self.cluster.api

    @property
    def pids(self) -> dict[str, int]:
        """Process ids by name."""
        plane = {c.name: c.pid for c in (self.cluster.etcd, self.cluster.apiserver, self.cluster.kwok)}
        assert self._scheduler is not None
        return plane | {SCHEDULER: self._scheduler.pid} | self._muster_pid()

    def scheduler_samples(self) -> Samples:
        """The scheduler's /metrics."""
        assert self._scheduler is not None
        token = self.cluster.credentials.token(ADMIN)
        return samples(self._scheduler.page("/metrics", token=token))

    def muster_samples(self) -> Samples:
        """Muster's /metrics; empty without Muster."""
        return samples(self._rig.get("/metrics")[1]) if self._rig else {}

    # -- objects

    def group(self, task: Task, *, namespace: str = NAMESPACE) -> list[workloads.Object]:
        """The PodGroup of a task, if the contender has such a thing and the task is a gang."""
        if not task.grouped or self.contender.groups == "none":
            return []
        native = self.contender.groups == "native"
        return [workloads.group(namespace, task.name, task.members, native=native)]

    def pods(self, task: Task, *, namespace: str = NAMESPACE) -> list[workloads.Object]:
        """The pods of a task, as the contender wants them."""
        how = self.contender.groups if task.grouped else "none"
        shape = workloads.template(
            gang=task.name if how == "label" else None,
            native=task.name if how == "native" else None,
            gpus=task.gpus,
            scheduler="muster",
            labels={TASK_LABEL: task.name},
        )
        return workloads.pods(namespace, task.name, task.members, shape)

    def end(self, task: str, *, client: ApiClient | None = None) -> None:
        """Delete the pods of a task, at once and with nobody's consent, as a node does when they are over."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={TASK_LABEL.replace('/', '%2F')}%3D{task}"
        (client or self.client).delete(path, {"gracePeriodSeconds": 0})

    # -- starting

    def _prepare(self) -> None:
        if self.contender.groups == "label":
            self.cluster.apply((ROOT / "deploy" / "podgroup-crd.yaml").read_text())
        if self.contender.gates != "none":
            self.cluster.create_namespace(RIG_NAMESPACE)  # where Muster tells the policy of bursts
            self.cluster.apply((ROOT / "deploy" / "admission-policy.yaml").read_text())
        labels = {} if self.contender.gates == "none" else {"muster.dev/enabled": self.contender.gates}
        for namespace in (NAMESPACE, WARM_UP):
            self.cluster.create_namespace(namespace, labels=labels)
        self.cluster.add_nodes(self.nodes, gpus=self.gpus_per_node)

    def _start_contender(self) -> None:
        port = None
        if self.contender.muster:
            kubeconfig = self.cluster.kubeconfig_for(MUSTER)
            self._rig = Rig(
                self.cluster, muster_kubeconfig=kubeconfig, settings=self.contender.muster_settings
            )
            self._stack.callback(self._rig.stop)
            self._rig.start_muster()
            port = self._rig.port
        kubeconfig = self.cluster.kubeconfig_for(SCHEDULER)
        config = Path(self.cluster.runtime_dir, "scheduler.yaml")
        config.write_text(self.contender.scheduler_config(kubeconfig=kubeconfig, extender_port=port))
        self._scheduler = self.cluster.start_scheduler(
            config,
            SCHEDULER,
            kubeconfig=kubeconfig,
            feature_gates=self.contender.feature_gates,
            binary=self.contender.binary,
        )

    def _warm_up(self) -> None:
        """A gang that binds shows that all of it works; caches, connections and code are warm then."""
        task = Task(name=WARM_UP, members=2, gpus=min(1, self.gpus_per_node))
        self.cluster.wait_for(self._gates, 30, "the admission policy gates pods")
        self.cluster.create_many([*self.group(task, namespace=WARM_UP), *self.pods(task, namespace=WARM_UP)])
        pods = f"/api/v1/namespaces/{WARM_UP}/pods"
        self.cluster.wait_for(
            lambda: all(pod["spec"].get("nodeName") for pod in self.client.items(pods)),
            60,
            "a first gang is bound",
        )
        self.client.delete(pods, {"gracePeriodSeconds": 0})
        self.cluster.wait_for(lambda: not self.client.items(pods), 30, "the first gang is gone")

    def _gates(self) -> bool:
        if self.contender.gates == "none":
            return True
        probe = self.pods(Task(name="probe", members=1, gpus=1), namespace=WARM_UP)[0]
        for namespace in (WARM_UP, NAMESPACE):
            probe["metadata"]["namespace"] = namespace
            made = self.client.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", probe)
            if not made["spec"].get("schedulingGates"):
                return False
        return True

    def _muster_pid(self) -> dict[str, int]:
        if self._rig is None or self._rig.process is None:
            return {}
        return {MUSTER: self._rig.process.pid}
