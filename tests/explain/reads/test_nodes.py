# SPDX-License-Identifier: Apache-2.0
"""Read 1, nodes that have devices and that the pods may not use, each for one reason."""

from __future__ import annotations

from app.explain.finding import Evidence, Weight
from app.explain.reads.nodes import nodes_cordoned, nodes_not_ready, nodes_not_selected, taint_not_tolerated
from app.explain.reads.selectors import selector_matches_nothing
from tests.builders import make_node, make_pod, term
from tests.explain.looking import found, texts

POD = make_pod("w0").gpus(8)
NODE = make_node("n1").gpus(8)
FULL = make_pod("x").gpus(8).on("n1")
NUMBERS = "8 free, 8 allocatable, 0 used, 0 reserved, 8 capacity"
PRODUCT = "nvidia.com/gpu.product"
ALL = (nodes_not_ready, nodes_cordoned, taint_not_tolerated, nodes_not_selected, selector_matches_nothing)


def test_cordoned_nodes_say_what_they_lock_away() -> None:
    findings = found(nodes_cordoned, "pod/w0", POD, NODE, FULL, NODE.named("n2").cordoned())
    assert texts(findings) == ["cordoned: 1 node with 8 nvidia.com/gpu, 8 of them free"]
    assert findings[0].evidence == (Evidence("node/n2", ".spec.unschedulable", f"true; {NUMBERS}"),)


def test_nodes_that_are_not_ready() -> None:
    unreachable = NODE.named("n3").taint("node.kubernetes.io/unreachable", effect="NoExecute")
    findings = found(nodes_not_ready, "pod/w0", POD, NODE, FULL, NODE.named("n2").not_ready(), unreachable)
    assert texts(findings) == ["not ready: 2 nodes with 16 nvidia.com/gpu"]


def test_a_node_counts_once_and_its_state_comes_before_its_taints() -> None:
    node = NODE.taint("dedicated", "team-b").cordoned()
    assert found(nodes_cordoned, "pod/w0", POD, node)
    assert not found(taint_not_tolerated, "pod/w0", POD, node)
    assert not found(nodes_cordoned, "pod/w0", POD, node.not_ready())
    assert found(nodes_not_ready, "pod/w0", POD, node.not_ready())


def test_taints_are_named_with_those_first_that_keep_most_away() -> None:
    mine = NODE.named("n2").taint("dedicated", "team-b")
    objects = (mine, mine.named("n3"), NODE.named("n4").taint("maintenance"))
    findings = found(taint_not_tolerated, "pod/w0", POD, *objects)
    assert texts(findings) == [
        "taint not tolerated: 3 nodes with 24 nvidia.com/gpu, 24 of them free;"
        " dedicated=team-b:NoSchedule (2 nodes) and maintenance:NoSchedule (1 node)"
    ]
    assert Evidence("node/n4", ".spec.taints", f"maintenance:NoSchedule; {NUMBERS}") in findings[0].evidence
    tolerant = POD.toleration(key="dedicated", operator="Exists")
    assert texts(found(taint_not_tolerated, "pod/w0", tolerant.gpus(16), *objects)) == [
        "taint not tolerated: 1 node with 8 nvidia.com/gpu, 8 of them free; maintenance:NoSchedule (1 node)"
    ]


def test_nodes_that_the_pods_leave_out_themselves() -> None:
    old, new = NODE.named("n2").label(PRODUCT, "A100"), NODE.label(PRODUCT, "H100")
    findings = found(nodes_not_selected, "pod/w0", POD.selector({PRODUCT: "H100"}), new, FULL, old)
    assert texts(findings) == [
        "not selected by nvidia.com/gpu.product=H100: 1 node with 8 nvidia.com/gpu, 8 of them free"
    ]
    assert findings[0].weight is Weight.NOTE


def test_a_value_that_no_node_has_is_told_with_those_there_are() -> None:
    nodes = [NODE.named(f"n{i}").label(PRODUCT, "A100" if i else "L4") for i in range(4)]
    findings = found(
        selector_matches_nothing, "pod/w0", POD.selector({PRODUCT: "H100"}), *nodes, make_node("c")
    )
    assert texts(findings) == [
        "no node with nvidia.com/gpu is what the pods select, nvidia.com/gpu.product=H100:"
        " none has nvidia.com/gpu.product=H100, there it is A100 (3 nodes) and L4 (1 node)"
    ]
    assert findings[0].weight is Weight.BLOCKS
    assert findings[0].evidence == (
        Evidence("4 nodes", f".metadata.labels['{PRODUCT}']", "A100 (3 nodes) and L4 (1 node)"),
    )
    assert not found(nodes_not_selected, "pod/w0", POD.selector({PRODUCT: "H100"}), *nodes)


def test_a_label_that_no_node_has_and_labels_that_no_node_has_together() -> None:
    a, b = NODE.label("rack", "1").label("zone", "a"), NODE.named("n2").label("rack", "2").label("zone", "b")
    assert texts(found(selector_matches_nothing, "pod/w0", POD.selector({"pool": "x"}), a, b)) == [
        "no node with nvidia.com/gpu is what the pods select, pool=x: none has the label pool"
    ]
    assert texts(
        found(selector_matches_nothing, "pod/w0", POD.selector({"rack": "1", "zone": "b"}), a, b)
    ) == ["no node with nvidia.com/gpu is what the pods select, rack=1 and zone=b: none answers to all of it"]


def test_an_affinity_that_matches_nothing() -> None:
    pod = POD.affinity(term(("zone", "In", "x", "y")), term(("rack", "Exists")))
    assert texts(found(selector_matches_nothing, "pod/w0", pod, NODE.label("zone", "a"))) == [
        "no node with nvidia.com/gpu is what the pods select, zone=x|y or rack Exists:"
        " none has zone=x|y, there it is a (1 node); none has the label rack"
    ]
    by_name = POD.affinity(term(fields=[("metadata.name", "In", "n9")]))
    assert texts(found(selector_matches_nothing, "pod/w0", by_name, NODE)) == [
        "no node with nvidia.com/gpu is what the pods select, metadata.name=n9: none is metadata.name=n9"
    ]
    assert texts(found(selector_matches_nothing, "pod/w0", POD.affinity(), NODE)) == [
        "no node with nvidia.com/gpu is what the pods select, an affinity without terms:"
        " none answers to all of it"
    ]


def test_nothing_is_told_of_nodes_where_the_pod_fits_or_all_nodes_admit_it() -> None:
    kept = (NODE.named("n2").cordoned(), NODE.named("n3").taint("a"), NODE.named("n4").not_ready())
    for topic in ALL:
        assert not found(topic, "pod/w0", POD, NODE, *kept)
        assert not found(topic, "pod/w0", POD, NODE, FULL)
        assert not found(topic, "pod/w0", POD.on("n1"), NODE, *kept)


def test_nodes_without_what_is_asked_for_are_not_counted() -> None:
    assert not found(nodes_cordoned, "pod/w0", POD, NODE, FULL, make_node("cpu").cordoned())
    assert found(
        nodes_cordoned, "pod/c", make_pod("c").cpu("100"), make_node("n1"), make_node("n2").cordoned()
    )
