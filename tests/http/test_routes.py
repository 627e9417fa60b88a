# SPDX-License-Identifier: Apache-2.0
"""The routes: shapes of the replies, health, metrics, and the embedded cluster's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from app import __version__
from tests.builders import (
    Json,
    bind_body,
    filter_body,
    full_filter_body,
    make_group,
    make_node,
    make_pod,
    preempt_body,
)
from tests.http.door import Door, names

POD = make_pod("p").gpus(1)
MEMBERS = [make_pod(name).gpus(1).gang("g") for name in "ab"]
VERBS = ("filter", "prioritize", "bind", "preempt")
DOCS = Path(__file__).parents[2] / "docs"


def lower(body: bytes) -> bytes:
    return orjson.dumps({key.lower(): value for key, value in orjson.loads(body).items()})


# -- the verbs


def test_filter_in_name_mode(door: Door) -> None:
    assert door.post("/filter", filter_body(MEMBERS[0], ["n1", "n2"])).json == {
        "Nodes": None,
        "NodeNames": ["n1"],
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_filter_in_full_node_mode(door: Door) -> None:
    nodes = [make_node("n1").gpus(4), make_node("n2").gpus(4)]
    reply = door.post("/filter", full_filter_body(MEMBERS[0], nodes)).json
    assert (reply["Nodes"]["items"], reply["NodeNames"]) == ([nodes[0].build()], None)


def test_keys_in_lower_case_are_understood_at_every_verb(door: Door) -> None:
    assert names(door.post("/filter", lower(filter_body(MEMBERS[0], ["n1", "n2"])))) == ["n1"]
    assert door.post("/prioritize", lower(filter_body(POD, ["n1"]))).json[0]["Host"] == "n1"
    victims = lower(preempt_body(POD, {"n1": [make_pod("v")]}))
    assert set(door.post("/preempt", victims).json["NodeNameToMetaVictims"]) == {"n1"}
    assert door.post("/bind", lower(bind_body(POD, "n2"))).json == {"Error": ""}


def test_bind_answers_with_an_error_text_or_an_empty_one(door: Door) -> None:
    stranger = make_pod("nobody").gpus(1)
    assert "is not known" in door.post("/bind", bind_body(stranger, "n1")).json["Error"]
    assert "node n9 is not known" in door.post("/bind", bind_body(POD, "n9")).json["Error"]
    good = door.post("/bind", bind_body(POD, "n2"))
    assert (good.status, good.json) == (200, {"Error": ""})
    assert door.world.node_of("p") == "n2"


def test_a_bind_that_comes_again_succeeds_again_for_the_same_pod_and_node_only(door: Door) -> None:
    assert door.post("/bind", bind_body(POD, "n2")).json == {"Error": ""}
    assert door.post("/bind", bind_body(POD, "n2")).json == {"Error": ""}, "the first reply was lost"
    assert "is bound to n2 already" in door.post("/bind", bind_body(POD, "n1")).json["Error"]
    assert "is not known" in door.post("/bind", bind_body(POD.uid("other"), "n2")).json["Error"]


def test_a_bind_to_a_node_without_room_does_not_bind(door: Door) -> None:
    door.world.put(make_pod("full").gpus(4).on("n2"))
    assert "no room" in door.post("/bind", bind_body(POD, "n2")).json["Error"]
    large = make_pod("large").gpus(3)
    door.world.put(large)
    assert "beside what is reserved" in door.post("/bind", bind_body(large, "n1")).json["Error"]
    assert door.world.node_of("large") is None


def test_a_bind_of_a_member_without_a_seat_says_why(door: Door) -> None:
    door.world.put(make_group("h", 2))
    door.world.put(make_pod("h0").gpus(1).gang("h"))
    error = door.post("/bind", bind_body(make_pod("h0"), "n1")).json["Error"]
    assert error == "pod default/h0 has no seat: gang default/h has 1 of 2 members"
    assert "has its seat on n1, not on n2" in door.post("/bind", bind_body(MEMBERS[0], "n2")).json["Error"]


def test_a_bind_waits_for_the_gang_and_leaves_when_its_caller_hangs_up(door: Door) -> None:
    (first, gone), (second, _) = (door.start("/bind", bind_body(pod, "n1")) for pod in (MEMBERS[0], POD))
    assert (first.done(), second.result().json) == (False, {"Error": ""})
    gone.set()
    door.world.idle()
    assert first.done()
    assert len(door.world.service.bind.barrier) == 0
    again, _ = door.start("/bind", bind_body(MEMBERS[0], "n1"))
    other, _ = door.start("/bind", bind_body(MEMBERS[1], "n1"))
    assert [again.result().json, other.result().json] == [{"Error": ""}] * 2


def test_a_body_comes_in_parts(door: Door) -> None:
    long = POD.set("metadata.annotations", {"notes": "x" * 200_000})
    assert names(door.post("/filter", filter_body(long, ["n1", "n2"]))) == ["n1", "n2"]


@pytest.mark.parametrize("verb", VERBS)
def test_a_caller_that_hangs_up_before_the_end_of_its_body_is_not_answered(door: Door, verb: str) -> None:
    whole = filter_body(MEMBERS[0], ["n1"]) if verb != "bind" else bind_body(MEMBERS[0], "n1")
    coming: list[dict[str, Any]] = [
        {"type": "http.request", "body": whole, "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return coming.pop(0)

    async def send(message: Any) -> None:
        raise AssertionError(message)

    door.world.run(door.app({"type": "http", "path": f"/{verb}", "method": "POST"}, receive, send))
    assert not coming
    assert len(door.world.service.bind.barrier) == 0, "half a call holds nothing"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("method", ["GET", "PUT", "HEAD"])
def test_a_verb_is_posted(door: Door, verb: str, method: str) -> None:
    reply = door.call(method, f"/{verb}", bind_body(POD, "n2"))
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    assert door.world.node_of("p") is None


@pytest.mark.parametrize("path", ["/filters", "/filter/more", "/FILTER"])
def test_no_other_path_is_a_verb(door: Door, path: str) -> None:
    assert door.call("POST", path, filter_body(POD, ["n1"])).status == 404


# -- health


def test_ready_or_not(door: Door) -> None:
    assert (door.get("/readyz").status, door.get("/readyz").body) == (200, b"ok")
    door.world.problems = ["pods are not listed yet", "nodes were last heard of 200 s ago"]
    reply = door.get("/readyz")
    assert reply.status == 503
    assert reply.body.decode().splitlines() == door.world.problems
    assert door.get("/healthz").status == 200, "a restart would not help"
    assert "pods are not listed yet" in door.post("/filter", filter_body(POD, ["n1"])).json["Error"]
    assert "pods are not listed yet" in door.post("/bind", bind_body(POD, "n1")).json["Error"]


def test_a_passive_replica_is_ready_and_answers_calls_with_an_error(door: Door) -> None:
    door.world.active = False
    door.world.tick()
    assert door.get("/readyz").status == 200, "both replicas can be rolled"
    assert "not active" in door.post("/filter", filter_body(POD, ["n1"])).json["Error"]
    assert "not active" in door.post("/bind", bind_body(POD, "n1")).json["Error"]
    assert door.world.node_of("p") is None


def test_version(door: Door) -> None:
    assert door.get("/version").json == {"version": __version__}


# -- metrics

EXPORTED = {
    "muster_active", "muster_gangs", "muster_held_binds", "muster_loop_stall_seconds", "muster_nodes",
    "muster_pods", "muster_ready", "muster_reserved_seats", "muster_verb_duration_seconds",
}  # fmt: skip


def exported(door: Door) -> dict[str, float]:
    """Sample → value."""
    reply = door.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain")
    lines = [line for line in reply.body.decode().splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in (line.rpartition(" ") for line in lines)}


def test_metrics_tell_the_state(door: Door) -> None:
    samples = exported(door)
    assert samples['muster_gangs{state="planned"}'] == 1
    assert samples["muster_ready"] == samples["muster_active"] == 1
    assert (samples["muster_reserved_seats"], samples["muster_held_binds"]) == (2, 0)
    assert (samples["muster_nodes"], samples["muster_pods"]) == (2, 3)
    door.start("/bind", bind_body(MEMBERS[0], "n1"))
    samples = exported(door)
    assert samples['muster_gangs{state="gathering"}'] == samples["muster_held_binds"] == 1
    door.world.problems = ["stale"]
    assert exported(door)["muster_ready"] == 0


def test_every_call_is_timed(door: Door) -> None:
    for _ in range(3):
        door.post("/filter", filter_body(POD, ["n1"]))
    door.post("/bind", b"junk")
    samples = exported(door)
    assert samples['muster_verb_duration_seconds_count{verb="filter"}'] == 3
    assert samples['muster_verb_duration_seconds_count{verb="bind"}'] == 1


def test_metrics_have_help_and_no_names_of_pods_nodes_or_gangs_in_labels(door: Door) -> None:
    for verb in ("filter", "prioritize"):
        door.post(f"/{verb}", filter_body(POD, ["n1"]))
    text = door.get("/metrics").body.decode()
    told = set(re.findall(r"^# HELP (\w+) \S", text, re.M))
    assert {name for name in told if not name.endswith("_created")} == EXPORTED
    labels = dict.fromkeys(re.findall(r'(\w+)="', text))
    assert set(labels) == {"state", "verb", "clock", "le"}
    values = set(re.findall(r'(?:state|verb)="([^"]*)"', text))
    assert values <= {"planned", "running", "waiting", "filter", "prioritize", "bind", "preempt"}


def test_every_metric_is_documented() -> None:
    text = (DOCS / "metrics.md").read_text()
    assert [name for name in EXPORTED if name not in text] == []


# -- the embedded cluster


def item(door: Door, kind: str, name: str) -> Json:
    items: list[Json] = door.get("/snapshot").json["items"]
    return next(one for one in items if (one["kind"], one["metadata"]["name"]) == (kind, name))


def test_the_snapshot_shows_what_happened(door: Door) -> None:
    top: Any = door.get("/snapshot").json
    assert (top["apiVersion"], top["kind"]) == ("v1", "List")
    assert "schedulingGates" not in item(door, "Pod", "a")["spec"], "its gate was lifted"
    door.post("/bind", bind_body(POD, "n2"))
    assert item(door, "Pod", "p")["spec"]["nodeName"] == "n2"
    conditions = item(door, "Pod", "p")["status"]["conditions"]
    assert conditions == [{"type": "PodScheduled", "status": "True"}]


def test_events_change_the_cluster_and_the_service_sees_them(door: Door) -> None:
    full = make_pod("full").gpus(4).on("n2")
    reply = door.post("/snapshot/events", [{"type": "ADDED", "object": full.build()}])
    assert (reply.status, reply.json) == (200, {"applied": 1})
    assert names(door.post("/filter", filter_body(POD, ["n1", "n2"]))) == ["n1"]
    door.post("/snapshot/events", [{"type": "DELETED", "object": full.build()}])
    assert names(door.post("/filter", filter_body(POD, ["n1", "n2"]))) == ["n1", "n2"]


def test_a_snapshot_can_be_served_again(door: Door) -> None:
    again = door.get("/snapshot").json
    with Door() as other:
        events = [{"type": "ADDED", "object": one} for one in again["items"]]
        assert other.post("/snapshot/events", events).json == {"applied": len(events)}
        assert {one["metadata"]["name"] for one in other.get("/snapshot").json["items"]} >= {
            "n1",
            "a",
            "p",
            "g",
        }
