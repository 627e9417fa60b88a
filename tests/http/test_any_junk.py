# SPDX-License-Identifier: Apache-2.0
"""Good bodies with anything at all in any of their places: the service answers as it should and lives."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.builders import Builder, full_filter_body, make_group, make_node, make_pod, preempt_body, term
from tests.http.door import Door

JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    float("nan"),
    "",
    "NaN",
    "x" * 300,
    "\u0000",
    [],
    [None],
    {},
    {"x": None},
    [[{}]],
]
POD = (
    make_pod("x").gang("g").gated().priority(3).nominated("n1", by="muster").attempted("no")
    .gpus(2).limits({"cpu": "2"}).init({"nvidia.com/gpu": "1"}).sidecar({"cpu": "1m"})
    .overhead({"cpu": "100m"}).pod_level({"memory": "1Gi"}).host_port(80)
    .selector({"zone": "a"}).toleration(key="gpu", operator="Exists")
    .affinity(term(("zone", "In", "a", "b"), fields=[("metadata.name", "In", "n1")]))
    .set("spec.topologySpreadConstraints", [{"whenUnsatisfiable": "DoNotSchedule"}])
    .volume_claim().resource_claim()
)  # fmt: skip
NODE = make_node("n1").gpus(4).taint("gpu", "yes", "PreferNoSchedule").set("spec.unschedulable", False)
GROUP = make_group("g", 1).timeout(60).status(running=1).managed("other", {"f:status": {"f:scheduled": {}}})


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, by its path."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """The value with junk in one or two places."""

    def spoil(changes: list[tuple[tuple[Any, ...], Any]]) -> Any:
        made = deepcopy(value)
        for path, junk in changes:
            try:
                made = put(made, path, junk)
            except (KeyError, IndexError, TypeError):
                continue  # its parent is junk already
        return made

    change = st.tuples(st.sampled_from(places(value)), st.sampled_from(JUNK))
    return st.lists(change, min_size=1, max_size=2).map(spoil)


def put(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    value[path[0]] = put(value[path[0]], path[1:], junk)
    return value


FEW = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # shrinking takes minutes
    suppress_health_check=[HealthCheck.too_slow],
)
FILTER = orjson.loads(full_filter_body(POD, [NODE])) | {"NodeNames": ["n1", "n2"]}
PREEMPT = orjson.loads(preempt_body(POD, {"n1": [make_pod("v")]}))
BIND = {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "n1"}


@FEW
@given(
    filter_=spoilt(FILTER),
    whole=spoilt(FILTER | {"NodeNames": None}),
    bind=spoilt(BIND),
    preempt=spoilt(PREEMPT),
)
def test_no_body_of_a_verb_is_answered_with_anything_but_200(
    filter_: Any, whole: Any, bind: Any, preempt: Any
) -> None:
    with Door(NODE, make_pod("p")) as door:
        for body in (filter_, whole):
            for verb in ("filter", "prioritize"):
                assert door.post(f"/{verb}", body).status == 200
        assert door.post("/preempt", preempt).status == 200
        call, gone = door.start("/bind", bind)
        gone.set()
        door.world.idle()
        assert call.result().status == 200
        assert door.reserved == (0, 0)


def events(*builders: Builder) -> st.SearchStrategy[Any]:
    return st.tuples(*(spoilt({"type": "ADDED", "object": builder.build()}) for builder in builders)).map(
        list
    )


@FEW
@given(batch=events(NODE, GROUP, POD.set("status", {})))
def test_no_event_breaks_the_embedded_cluster(batch: Any) -> None:
    with Door(make_node("n2").gpus(4), make_group("g", 1), make_pod("a").gpus(1).gang("g").gated()) as door:
        for event in batch:
            before = door.get("/snapshot").json
            reply = door.post("/snapshot/events", [event])
            assert reply.status in (200, 400)
            if reply.status == 400:
                assert reply.json["error"].startswith("events: ")
                assert door.get("/snapshot").json == before
            door.world.tick(2)
        assert door.get("/metrics").status == 200
