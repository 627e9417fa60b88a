# SPDX-License-Identifier: Apache-2.0
"""Bodies of the real kube-scheduler are understood, and our answers have the keys of extender/v1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.codec import extender as wire
from app.codec.objects import ObjectDecoder
from app.codec.offer import Offer
from app.codec.scores import HostScores

RECORDED = Path(__file__).parent / "recorded"
MODES = pytest.mark.parametrize("mode", ["names", "nodes"])


def recorded(verb: str, mode: str) -> tuple[bytes, dict[str, Any]]:
    body = (RECORDED / f"{verb}-{mode}.json").read_bytes()
    return body, json.loads(body)


def nodes_of(body: dict[str, Any]) -> list[str]:
    if body["NodeNames"] is not None:
        return list(body["NodeNames"])
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@MODES
def test_filter_and_prioritize_tell_pod_and_nodes(verb: str, mode: str) -> None:
    raw, body = recorded(verb, mode)
    assert set(body) == {"Pod", "Nodes", "NodeNames"}

    args = wire.nodes_args(raw)
    assert args.offer.names == nodes_of(body)
    assert sorted(args.offer.names) == ["node-0", "node-1"]
    assert (args.nodes is None) == (mode == "names")
    pod = ObjectDecoder().pod(args.pod)
    meta = body["Pod"]["metadata"]
    assert (pod.uid, pod.namespace, pod.name) == (meta["uid"], "default", meta["name"])
    assert pod.scheduler == "muster"
    assert dict(pod.template.requests)["nvidia.com/gpu"] == 1


@MODES
def test_bind_tells_pod_uid_and_node(mode: str) -> None:
    raw, body = recorded("bind", mode)
    assert set(body) == {"PodName", "PodNamespace", "PodUID", "Node"}
    args = wire.bind_args(raw)
    assert [args.name, args.namespace, args.uid, args.node] == [
        body[key] for key in ("PodName", "PodNamespace", "PodUID", "Node")
    ]


@MODES
def test_preempt_tells_candidates_and_the_uids_of_their_victims(mode: str) -> None:
    raw, body = recorded("preempt", mode)
    assert set(body) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    args = wire.preempt_args(raw)
    assert sorted(args.victims) == ["node-0", "node-1"]
    if mode == "names":
        sent = body["NodeNameToMetaVictims"]
        expected = {node: [pod["UID"] for pod in entry["Pods"]] for node, entry in sent.items()}
    else:
        sent = body["NodeNameToVictims"]
        expected = {node: [pod["metadata"]["uid"] for pod in entry["Pods"]] for node, entry in sent.items()}
    assert {node: uids for node, (uids, _) in args.victims.items()} == expected
    assert ObjectDecoder().pod(args.pod).priority == 1000


@MODES
def test_the_answer_to_filter_has_the_keys_and_the_mode_of_the_request(mode: str) -> None:
    raw, body = recorded("filter", mode)
    args = wire.nodes_args(raw)
    answer = json.loads(
        wire.filter_reply(wire.FilterAnswer(left=Offer(["node-1"]), failed={"node-0": "no room"}), args)
    )
    assert set(answer) == {"Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"}
    if mode == "names":
        assert (answer["Nodes"], answer["NodeNames"]) == (None, ["node-1"])
    else:
        whole = next(node for node in body["Nodes"]["items"] if node["metadata"]["name"] == "node-1")
        assert (answer["Nodes"]["items"], answer["NodeNames"]) == ([whole], None)
    assert answer["FailedNodes"] == {"node-0": "no room"}
    assert answer["FailedAndUnresolvableNodes"] == {}
    assert answer["Error"] == ""


@MODES
def test_an_answer_that_lets_all_nodes_pass_offers_them_unchanged(mode: str) -> None:
    raw, body = recorded("filter", mode)
    args = wire.nodes_args(raw)
    answer = json.loads(wire.filter_reply(wire.FilterAnswer(left=args.offer), args))
    assert nodes_of(answer) == nodes_of(body)


def test_the_other_answers_have_the_keys_of_their_types() -> None:
    assert json.loads(wire.bind_reply("why")) == {"Error": "why"}
    assert json.loads(HostScores(["node-0"]).reply(np.array([0]), np.array([7]))) == [
        {"Host": "node-0", "Score": 7}
    ]
    assert json.loads(wire.preempt_reply({"node-0": (["uid-1"], 2)})) == {
        "NodeNameToMetaVictims": {"node-0": {"Pods": [{"UID": "uid-1"}], "NumPDBViolations": 2}}
    }
