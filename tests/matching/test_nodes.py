# SPDX-License-Identifier: Apache-2.0
"""Which nodes admit a pod: selectors, required node affinity, taints, cordon and readiness."""

from __future__ import annotations

import pytest

from app.domain.node import Node
from app.matching.nodes import admits
from tests.builders import Json, NodeBuilder, PodBuilder, make_node, make_pod, node_of, pod_of, term

NODE = make_node("n1").zone("a").label("gpu.count", "8").label("empty", "")
ZONE = "topology.kubernetes.io/zone"


def admitted(pod: PodBuilder, node: NodeBuilder) -> bool:
    return admits(pod_of(pod).template, node_of(node))


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        pytest.param({}, True, id="no selector"),
        pytest.param({ZONE: "a"}, True, id="a label the node has"),
        pytest.param({ZONE: "b"}, False, id="with another value"),
        pytest.param({ZONE: "a", "disk": "ssd"}, False, id="all labels are asked for"),
        pytest.param({ZONE: "a", "gpu.count": "8"}, True, id="and it has them all"),
        pytest.param({"disk": ""}, False, id="an absent label is not an empty one"),
        pytest.param({"empty": ""}, True, id="an empty one is"),
    ],
)
def test_node_selector(labels: dict[str, str], want: bool) -> None:
    assert admitted(make_pod("p").selector(labels), NODE) is want


@pytest.mark.parametrize(
    ("terms", "want"),
    [
        pytest.param([term((ZONE, "In", "a", "b"))], True, id="In: one of the values"),
        pytest.param([term((ZONE, "In", "b"))], False, id="In: none of them"),
        pytest.param([term(("none", "In", "a"))], False, id="In: label absent"),
        pytest.param([term((ZONE, "NotIn", "b", "c"))], True, id="NotIn: another value"),
        pytest.param([term((ZONE, "NotIn", "a"))], False, id="NotIn: the very value"),
        pytest.param([term(("none", "NotIn", "a"))], True, id="NotIn: label absent"),
        pytest.param([term((ZONE, "Exists"))], True, id="Exists"),
        pytest.param([term(("empty", "Exists"))], True, id="Exists: also when empty"),
        pytest.param([term(("none", "Exists"))], False, id="Exists: absent"),
        pytest.param([term(("none", "DoesNotExist"))], True, id="DoesNotExist"),
        pytest.param([term((ZONE, "DoesNotExist"))], False, id="DoesNotExist: it does"),
        pytest.param([term(("gpu.count", "Gt", "7"))], True, id="Gt"),
        pytest.param([term(("gpu.count", "Gt", "8"))], False, id="Gt: equal is not greater"),
        pytest.param([term(("gpu.count", "Gt", "10"))], False, id="Gt: numbers, not texts"),
        pytest.param([term(("gpu.count", "Lt", "10"))], True, id="Lt: numbers, not texts"),
        pytest.param([term(("gpu.count", "Lt", "8"))], False, id="Lt: equal is not less"),
        pytest.param([term(("gpu.count", "Gt", "-1"))], True, id="Gt: negative bound"),
        pytest.param([term((ZONE, "Gt", "1"))], False, id="Gt: label is no number"),
        pytest.param([term(("gpu.count", "Gt", "some"))], False, id="Gt: bound is no number"),
        pytest.param([term(("gpu.count", "Lt", "9.5"))], False, id="Lt: no fractions"),
        pytest.param([term(("gpu.count", "Lt", "9", "10"))], False, id="Lt: exactly one bound"),
        pytest.param([term(("none", "Lt", "1"))], False, id="Lt: label absent"),
        pytest.param([term((ZONE, "Near", "a"))], False, id="an operator nobody knows"),
        pytest.param([term((ZONE, "In", "a"), ("gpu.count", "Gt", "9"))], False, id="a term is an AND"),
        pytest.param([term((ZONE, "In", "a"), ("gpu.count", "Gt", "4"))], True, id="and all of it holds"),
        pytest.param([term((ZONE, "In", "b")), term((ZONE, "In", "a"))], True, id="terms are an OR"),
        pytest.param([term((ZONE, "In", "b")), term((ZONE, "In", "c"))], False, id="and none of them holds"),
        pytest.param([term()], False, id="an empty term matches nothing"),
        pytest.param([term(), term((ZONE, "In", "a"))], True, id="nor does it spoil another"),
        pytest.param([], False, id="required, but no terms"),
        pytest.param([term(fields=[("metadata.name", "In", "n1")])], True, id="matchFields: this node"),
        pytest.param([term(fields=[("metadata.name", "In", "n2")])], False, id="matchFields: another"),
        pytest.param([term(fields=[("metadata.name", "NotIn", "n1")])], False, id="matchFields: not this"),
        pytest.param([term(fields=[("metadata.name", "NotIn", "n2")])], True, id="matchFields: not another"),
        pytest.param([term(fields=[("spec.x", "NotIn", "n2")])], False, id="matchFields: only the name"),
        pytest.param(
            [term((ZONE, "In", "b"), fields=[("metadata.name", "In", "n1")])], False, id="both hold"
        ),
        pytest.param([term(("metadata.name", "In", "n1"))], False, id="the name is no label"),
    ],
)
def test_required_affinity(terms: list[Json], want: bool) -> None:
    assert admitted(make_pod("p").affinity(*terms), NODE) is want


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("p").selector({ZONE: "a"}).in_zone("a"), True, id="both hold"),
        pytest.param(make_pod("p").selector({ZONE: "b"}).in_zone("a"), False, id="selector does not"),
        pytest.param(make_pod("p").selector({ZONE: "a"}).in_zone("b"), False, id="affinity does not"),
    ],
)
def test_selector_and_affinity_are_both_asked(pod: PodBuilder, want: bool) -> None:
    assert admitted(pod, NODE) is want


def test_a_preferred_affinity_excludes_nothing() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term()}]}
    assert admitted(make_pod("p").set("spec.affinity.nodeAffinity", preferred), NODE)


PLAIN = make_pod("p")


@pytest.mark.parametrize(
    ("pod", "node", "want"),
    [
        pytest.param(PLAIN, NODE, True, id="no taint"),
        pytest.param(PLAIN, NODE.taint("gpu", "yes"), False, id="NoSchedule keeps out"),
        pytest.param(PLAIN, NODE.taint("gpu", "yes", "NoExecute"), False, id="NoExecute keeps out"),
        pytest.param(
            PLAIN, NODE.taint("gpu", "yes", "PreferNoSchedule"), True, id="PreferNoSchedule does not"
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", value="yes"),
            NODE.taint("gpu", "yes"),
            True,
            id="Equal is the default",
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", operator="Equal", value="no"),
            NODE.taint("gpu", "yes"),
            False,
            id="other value",
        ),
        pytest.param(
            PLAIN.toleration(key="other", value="yes"), NODE.taint("gpu", "yes"), False, id="other key"
        ),
        pytest.param(
            PLAIN.toleration(key="gpu"), NODE.taint("gpu"), True, id="both without a value are equal"
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", operator="Exists"),
            NODE.taint("gpu", "yes"),
            True,
            id="Exists: any value",
        ),
        pytest.param(
            PLAIN.toleration(operator="Exists"),
            NODE.taint("gpu", "yes").taint("x"),
            True,
            id="Exists without key: all",
        ),
        pytest.param(
            PLAIN.toleration(operator="Exists", effect="NoExecute"),
            NODE.taint("gpu", "yes"),
            False,
            id="Exists without key, but of another effect",
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", operator="Exists", effect="NoSchedule"),
            NODE.taint("gpu", "yes").taint("gpu", "yes", "NoExecute"),
            False,
            id="one key, two effects, one tolerated",
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", operator="Exists"),
            NODE.taint("gpu", "yes").taint("gpu", "yes", "NoExecute"),
            True,
            id="no effect named: every effect",
        ),
        pytest.param(
            PLAIN.toleration(key="a", operator="Exists"),
            NODE.taint("a").taint("b"),
            False,
            id="each taint is asked for",
        ),
        pytest.param(
            PLAIN.toleration(key="a", operator="Exists").toleration(key="b", operator="Exists"),
            NODE.taint("a").taint("b"),
            True,
            id="by some toleration",
        ),
        pytest.param(
            PLAIN.toleration(key="gpu", operator="Sometimes"), NODE.taint("gpu"), False, id="operator unknown"
        ),
        pytest.param(
            PLAIN.toleration(key="load", operator="Lt", value="90"),
            NODE.taint("load", "80"),
            True,
            id="Lt: taint below",
        ),
        pytest.param(
            PLAIN.toleration(key="load", operator="Gt", value="90"),
            NODE.taint("load", "80"),
            False,
            id="Gt: it is not",
        ),
        pytest.param(
            PLAIN.toleration(key="load", operator="Lt", value="90"),
            NODE.taint("load", "x"),
            False,
            id="Lt: no number",
        ),
        pytest.param(PLAIN, NODE.cordoned(), False, id="cordoned"),
        pytest.param(
            PLAIN.toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
            NODE.cordoned(),
            True,
            id="cordoned, and that is tolerated (DaemonSets)",
        ),
        pytest.param(PLAIN, NODE.not_ready(), False, id="not ready"),
        pytest.param(
            PLAIN.toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
            NODE.not_ready(),
            False,
            id="not ready: the toleration every pod gets is for staying, not for coming",
        ),
        pytest.param(
            PLAIN.toleration(operator="Exists"),
            NODE.not_ready("Unknown").cordoned(),
            True,
            id="tolerates it all",
        ),
    ],
)
def test_taints(pod: PodBuilder, node: NodeBuilder, want: bool) -> None:
    assert admitted(pod, node) is want


def test_resources_are_not_looked_at() -> None:
    bare = Node(name=node_of(NODE).name, uid="u", allocatable={}, capacity={}, labels={})
    assert admits(pod_of(PLAIN.gpus(800)).template, bare)
