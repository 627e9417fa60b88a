# SPDX-License-Identifier: Apache-2.0
"""Leader election: one scheduler acts, and the Muster beside it knows that it is the one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.explain.config.configuration import Configuration
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit

CLUSTER_LEASE: Final = ("kube-system", "kube-scheduler")
"""kube-scheduler's defaults: the Lease of the cluster's own scheduler."""


def _elects(config: Configuration) -> bool:
    return bool(config.value("leaderElection", "leaderElect", default=True))


def _lease(config: Configuration) -> tuple[str, str]:
    """Namespace and name; an empty one means the default."""
    fields = ("resourceNamespace", "resourceName")
    found = (config.value("leaderElection", field, default="") for field in fields)
    namespace, name = (given or usual for given, usual in zip(found, CLUSTER_LEASE, strict=True))
    return namespace, name


def _seen(config: Configuration) -> tuple[Evidence, ...]:
    pairs = zip(("resourceNamespace", "resourceName"), CLUSTER_LEASE, strict=True)
    return tuple(config.saw("leaderElection", field, default=f"{usual} by default") for field, usual in pairs)


@finding(
    "NoElection",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="leader election is off: {cost}",
    meaning=(
        "Muster is active while the scheduler beside it holds the Lease, so that of several replicas one"
        " alone plans and binds. Without leader election nobody holds it: no Muster acts (active: lease),"
        " or every one does (active: always), and two of them give the same devices to two gangs."
    ),
    decide=("leaderElect: true, resourceName: {lease}, resourceNamespace: {namespace}",),
)
def no_election(config: Configuration) -> Iterable[Hit]:
    """No election, unless Muster was told so and there is one replica."""
    if _elects(config):
        return
    weight, cost = (
        Weight.BLOCKS,
        "nobody holds the Lease that makes Muster active, so no gang ever gets seats",
    )
    if not config.muster.elects:
        if config.replicas == 1:
            return
        weight = Weight.WARNS if config.replicas is None else Weight.BLOCKS
        cost = "with a second replica, two schedulers and two Musters give out the same devices"
    seen = config.saw("leaderElection", "leaderElect")
    yield hit(seen, weight=weight, cost=cost, lease=config.muster.lease, namespace=config.muster.namespace)


@finding(
    "ClusterLease",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="the Lease is {found}, that of the cluster's own scheduler: only one of the two can run",
    meaning=(
        "kube-scheduler's default Lease is kube-system/kube-scheduler. A second scheduler with that Lease"
        " waits for ever behind the cluster's, or takes its place, and then pods of the default scheduler"
        " are placed by nobody."
    ),
    confirm=("kubectl get lease kube-scheduler -n kube-system -o jsonpath='{{.spec.holderIdentity}}'",),
    decide=("resourceName: {lease}, resourceNamespace: {namespace}",),
)
def cluster_lease(config: Configuration) -> Iterable[Hit]:
    """The default Lease."""
    if _elects(config) and _lease(config) == CLUSTER_LEASE:
        yield hit(
            *_seen(config),
            found="/".join(CLUSTER_LEASE),
            lease=config.muster.lease,
            namespace=config.muster.namespace,
        )


@finding(
    "OtherLease",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence=(
        "the Lease is {found}, and Muster watches {namespace}/{lease}: Muster never acts, and no gang gets"
        " seats"
    ),
    meaning=(
        "Muster learns from the Lease whether its scheduler is the one that acts. The name and the"
        " namespace must be those of its settings lease and namespace (MUSTER_LEASE, MUSTER_NAMESPACE)."
    ),
    decide=(
        "resourceName: {lease}, resourceNamespace: {namespace}; or Muster's settings, then tell this"
        " command too",
    ),
)
def other_lease(config: Configuration) -> Iterable[Hit]:
    """A Lease that neither Muster nor the cluster's scheduler uses."""
    wanted, found = (config.muster.namespace, config.muster.lease), _lease(config)
    if _elects(config) and config.muster.elects and found not in (wanted, CLUSTER_LEASE):
        yield hit(*_seen(config), found="/".join(found), namespace=wanted[0], lease=wanted[1])


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (no_election, cluster_lease, other_lease)
