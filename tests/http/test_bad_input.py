# SPDX-License-Identifier: Apache-2.0
"""Whatever comes in: HTTP 200 and an Error that names the field, no seat changes, and the service lives."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.builders import Builder, Json, PodBuilder, bind_body, filter_body, make_group, make_node, make_pod
from tests.http.door import Door, Reply, names

POD = make_pod("p").gpus(1)
MEMBER = make_pod("a").gpus(1).gang("g")
VERBS = ("filter", "prioritize", "bind", "preempt")

JUNK = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"{", id="cut off"),
    pytest.param(b"GET / HTTP/1.1", id="no JSON"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"[{}]", id="a list of objects"),
    pytest.param(b"null", id="null"),
    pytest.param(b"7", id="a number"),
    pytest.param(b"{}", id="empty object"),
    pytest.param(b"\xff\xfe\x00", id="bytes that are no text"),
    pytest.param(b'{"Pod":null,"NodeNames":["n1"]}', id="null pod"),
    pytest.param(b'{"Pod":{"metadata":null,"spec":null},"NodeNames":["n1"]}', id="pod of nulls"),
    pytest.param(b'{"Pod":[],"NodeNames":["n1"]}', id="pod as a list"),
    pytest.param(b'{"Pod":{"metadata":{"name":"x","uid":7}},"NodeNames":["n1"]}', id="a number for a UID"),
    pytest.param(b'{"Pod":{"metadata":{"name":"x"}},"NodeNames":["n1"]}', id="no UID"),
    pytest.param(b'{"PodName":{},"PodUID":[],"Node":1}', id="objects for names"),
    pytest.param(b'{"PodName":"p","PodNamespace":"default","PodUID":"uid-p"}', id="no node"),
    pytest.param(b"[" * 100_000, id="nested without end"),
]


def judge(verb: str, reply: Reply) -> None:
    """The shape that kube-scheduler decodes, with nothing granted."""
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    match verb:
        case "filter":
            assert reply.json["NodeNames"] == []
            assert (reply.json["FailedNodes"], reply.json["FailedAndUnresolvableNodes"]) == ({}, {})
            assert reply.json["Error"].startswith("filter: ")
        case "bind":
            assert set(reply.json) == {"Error"} and reply.json["Error"]
        case "prioritize":
            assert reply.json == []
        case "preempt":
            assert reply.json == {"NodeNameToMetaVictims": {}}


def lives(door: Door) -> None:
    """Nothing has changed, and good calls go on."""
    assert door.reserved == (2, 2)
    assert names(door.post("/filter", filter_body(POD, ["n1", "n2"]))) == ["n1", "n2"]
    assert names(door.post("/filter", filter_body(MEMBER, ["n1", "n2"]))) == ["n1"]
    assert door.get("/healthz").status == 200


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("body", JUNK)
def test_a_body_that_cannot_be_used(door: Door, verb: str, body: bytes) -> None:
    judge(verb, door.post(f"/{verb}", body))
    lives(door)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"NodeNames": ["n1"]}, "Pod: is missing", id="no Pod"),
        pytest.param({"Pod": None, "NodeNames": ["n1"]}, "Pod: is missing", id="null Pod"),
        pytest.param({"Pod": POD.build()}, "NodeNames: neither Nodes nor NodeNames is set", id="no nodes"),
        pytest.param(
            {"Pod": POD.build(), "Nodes": None, "NodeNames": None}, "NodeNames: neither", id="null nodes"
        ),
        pytest.param({"Pod": POD.build(), "NodeNames": [1]}, "NodeNames: ", id="a number for a node"),
        pytest.param(
            {"Pod": POD.build(), "Nodes": {"items": [{}]}}, "Nodes.items: ", id="a node without a name"
        ),
        pytest.param(
            {"Pod": POD.set("metadata.uid", None).build(), "NodeNames": []},
            "metadata.uid",
            id="a pod without UID",
        ),
        pytest.param(
            {"Pod": {**POD.build(), "spec": 5}, "NodeNames": ["n1"]}, "spec", id="a number for a spec"
        ),
    ],
)
def test_filter_names_the_field(door: Door, body: Json, field: str) -> None:
    reply = door.post("/filter", body)
    judge("filter", reply)
    assert field in reply.json["Error"]
    lives(door)


@pytest.mark.parametrize("field", ["PodName", "PodUID", "Node"])
@pytest.mark.parametrize("value", ["", None], ids=["empty", "absent"])
def test_bind_names_the_field(door: Door, field: str, value: str | None) -> None:
    body: dict[str, Any] = orjson.loads(bind_body(POD, "n1"))
    if value is None:
        del body[field]
    else:
        body[field] = value
    assert door.post("/bind", body).json == {"Error": f"bind: {field}: is empty"}
    lives(door)


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("NaN", "'NaN' is not a Kubernetes quantity"),
        ("Infinity", "'Infinity' is not a Kubernetes quantity"),
        ("1_000", "'1_000' is not a Kubernetes quantity"),
        ("1 Gi", "'1 Gi' is not a Kubernetes quantity"),
        ("", "'' is not a Kubernetes quantity"),
        ("0.5", "must be a whole number"),
        ("500m", "must be a whole number"),
        ("-1", "must not be negative"),
        (True, "'True' is not a Kubernetes quantity"),
        ([], "is not a Kubernetes quantity"),
    ],
)
@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
def test_a_quantity_of_devices_that_is_none(door: Door, verb: str, quantity: object, said: str) -> None:
    pod = make_pod("x").requests({"nvidia.com/gpu": quantity})
    reply = door.post(f"/{verb}", filter_body(pod, ["n1"]))
    judge(verb, reply)
    if verb == "filter":
        assert "pod default/x: spec.containers[0].resources.requests[nvidia.com/gpu]: " in reply.json["Error"]
        assert said in reply.json["Error"]
    lives(door)


MANY = ",".join(f'"x{index}"' for index in range(150))


@pytest.mark.parametrize("pod", [POD, make_pod("stranger").gpus(1), make_pod("cpu"), MEMBER])
@pytest.mark.parametrize(
    "names_", ['["n1",%s,7,"n2"]', '["n1",%s,n2"]', '["n1",%s,,"n2"]', '["n1",%s"n2"]', '["n1",%s,"n2",]']
)
def test_a_long_list_that_is_none_breaks_nothing(door: Door, pod: PodBuilder, names_: str) -> None:
    body = b'{"Pod":%s,"Nodes":null,"NodeNames":%s}' % (pod.json(), (names_ % MANY).encode())
    for verb in ("filter", "prioritize"):
        assert door.post(f"/{verb}", body).status == 200
    if pod.json() == POD.json():
        judge("filter", door.post("/filter", body))
    lives(door)


def test_of_a_pod_that_is_known_its_uid_and_form_are_all_that_is_read(door: Door) -> None:
    odd = POD.requests({"nvidia.com/gpu": "NaN"})
    assert names(door.post("/filter", filter_body(odd, ["n1", "n2"]))) == ["n1", "n2"]
    stranger = door.post("/filter", filter_body(odd.uid("stranger"), ["n1", "n2"]))
    assert "'NaN' is not a Kubernetes quantity" in stranger.json["Error"]


def test_an_empty_offer_is_answered_with_nothing_and_no_error(door: Door) -> None:
    for pod in (POD, MEMBER):
        reply = door.post("/filter", filter_body(pod, []))
        assert (reply.json["NodeNames"], reply.json["Error"]) == ([], "")
    assert door.post("/filter", {"Pod": POD.build(), "Nodes": {"items": None}}).json["Nodes"]["items"] == []
    lives(door)


def test_unknown_nodes_are_refused_without_an_error(door: Door) -> None:
    reply = door.post("/filter", filter_body(POD, ["n1", "new"])).json
    assert (reply["NodeNames"], reply["Error"]) == (["n1"], "")
    assert reply["FailedAndUnresolvableNodes"] == {"new": "node is not in the cache yet"}
    lives(door)


def test_five_megabytes_of_annotations_are_passed_over(door: Door) -> None:
    pod = POD.set("metadata.annotations", {"notes": "x" * 5_000_000})
    assert names(door.post("/filter", filter_body(pod, ["n1", "n2"]))) == ["n1", "n2"]
    assert door.post("/prioritize", filter_body(pod, ["n1"])).json
    lives(door)


def test_five_thousand_names_and_a_thousand_full_nodes(door: Door) -> None:
    offered = [f"x{n}" for n in range(5000)]
    reply = door.post("/filter", filter_body(POD, [*offered, "n2"])).json
    assert (reply["NodeNames"], reply["Error"]) == (["n2"], "")
    whole = [make_node(name).gpus(8).build() for name in [*offered[:1000], "n2"]]
    reply = door.post("/filter", {"Pod": POD.build(), "Nodes": {"items": whole}}).json
    assert [node["metadata"]["name"] for node in reply["Nodes"]["items"]] == ["n2"]
    lives(door)


@pytest.mark.parametrize("verb", VERBS)
def test_other_methods_are_not_allowed_and_harm_nothing(door: Door, verb: str) -> None:
    assert door.get(f"/{verb}").status == 405
    assert door.get("/nowhere").status == 404
    lives(door)


# -- what the watch events of POST /snapshot/events may carry


def event(obj: Builder | object, kind: str = "ADDED") -> Json:
    return {"type": kind, "object": obj.build() if isinstance(obj, Builder) else obj}


GOOD = event(make_pod("new").gpus(1).on("n1"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"", "events: ", id="nothing"),
        pytest.param(b"{", "events: ", id="cut off"),
        pytest.param({"type": "ADDED"}, "must be a JSON array", id="not a list"),
        pytest.param(None, "must be a JSON array", id="null"),
        pytest.param([GOOD, 7], "[1]: type must be one of ADDED, MODIFIED, DELETED", id="a number"),
        pytest.param([GOOD, event(POD, "BOOKMARK")], "[1]: type must be one of", id="a bookmark"),
        pytest.param([GOOD, {"type": "ADDED"}], "[1]: object must be a Kubernetes object", id="no object"),
        pytest.param(
            [GOOD, event({"kind": "Pod"})], "[1]: object must be a Kubernetes object", id="no metadata"
        ),
        pytest.param(
            [GOOD, event(make_pod("x").requests({"nvidia.com/gpu": "NaN"}))],
            "[1].object: pod default/x: spec.containers[0].resources.requests[nvidia.com/gpu]",
            id="a quantity that is none",
        ),
        pytest.param(
            [GOOD, event(make_node("x").amount("nvidia.com/gpu", "1_000"))],
            "[1].object: node x: status.allocatable[nvidia.com/gpu]",
            id="an allocatable that is none",
        ),
        pytest.param([event(make_pod("x").uid("")), GOOD], "[0].object: ", id="a pod without UID"),
        pytest.param([GOOD, event(make_pod("x").set("spec", None))], "", id="a pod without spec is read"),
    ],
)
def test_events_are_applied_all_or_none(door: Door, body: object, said: str) -> None:
    before = door.get("/snapshot").json
    reply = door.post("/snapshot/events", body)
    if said:
        assert reply.status == 400
        assert said in reply.json["error"]
        assert door.get("/snapshot").json == before, "nothing of it was applied"
    else:
        assert (reply.status, reply.json) == (200, {"applied": 2})
    assert door.reserved == (2, 2)
    assert names(door.post("/filter", filter_body(MEMBER, ["n1", "n2"]))) == ["n1"]


def test_events_of_kinds_that_are_not_followed_are_kept(door: Door) -> None:
    config: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "x"}}
    assert door.post("/snapshot/events", [event(config)]).json == {"applied": 1}
    assert config in door.get("/snapshot").json["items"]
    door.post("/snapshot/events", [event(config, "DELETED")])
    assert config not in door.get("/snapshot").json["items"]


def test_an_event_list_may_be_empty(door: Door) -> None:
    assert door.post("/snapshot/events", []).json == {"applied": 0}


@pytest.mark.parametrize("kind", ["ConfigMap", "Pod"])
def test_an_event_that_could_not_be_shown_again_is_refused(door: Door, kind: str) -> None:
    deep: object = {}
    for _ in range(400):
        deep = {"x": deep}
    obj = {**POD.build(), "kind": kind, "data": deep}
    reply = door.post("/snapshot/events", [event(obj)])
    assert reply.status == 400
    assert f"[0].object: {kind} cannot be written as JSON" in reply.json["error"]
    assert door.get("/snapshot").status == 200
    lives(door)


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param({"spec": None}, id="null spec"),
        pytest.param({"status": None}, id="null status"),
        pytest.param({"status": {"conditions": None}}, id="null conditions"),
    ],
)
def test_a_pod_with_nulls_for_parts_can_be_bound(door: Door, spoilt: Json) -> None:
    pod = make_pod("x")
    assert door.post("/snapshot/events", [event({**pod.build(), **spoilt})]).status == 200
    assert door.post("/bind", bind_body(pod, "n2")).json == {"Error": ""}
    assert door.world.node_of("x") == "n2"


def test_a_pod_group_with_a_null_status_gets_its_counts(door: Door) -> None:
    group = make_group("h", 1).set("status", None)
    assert door.post("/snapshot/events", [event(group)]).json == {"applied": 1}
    door.world.tick(2)
    assert door.world.get("PodGroup", "h")["status"]["running"] == 0
    lives(door)
