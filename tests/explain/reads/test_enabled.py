# SPDX-License-Identifier: Apache-2.0
"""Read 3, Muster itself: the namespace, the policy, the Lease."""

from __future__ import annotations

from app.explain.facts import Unseen
from app.explain.finding import Evidence, Weight
from app.explain.reads.enabled import namespace_not_enabled, not_taken_over, scheduler_not_seen
from tests.builders import make_group, make_pod
from tests.explain.looking import found, texts
from tests.explain.workloads import NOW, lease, namespace, plain

POLICY = plain("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "muster", "")
GROUP = make_group("train", 2)
CAUGHT = make_pod("w0").gang("train").gated()
MISSED = make_pod("w0").gang("train").scheduler("default-scheduler")
BARE = make_pod("w0").gang("train")


def test_members_in_a_namespace_that_is_not_switched_on() -> None:
    (finding,) = found(namespace_not_enabled, "pod/w0", GROUP, MISSED, namespace())
    assert finding.text == (
        "the pods are members of a gang, and Muster does not see to namespace default: no muster.dev/enabled"
    )
    assert finding.evidence == (
        Evidence("namespace/default", ".metadata.labels['muster.dev/enabled']", "absent"),
    )
    assert texts(found(namespace_not_enabled, "pod/w0", GROUP, MISSED, namespace(enabled="true"))) == [
        "the pods are members of a gang, and Muster does not see to namespace default:"
        " the label muster.dev/enabled is true, which is neither gangs nor gpus"
    ]


def test_a_namespace_that_is_switched_on_or_was_not_read_is_not_blamed() -> None:
    assert not found(namespace_not_enabled, "pod/w0", GROUP, MISSED, namespace(enabled="gangs"))
    assert not found(namespace_not_enabled, "pod/w0", GROUP, MISSED)
    assert not found(namespace_not_enabled, "pod/w0", GROUP, CAUGHT, namespace())
    assert not found(namespace_not_enabled, "pod/w0", MISSED.set("metadata.labels", {}), namespace())


def test_pods_that_the_policy_missed() -> None:
    (finding,) = found(not_taken_over, "pod/w0", GROUP, MISSED, namespace(enabled="gangs"), POLICY)
    assert (finding.weight, finding.text) == (
        Weight.WARNS,
        "namespace default is switched on (gangs), and 1 pod waits without schedulerName muster:"
        " older than the label or the policy",
    )
    (finding,) = found(not_taken_over, "pod/w0", GROUP, BARE, namespace(enabled="gpus"), POLICY)
    assert (finding.weight, finding.text) == (
        Weight.NOTE,
        "namespace default is switched on (gpus), and 1 pod waits without gate muster.dev/gang:"
        " older than the label or the policy, or had seats before",
    )


def test_the_policy_is_called_absent_only_if_policies_were_read() -> None:
    on = namespace(enabled="gangs")
    assert (
        "no MutatingAdmissionPolicy muster was found" in found(not_taken_over, "pod/w0", MISSED, on)[0].text
    )
    unseen = (Unseen("MutatingAdmissionPolicy.admissionregistration.k8s.io", "forbidden"),)
    assert "older than" in found(not_taken_over, "pod/w0", MISSED, on, unseen=unseen)[0].text


def test_pods_that_the_policy_took_over_or_leaves_alone() -> None:
    assert not found(not_taken_over, "pod/w0", CAUGHT, namespace(enabled="gangs"))
    assert not found(not_taken_over, "pod/w0", MISSED, namespace())
    assert not found(not_taken_over, "pod/w0", MISSED.scheduler("batch"), namespace(enabled="gangs"))
    burst = BARE.set("metadata.annotations", {"muster.dev/gate": "none"})
    assert not found(not_taken_over, "pod/w0", GROUP, burst, namespace(enabled="gangs"))
    assert found(not_taken_over, "pod/w0", burst.scheduler("default-scheduler"), namespace(enabled="gangs"))
    single = make_pod("w0").gpus(1).scheduler("default-scheduler")
    assert not found(not_taken_over, "pod/w0", single, namespace(enabled="gangs"))
    assert found(not_taken_over, "pod/w0", single, namespace(enabled="gpus"))


def test_nobody_renews_the_lease() -> None:
    stale, fresh = (
        lease("muster", at) for at in ("2026-01-01T00:50:00.000000Z", "2026-01-01T00:59:55.000000Z")
    )
    (finding,) = found(scheduler_not_seen, "pod/w0", CAUGHT, stale, now=NOW)
    assert finding.text == "1 pod waits for scheduler muster, and its Lease was last renewed 10m ago"
    assert finding.evidence == (
        Evidence("lease/muster-system/muster", ".spec.renewTime", "2026-01-01T00:50:00.000000Z"),
    )
    assert not found(scheduler_not_seen, "pod/w0", CAUGHT, fresh, now=NOW)
    assert not found(scheduler_not_seen, "pod/w0", CAUGHT, stale), "without the present nothing is late"
    assert not found(scheduler_not_seen, "pod/w0", MISSED, stale, now=NOW)


def test_a_missing_lease_counts_only_where_leases_were_read() -> None:
    others = lease("kube-scheduler", "2026-01-01T00:59:55Z", "kube-system")
    assert texts(found(scheduler_not_seen, "pod/w0", CAUGHT, others, now=NOW)) == [
        "1 pod waits for scheduler muster, and no Lease muster was found"
    ]
    assert not found(scheduler_not_seen, "pod/w0", CAUGHT, now=NOW)
    some = {"now": NOW, "namespaces": ("default", "kube-system")}
    assert not found(scheduler_not_seen, "pod/w0", CAUGHT, others, **some), "it may be elsewhere"
    unseen = (Unseen("Lease.coordination.k8s.io", "forbidden"),)
    assert not found(scheduler_not_seen, "pod/w0", CAUGHT, others, now=NOW, unseen=unseen)
