# SPDX-License-Identifier: Apache-2.0
"""Leader election, profiles, and what slows gangs down."""

from __future__ import annotations

from typing import Any

import pytest

from app.explain.finding import Evidence
from tests.explain.config.looking import found, seen, shipped, told, writes

# -- election


def election(**change: Any) -> Any:
    raw = shipped()
    raw["leaderElection"] = change
    return raw


def test_without_election_nobody_makes_muster_active() -> None:
    raw = election(leaderElect=False)
    assert told(raw) == [
        "NoElection blocks: leader election is off: nobody holds the Lease that makes Muster active, so no"
        " gang ever gets seats"
    ]
    assert writes(raw) == ["leaderElect: true, resourceName: muster, resourceNamespace: muster-system"]


def test_without_election_replicas_decide_when_muster_is_always_active() -> None:
    cost = (
        "leader election is off: with a second replica, two schedulers and two Musters give out the same"
        " devices"
    )
    raw = election(leaderElect=False)
    assert told(raw, elects=False) == [f"NoElection warns: {cost}"]
    assert told(raw, elects=False, replicas=2) == [f"NoElection blocks: {cost}"]
    assert told(raw, elects=False, replicas=1) == []


@pytest.mark.parametrize(
    "change",
    [{}, {"resourceName": ""}, {"resourceName": "kube-scheduler", "resourceNamespace": "kube-system"}],
)
def test_the_lease_of_the_clusters_own_scheduler(change: Any) -> None:
    raw = election(**change)
    assert told(raw) == [
        "ClusterLease blocks: the Lease is kube-system/kube-scheduler, that of the cluster's own"
        " scheduler: only one of the two can run"
    ]
    (finding,) = found(raw)
    assert [step.command for step in finding.steps if step.command] == [
        "kubectl get lease kube-scheduler -n kube-system -o jsonpath='{.spec.holderIdentity}'"
    ]


def test_a_lease_that_is_not_told_shows_the_default() -> None:
    assert seen(election()) == [
        Evidence("file", "leaderElection.resourceNamespace", "not set; kube-system by default"),
        Evidence("file", "leaderElection.resourceName", "not set; kube-scheduler by default"),
    ]


def test_a_lease_that_muster_does_not_watch() -> None:
    raw = election(resourceName="muster", resourceNamespace="gpu")
    assert told(raw) == [
        "OtherLease blocks: the Lease is gpu/muster, and Muster watches muster-system/muster: Muster never"
        " acts, and no gang gets seats"
    ]
    assert told(raw, namespace="gpu") == []
    assert told(raw, elects=False) == []


# -- profiles


def profile(**change: Any) -> Any:
    raw = shipped()
    raw["profiles"][0].update(change)
    return raw


def test_nobody_serves_pods_of_muster() -> None:
    raw = profile(schedulerName="gpus")
    assert told(raw) == [
        "NoProfile blocks: no profile has schedulerName muster (there is gpus): pods that ask for it are"
        " never tried"
    ]
    assert told(raw, scheduler="gpus") == []


@pytest.mark.parametrize("profiles", [None, [], [{}]])
def test_no_profile_at_all_is_the_default_schedulers(profiles: Any) -> None:
    assert told({**shipped(), "profiles": profiles}) == [
        "NoProfile blocks: no profile has schedulerName muster (there is default-scheduler): pods that ask"
        " for it are never tried",
        "DefaultProfile warns: profiles[0] serves default-scheduler: every pod of the cluster then needs"
        " an answer of Muster",
    ]


def test_more_profiles_through_the_same_extenders() -> None:
    raw = shipped()
    raw["profiles"].append({"schedulerName": "batch"})
    assert told(raw) == [
        "MoreProfiles warns: profiles[1] serves batch through the same extenders: Muster plans no gangs"
        " for its pods"
    ]


@pytest.mark.parametrize("point", ["preEnqueue", "multiPoint"])
@pytest.mark.parametrize("name", ["SchedulingGates", "*"])
def test_gates_that_nobody_looks_at(point: str, name: str) -> None:
    raw = profile(plugins={point: {"disabled": [{"name": name}]}})
    assert (
        "PluginOff warns: profiles[0] switches SchedulingGates off: pods that wait behind a gate are tried"
        " again and again, and the API server refuses to bind them" in told(raw)
    )
    assert Evidence("file", f"profiles[0].plugins.{point}.disabled", name) in seen(raw)


def test_a_plugin_that_is_switched_on_again_or_off_elsewhere_is_on() -> None:
    again = {"disabled": [{"name": "NodeAffinity"}], "enabled": [{"name": "NodeAffinity"}]}
    assert told(profile(plugins={"multiPoint": again})) == []
    assert told(profile(plugins={"filter": again})) == []
    assert told(profile(plugins={"score": {"disabled": [{"name": "*"}]}})) == []


def test_preemption_that_is_off() -> None:
    raw = profile(plugins={"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}})
    assert told(raw) == [
        "PluginOff warns: profiles[0] switches DefaultPreemption off: a pod of high priority evicts nobody"
        " and waits like any other"
    ]


def test_two_gang_implementations() -> None:
    on = {"enabled": [{"name": "Coscheduling"}]}
    raw = profile(plugins={"permit": on, "multiPoint": on})
    assert told(raw) == [
        "TwoGangPlugins warns: profiles[0] enables Coscheduling: two gang implementations hold and reject"
        " the same members"
    ]


def test_another_order_of_the_queue() -> None:
    raw = profile(plugins={"queueSort": {"enabled": [{"name": "Fair"}], "disabled": [{"name": "*"}]}})
    assert told(raw) == [
        "QueueOrder warns: profiles[0] sorts the queue with Fair: pods without a gate come in another"
        " order than Muster plans"
    ]


def fit(kind: str | None, *names: str) -> Any:
    strategy: dict[str, Any] = {"resources": [{"name": name, "weight": 1} for name in names]}
    if kind:
        strategy["type"] = kind
    args = {"scoringStrategy": strategy}
    return profile(pluginConfig=[{"name": "NodeResourcesFit", "args": args}])


@pytest.mark.parametrize("kind", ["LeastAllocated", None])
def test_devices_that_are_spread(kind: str | None) -> None:
    assert told(fit(kind, "cpu", "nvidia.com/gpu")) == [
        "Spreads warns: profiles[0] scores nvidia.com/gpu by LeastAllocated: single pods spread over nodes"
        " that gangs need whole"
    ]


def test_packing_or_no_devices_is_fine() -> None:
    assert told(fit("MostAllocated", "nvidia.com/gpu")) == told(fit("LeastAllocated", "cpu")) == []


# -- throughput


def test_the_default_limits_are_low() -> None:
    raw = {**shipped(), "clientConnection": {}}
    assert told(raw) == [
        "LowQps warns: clientConnection.qps is 50: a gang of hundreds starts at 50 requests a second at most"
    ]
    assert seen(raw) == [Evidence("file", "clientConnection.qps", "not set; 50 by default")]


def test_a_burst_below_qps() -> None:
    raw = {**shipped(), "clientConnection": {"qps": 500}}
    assert told(raw) == [
        "LowBurst warns: clientConnection.burst is 100, below qps (500): a gang cannot even use what qps"
        " allows"
    ]
    assert writes(raw) == ["burst: 1000"]


def test_no_limit_at_all_is_fine() -> None:
    assert told({**shipped(), "clientConnection": {"qps": -1}}) == []


def test_backoff() -> None:
    raw = shipped()
    del raw["podMaxBackoffSeconds"]
    assert told(raw) == [
        "Backoff warns: pods pause up to 10 s after a failed attempt: devices stay idle while their pods"
        " sleep"
    ]


def test_all_nodes_and_a_part_of_them() -> None:
    assert told({**shipped(), "percentageOfNodesToScore": 100}) == [
        "AllNodes warns: percentageOfNodesToScore is 100: every pod is tried on every node, which costs"
        " most of the throughput when they are many"
    ]
    assert told({**shipped(), "percentageOfNodesToScore": 10}) == [
        "Sampling warns: percentageOfNodesToScore is 10: kube-scheduler offers Muster a part of the nodes,"
        " which need not hold a pod's only room"
    ]
    assert told({**shipped(), "percentageOfNodesToScore": 0}) == []


def test_the_share_of_the_profile_wins() -> None:
    raw = profile(percentageOfNodesToScore=10)
    raw["percentageOfNodesToScore"] = 100
    assert told(raw) == [
        "Sampling warns: profiles[0].percentageOfNodesToScore is 10: kube-scheduler offers Muster a part"
        " of the nodes, which need not hold a pod's only room"
    ]


def test_adaptive_sampling_counts_where_seats_are_not_nominated() -> None:
    assert told(shipped(), nominate_from_nodes=1000) == [
        "Sampling warns: percentageOfNodesToScore is adaptive: kube-scheduler offers Muster a part of the"
        " nodes, which need not hold a pod's only room"
    ]
    assert told({**shipped(), "percentageOfNodesToScore": 0}, nominate_from_nodes=1000) != []


def test_few_workers_are_a_note() -> None:
    assert told({**shipped(), "parallelism": 4}) == [
        "Parallelism note: parallelism is 4, below the default of 16: filtering nodes takes longer"
    ]
    assert told({**shipped(), "parallelism": 32}) == []


def test_a_weight_that_is_outvoted() -> None:
    raw = shipped()
    raw["extenders"][0]["weight"] = 3
    assert told(raw) == [
        "LowWeight warns: extenders[0] has weight 3: the default plugins outvote Muster, and single pods"
        " spread over GPU nodes"
    ]
