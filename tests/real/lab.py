# SPDX-License-Identifier: Apache-2.0
"""What a real test works in: nodes, an enabled namespace, Muster with its scheduler, and a witness.

    def test_something(lab: Lab) -> None:
        lab.nodes(2, gpus=8)
        lab.gang("train", members=2, gpus=8)            # PodGroup and bare pods, gated by the policy
        lab.wait(lambda: lab.bound("train") == 2, 15, "train is bound")

Everything made here is gone at the end, and the witness has seen no gang partly bound at rest and no node
over-committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from tests.cluster import ApiError, Cluster
from tests.real import workloads
from tests.real.muster import NAMESPACE as RIG_NAMESPACE
from tests.real.muster import ROOT, Rig
from tests.real.observer import Observer
from tests.real.workloads import Object

T = TypeVar("T")
GATE = "muster.dev/gang"
LEFTOVERS = ("resourcequotas", "persistentvolumeclaims", "events")
NAMESPACES: Mapping[str, str | None] = {"gangs": "gangs", "gpus": "gpus", "plain": None}
"""Namespace name → value of its label muster.dev/enabled. In `plain` pods name their scheduler themselves."""


def prepare(cluster: Cluster) -> None:
    """Install what deploy/ holds for a cluster, and wait until the admission policy acts."""
    cluster.apply((ROOT / "deploy" / "podgroup-crd.yaml").read_text())
    cluster.apply((ROOT / "deploy" / "admission-policy.yaml").read_text())
    cluster.create_namespace("muster-system")
    for name, enabled in NAMESPACES.items():
        cluster.create_namespace(name, labels={"muster.dev/enabled": enabled} if enabled else None)
    for name, value in (("high", 1000), ("low", 1)):
        cluster.apply([_priority_class(name, value)])

    def ready(namespace: str, priority: str) -> bool:
        probe = workloads.pod(namespace, "probe", workloads.template(gang="probe", priority_class=priority))
        made = cluster.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", probe)
        return bool(made["spec"].get("schedulingGates"))

    # Policy, namespaces and priority classes reach admission through watches of its own.
    for namespace in ("gangs", "gpus"):
        for name in ("high", "low"):
            cluster.wait_for(partial(ready, namespace, name), 60, f"members are gated in {namespace}")


def _priority_class(name: str, value: int) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


class Lab:
    """One test's cluster. `namespace` is where `gang` and `pods` create unless told otherwise.

    With a `rig` that runs already, that one is used and left running, with nothing in its memory.
    `settings` and further options are those of a `Rig` of its own.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        log_name: str = "muster",
        start: bool = True,
        rig: Rig | None = None,
        settings: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.cluster = cluster
        self.namespace = "gangs"
        self.minimums: dict[str, int] = {}
        self.witness = Observer(cluster, lambda: dict(self.minimums))
        self._name = "".join(c if c.isalnum() else "-" for c in log_name)[:60].strip("-")
        self.rig = rig or Rig(cluster, name=self._name, settings=settings, **options)
        self._start = start
        self._lent = rig is not None

    def __enter__(self) -> Self:
        if self._start and not self._lent:
            self.rig.start()
        self.witness.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.witness.stop()
        if not self._lent:
            self.rig.stop()
        self._clean()
        if self._lent:
            self.wait(self._forgotten, 15, "Muster holds nothing of what is gone")
        if error is None:
            assert not self.witness.partly, self.witness.partly
            assert not self.witness.overcommitted, self.witness.overcommitted

    # -- making things

    def nodes(self, count: int, *, gpus: int = 8, **options: Any) -> list[str]:
        """Ready nodes, known to Muster."""
        names = self.cluster.add_nodes(count, gpus=gpus, **options)
        self.wait(self._nodes_ready, 30, "nodes are Ready and untainted")
        return names

    def gang(
        self,
        name: str,
        members: int,
        *,
        minimum: int | None = None,
        native: bool = False,
        namespace: str | None = None,
        timeout: int | None = None,
        **shape: Any,
    ) -> list[Object]:
        """A PodGroup and its bare pods `<name>-0` …; in an enabled namespace the policy gates them."""
        self.group(
            name, members if minimum is None else minimum, native=native, namespace=namespace, timeout=timeout
        )
        return self.members(name, members, native=native, namespace=namespace, **shape)

    def group(
        self,
        name: str,
        minimum: int,
        *,
        native: bool = False,
        namespace: str | None = None,
        timeout: int | None = None,
    ) -> Object:
        """A PodGroup alone."""
        where = namespace or self.namespace
        self.minimums[f"{where}/{name}"] = minimum
        return self.create(workloads.group(where, name, minimum, native=native, timeout=timeout))[0]

    def members(
        self,
        name: str,
        count: int,
        *,
        native: bool = False,
        namespace: str | None = None,
        first: int = 0,
        **shape: Any,
    ) -> list[Object]:
        """Bare pods of a gang, numbered from `first`."""
        where = namespace or self.namespace
        if where == "plain":
            shape.setdefault("scheduler", "muster")
        shape["native" if native else "gang"] = name
        one = workloads.template(**shape)
        return self.create(*(workloads.pod(where, f"{name}-{first + index}", one) for index in range(count)))

    def create(self, *objects: Object) -> list[Object]:
        """Create objects in parallel."""
        return self.cluster.create_many(objects)

    # -- looking

    def pods(self, namespace: str | None = None) -> list[Object]:
        """All pods of a namespace."""
        return self.cluster.api.items(f"/api/v1/namespaces/{namespace or self.namespace}/pods")

    def pod(self, name: str, namespace: str | None = None) -> Object:
        """One pod."""
        found: Object = self.cluster.get(f"/api/v1/namespaces/{namespace or self.namespace}/pods/{name}")
        return found

    def of(self, gang: str, namespace: str | None = None) -> list[Object]:
        """The pods of one gang, of either API."""
        return [p for p in self.pods(namespace) if gang in (_label(p), _native(p))]

    def bound(self, gang: str, namespace: str | None = None) -> int:
        """Members with a node that have not failed."""
        return sum(bool(p["spec"].get("nodeName")) and phase(p) != "Failed" for p in self.of(gang, namespace))

    def gated(self, gang: str, namespace: str | None = None) -> int:
        """Members that carry our gate."""
        return sum(GATE in gates(p) for p in self.of(gang, namespace))

    def nominated(self, gang: str, namespace: str | None = None, *, by: str | None = None) -> list[str]:
        """Unbound members with a nominated node; `by` a field manager counts only those that it nominated."""
        found = [p for p in self.of(gang, namespace) if nomination(p) and not p["spec"].get("nodeName")]
        return [p["metadata"]["name"] for p in found if by is None or by in _nominators(p)]

    def held(self) -> int:
        """Bind calls that wait at the barrier."""
        return int(self.rig.metric("muster_held_binds"))

    def seats(self) -> int:
        """Seats set aside."""
        return int(self.rig.metric("muster_reserved_seats"))

    def calls(self, verb: str) -> int:
        """Calls of a verb that were answered."""
        return int(self.rig.metric(f'muster_verb_duration_seconds_count{{verb="{verb}"}}'))

    def events(self, name: str, namespace: str | None = None) -> list[Object]:
        """Events whose involved object has this name."""
        items = self.cluster.api.items(f"/api/v1/namespaces/{namespace or self.namespace}/events")
        return [event for event in items if event["involvedObject"]["name"] == name]

    def describe(self, kind: str, name: str, namespace: str | None = None) -> str:
        """`kubectl describe`, as a user sees it."""
        return self.cluster.kubectl("describe", kind, name, "-n", namespace or self.namespace)

    def wait(self, predicate: Callable[[], T], seconds: float, what: str) -> T:
        """Poll until true."""
        return self.cluster.wait_for(predicate, seconds, what)

    def delete(self, kind: str, name: str, namespace: str | None = None, *, grace: int | None = 0) -> None:
        """Delete one object by kubectl-like kind: pods, podgroups, jobs, replicasets."""
        self.cluster.delete(f"{_path(kind, namespace or self.namespace)}/{name}", _grace(grace))

    # -- the end

    def _nodes_ready(self) -> bool:
        nodes = self.cluster.api.items("/api/v1/nodes")
        known = self.rig.metric("muster_nodes") if self._start else len(nodes)
        return known >= len(nodes) and not any(
            taint["key"].startswith("node.kubernetes.io/")
            for n in nodes
            for taint in n["spec"].get("taints", [])
        )

    def _forgotten(self) -> bool:
        kept = ("muster_pods", "muster_reserved_seats", "muster_held_binds")
        return not any(self.rig.metric(name) for name in kept)

    def _clean(self) -> None:
        for namespace in NAMESPACES:
            for kind in ("jobs", "replicasets", "podgroups", "native", "pods", *LEFTOVERS):
                self._delete_all(_path(kind, namespace))
        self._delete_all("/api/v1/nodes")
        self._delete_all("/api/v1/persistentvolumes")
        self._delete_all(f"/apis/coordination.k8s.io/v1/namespaces/{RIG_NAMESPACE}/leases")
        self.wait(lambda: not self._left(), 60, "the test's objects are gone")

    def _left(self) -> Iterable[Object]:
        pods = [p for namespace in NAMESPACES for p in self.pods(namespace)]
        if pods:
            for namespace in NAMESPACES:
                self._delete_all(_path("pods", namespace))
        return [*pods, *self.cluster.api.items("/api/v1/nodes")]

    def _delete_all(self, path: str) -> None:
        try:
            self.cluster.delete(path, _grace(0))
        except ApiError as error:
            if error.status != 404:
                raise


def phase(pod: Object) -> str:
    """status.phase."""
    return str(pod["status"].get("phase"))


def nomination(pod: Object) -> str | None:
    """status.nominatedNodeName."""
    node: str | None = pod["status"].get("nominatedNodeName")
    return node


def _nominators(pod: Object) -> set[str]:
    """Field managers that own status.nominatedNodeName."""
    fields = pod["metadata"].get("managedFields") or []
    return {f["manager"] for f in fields if "f:nominatedNodeName" in f["fieldsV1"].get("f:status", {})}


def gates(pod: Object) -> list[str]:
    """Names of the scheduling gates."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def refused(pod: Object) -> str:
    """What kube-scheduler said when it last failed to place the pod; empty when it has not tried yet."""
    for condition in pod["status"].get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition["message"])
    return ""


def _label(pod: Object) -> str | None:
    return (pod["metadata"].get("labels") or {}).get(workloads.GROUP_LABEL)


def _native(pod: Object) -> str | None:
    return (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")


def _path(kind: str, namespace: str) -> str:
    prefix = {
        "jobs": "/apis/batch/v1",
        "replicasets": "/apis/apps/v1",
        "podgroups": f"/apis/{workloads.LABEL_API}",
        "native": f"/apis/{workloads.NATIVE_API}",
    }.get(kind, "/api/v1")
    return f"{prefix}/namespaces/{namespace}/{'podgroups' if kind == 'native' else kind}"


def _grace(seconds: int | None) -> Object | None:
    if seconds is None:
        return None
    return {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": seconds,
        "propagationPolicy": "Background",
    }
