# SPDX-License-Identifier: Apache-2.0
"""The embedded cluster does with our writes what the API server would do, and tells what a watch would."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from app.domain.changes import Change
from app.domain.errors import InputError
from app.domain.gang import PodGroup
from app.domain.ids import NodeName, PodUid
from app.domain.node import Node
from app.domain.plan import PodRef
from app.domain.pod import Pod
from app.simulate.cluster import SnapshotCluster
from tests.builders import Builder, Json, group_of, make_group, make_node, make_pod, seen

T = TypeVar("T")
A = PodRef("default", "a", PodUid("uid-a"))
STRANGER = PodRef("default", "a", PodUid("another"))
N1, N2 = NodeName("n1"), NodeName("n2")


class Stage:
    """A cluster and what its watch has told."""

    def __init__(self, *builders: Builder) -> None:
        self.cluster = SnapshotCluster([builder.build() for builder in builders])
        self.told: list[Change] = []
        self.cluster.deliver = self.told.extend

    def pod(self, name: str = "a") -> Json:
        found: list[Json] = [
            one for one in self.cluster.as_list()["items"] if one["metadata"]["name"] == name
        ]
        return found[0]

    def events(self, *events: tuple[str, Builder]) -> int:
        return self.cluster.apply_events([{"type": kind, "object": one.build()} for kind, one in events])

    def take(self) -> list[tuple[str, bool]]:
        """(UID or name, gone) of each change since the last time."""
        told, self.told[:] = list(self.told), []
        return [(_name(change), change.gone) for change in told]


def _name(change: Change) -> str:
    match change.value:
        case Pod() | PodGroup():
            return change.value.uid
        case Node():
            return change.value.name
    raise AssertionError(change)


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


# -- loading


def test_the_list_is_told_as_a_first_list_and_shown_as_it_was() -> None:
    builders = [make_node("n1"), make_pod("a"), make_group("g", 2), make_pod("c").set("kind", "ConfigMap")]
    stage = Stage(*builders)
    assert stage.cluster.initial() == [seen(builder) for builder in builders[:3]]
    assert stage.cluster.as_list()["items"] == [builder.build() for builder in builders]


def test_an_unusable_item_is_named() -> None:
    bad = make_pod("x").requests({"nvidia.com/gpu": "0.5"})
    with pytest.raises(InputError, match=r"items\[1\]: pod default/x: spec\.containers\[0\]"):
        Stage(make_node("n1"), bad)


def test_equal_names_in_other_namespaces_and_groups_are_other_objects() -> None:
    stage = Stage(
        make_pod("a"), make_pod("a", "other"), make_group("a", 1), make_group("a", 1).native(), make_node("a")
    )
    assert len(stage.cluster.as_list()["items"]) == 5


# -- events


def test_events_are_told_one_by_one_in_order() -> None:
    stage = Stage(make_node("n1"))
    assert (
        stage.events(
            ("ADDED", make_pod("a")), ("MODIFIED", make_node("n1").gpus(1)), ("DELETED", make_pod("a"))
        )
        == 3
    )
    assert stage.take() == [("uid-a", False), ("n1", False), ("uid-a", True)]


def test_an_object_created_again_is_told_as_gone_first() -> None:
    stage = Stage(make_pod("a"))
    stage.events(("MODIFIED", make_pod("a").uid("second")))
    assert stage.take() == [("uid-a", True), ("second", False)]


def test_deleting_what_is_not_there_tells_nothing() -> None:
    stage = Stage(make_pod("a"))
    stage.events(("DELETED", make_pod("b")), ("DELETED", make_pod("a").uid("former")))
    assert stage.take() == []
    assert stage.pod()["metadata"]["uid"] == "uid-a"


def test_one_bad_event_and_none_is_applied() -> None:
    stage = Stage(make_pod("a"))
    with pytest.raises(InputError, match=r"^\[1\]\.object: "):
        stage.events(("DELETED", make_pod("a")), ("ADDED", make_node("x").amount("nvidia.com/gpu", "NaN")))
    assert (stage.take(), stage.pod()["kind"]) == ([], "Pod")


def test_the_cluster_keeps_its_own_copy_of_an_event() -> None:
    stage = Stage()
    obj = make_pod("a").build()
    stage.cluster.apply_events([{"type": "ADDED", "object": obj}])
    obj["metadata"]["labels"]["changed"] = "later"
    assert stage.pod()["metadata"]["labels"] == {}


# -- bindings


def test_a_binding_puts_the_pod_on_the_node_and_is_told() -> None:
    stage = Stage(make_pod("a").attempted("no"))
    assert run(stage.cluster.bind(A, N1)).ok
    pod = stage.pod()
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["status"]["conditions"] == [{"type": "PodScheduled", "status": "True"}]
    assert stage.take() == [("uid-a", False)]


def test_a_binding_can_be_repeated_but_not_changed() -> None:
    stage = Stage(make_pod("a"))
    run(stage.cluster.bind(A, N1))
    assert run(stage.cluster.bind(A, N1)).ok
    assert run(stage.cluster.bind(A, N2)).error == "pod is bound to n1 already"


@pytest.mark.parametrize("write", ["bind", "nominate", "lift_gate"])
def test_a_pod_of_the_same_name_is_not_written_to(write: str) -> None:
    stage = Stage(make_pod("a").gated())
    before = stage.cluster.as_list()
    arguments = (STRANGER,) if write == "lift_gate" else (STRANGER, N1)
    outcome = run(getattr(stage.cluster, write)(*arguments))
    assert outcome.gone and outcome.error
    assert (stage.cluster.as_list(), stage.take()) == (before, [])


# -- patches


def test_a_nomination_carries_our_manager_and_goes_again() -> None:
    stage = Stage(make_pod("a"))
    run(stage.cluster.nominate(A, N1))
    assert stage.pod()["status"]["nominatedNodeName"] == "n1"
    (change,) = stage.told
    assert isinstance(change.value, Pod) and change.value.nominated_by_us
    run(stage.cluster.nominate(A, None))
    assert "nominatedNodeName" not in stage.pod()["status"]
    assert stage.pod()["metadata"]["managedFields"] == []


def test_entries_of_other_managers_stay() -> None:
    stage = Stage(make_pod("a").managed("kubelet", {"f:status": {}}))
    run(stage.cluster.nominate(A, N1))
    run(stage.cluster.nominate(A, N2))
    managers = [entry["manager"] for entry in stage.pod()["metadata"]["managedFields"]]
    assert managers == ["kubelet", "muster"]


def test_a_nomination_of_a_bound_pod_has_no_effect_and_is_fine() -> None:
    stage = Stage(make_pod("a").on("n1"))
    assert run(stage.cluster.nominate(A, N2)).ok
    assert "nominatedNodeName" not in stage.pod()["status"]


def test_only_our_gate_is_lifted() -> None:
    stage = Stage(make_pod("a").gate("example.com/quota").gated())
    assert run(stage.cluster.lift_gate(A)).ok
    assert stage.pod()["spec"]["schedulingGates"] == [{"name": "example.com/quota"}]
    stage = Stage(make_pod("a").gated())
    run(stage.cluster.lift_gate(A))
    assert "schedulingGates" not in stage.pod()["spec"], "a lifted gate shows as its absence"


def test_every_write_has_a_newer_resource_version() -> None:
    stage = Stage(make_pod("a").gated())
    versions = []
    for work in (stage.cluster.nominate(A, N1), stage.cluster.lift_gate(A), stage.cluster.bind(A, N1)):
        run(work)
        versions.append(int(stage.pod()["metadata"]["resourceVersion"]))
    assert versions == sorted(set(versions))


# -- what people see


def test_the_latest_event_of_a_subject_and_reason_is_shown() -> None:
    stage = Stage(make_pod("a"))
    for message in ("first", "second"):
        stage.cluster.event(A, reason="GangBusy", message=message)
    stage.cluster.event(group_of(make_group("g", 1)), reason="GangMinimum", message="odd", warning=True)
    events = [one for one in stage.cluster.as_list()["items"] if one["kind"] == "Event"]
    assert [(e["involvedObject"]["kind"], e["type"], e["message"]) for e in events] == [
        ("Pod", "Normal", "second"),
        ("PodGroup", "Warning", "odd"),
    ]
    assert events[1]["involvedObject"]["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"


def test_counts_are_shown_on_the_pod_group_that_is_there() -> None:
    stage = Stage(make_group("g", 1))
    stage.cluster.counts(group_of(make_group("g", 1)), {"running": 2})
    stage.cluster.counts(group_of(make_group("gone", 1)), {"running": 2})
    assert stage.pod("g")["status"] == {"running": 2}


def test_there_is_no_other_replica() -> None:
    assert Stage().cluster.active
    assert run(Stage().cluster.confirm())
