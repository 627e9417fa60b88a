# SPDX-License-Identifier: Apache-2.0
"""Read 4, the claims a pod refers to: each finding from objects as the API shows them."""

from __future__ import annotations

from typing import Any

import pytest

from app.explain.case import Case
from app.explain.explain import explain
from app.explain.facts import Unseen
from app.explain.finding import Evidence, Topic, Weight
from app.explain.reads import claims, claims_asked
from app.explain.report import Outcome, Subject
from tests.builders import GPU, Builder, make_group, make_node, make_pod
from tests.explain.dra_objects import exact, make_claim, make_class, make_slice, make_template, uses_template
from tests.explain.looking import case, facts, found, texts

POD = make_pod("w0").scheduler("default-scheduler")
NODE = make_node("n1")
CLASS = make_class("gpu")
TEMPLATE = make_template("gpus").request()
MADE = make_claim("w0-gpu-x7k2p").request().made_for("w0")
FROM_TEMPLATE = uses_template(POD, "gpus", claim="w0-gpu-x7k2p")
ALL = (*claims.FINDINGS, *claims_asked.FINDINGS)


def every(*objects: Builder, topics: tuple[Topic[Case], ...] = ALL, **more: Any) -> list[str]:
    """Codes of all that is found, notes aside."""
    case_ = case("pod/w0", *objects, **more)
    return [one.code for topic in topics for one in topic(case_) if one.weight is not Weight.NOTE]


def test_a_pod_whose_claim_was_made_and_whose_class_is_there_has_no_trouble() -> None:
    assert not every(FROM_TEMPLATE, NODE, CLASS, TEMPLATE, MADE)
    assert not every(POD.resource_claim("shared"), NODE, CLASS, make_claim("shared").request())
    assert not every(POD, NODE)


def test_a_template_that_is_not_there() -> None:
    pods = [uses_template(POD.named(f"w{n}"), "gpu") for n in range(2)]
    findings = found(claims.template_missing, "pod/w0", pods[0], NODE, TEMPLATE)
    assert texts(findings) == [
        "there is no ResourceClaimTemplate gpu in default, so no claim is made for pod w0"
    ]
    field = ".spec.resourceClaims[gpu].resourceClaimTemplateName"
    assert findings[0].evidence == (Evidence("pod/default/w0", field, "gpu"),)
    assert findings[0].weight is Weight.BLOCKS


def test_of_a_claim_that_was_made_the_template_is_not_missed() -> None:
    assert not found(claims.template_missing, "pod/w0", FROM_TEMPLATE, NODE)


def test_a_template_that_was_not_read_is_not_called_missing() -> None:
    unseen = (Unseen("ResourceClaimTemplate.resource.k8s.io", "forbidden"),)
    assert every(uses_template(POD, "gpu"), NODE, unseen=unseen) == [
        "ResourceClaimsUnseen",
        "ResourceClaimNotCreated",
    ]


def test_the_verdict_names_the_first_thing_that_blocks() -> None:
    report = explain(facts(uses_template(POD, "gpu"), NODE), Subject("pod", "default", "w0"))
    assert report.verdict.code is Outcome.BLOCKED
    assert report.verdict.sentence == (
        "pod default/w0 does not start: there is no ResourceClaimTemplate gpu in default,"
        " so no claim is made for pod w0"
    )


def test_a_claim_that_has_not_been_made_yet() -> None:
    findings = found(claims.not_created, "pod/w0", uses_template(POD, "gpus"), NODE, CLASS, TEMPLATE)
    assert texts(findings) == ["no claim has been made from template gpus for pod w0 yet"]
    field = ".status.resourceClaimStatuses[gpu]"
    assert findings[0].evidence == (Evidence("pod/default/w0", field, "absent"),)
    assert findings[0].steps[0].command == (
        "kubectl get events -n default --field-selector involvedObject.name=w0"
    )


def test_an_entry_that_needs_no_claim_is_ignored() -> None:
    """A status without a claim name: the controller found that none is needed."""
    pod = uses_template(POD, "gone").append("status.resourceClaimStatuses", {"name": "gpu"})
    assert not every(pod, NODE)


def test_a_named_claim_that_is_not_there() -> None:
    other = make_claim("shared", "team-b").request()
    findings = found(claims.claim_missing, "pod/w0", POD.resource_claim("shared"), NODE, other)
    assert texts(findings) == ["there is no ResourceClaim shared in default, needed by pod w0"]
    field = ".spec.resourceClaims[gpu].resourceClaimName"
    assert findings[0].evidence == (Evidence("pod/default/w0", field, "shared"),)


def test_a_made_claim_that_was_deleted() -> None:
    findings = found(claims.claim_missing, "pod/w0", FROM_TEMPLATE, NODE, TEMPLATE)
    assert texts(findings) == ["there is no ResourceClaim w0-gpu-x7k2p in default, needed by pod w0"]
    field = ".status.resourceClaimStatuses[gpu].resourceClaimName"
    assert findings[0].evidence == (Evidence("pod/default/w0", field, "w0-gpu-x7k2p"),)


def test_claims_that_were_not_read_are_not_called_missing() -> None:
    unseen = (Unseen("ResourceClaim.resource.k8s.io", "the server does not serve it"),)
    findings = found(claims.unseen, "pod/w0", POD.resource_claim("shared"), NODE, unseen=unseen)
    assert texts(findings) == [
        "could not tell what the resource claims of pod w0 come to: not read: ResourceClaim"
    ]
    assert not found(claims.claim_missing, "pod/w0", POD.resource_claim("shared"), NODE, unseen=unseen)
    assert not found(claims.unseen, "pod/w0", POD, NODE, unseen=unseen)
    templates = (Unseen("ResourceClaimTemplate.resource.k8s.io", "forbidden"),)
    assert not found(claims.unseen, "pod/w0", FROM_TEMPLATE, NODE, unseen=templates), "its claim is made"


def test_a_claim_that_is_being_deleted_serves_nobody() -> None:
    claim = make_claim("shared").request().set("metadata.deletionTimestamp", "2026-01-01T01:00:00Z")
    findings = found(claims.not_usable, "pod/w0", POD.resource_claim("shared"), NODE, CLASS, claim)
    assert texts(findings) == ["ResourceClaim shared cannot serve pod w0: it is being deleted"]


def test_a_claim_that_was_made_for_a_pod_of_the_same_name_before() -> None:
    former = MADE.set(
        "metadata.ownerReferences", [{"kind": "Pod", "name": "w0", "uid": "u", "controller": True}]
    )
    findings = found(claims.not_usable, "pod/w0", FROM_TEMPLATE, NODE, CLASS, TEMPLATE, former)
    assert texts(findings) == [
        "ResourceClaim w0-gpu-x7k2p cannot serve pod w0: it was made for another owner"
    ]
    where = "resourceclaim/default/w0-gpu-x7k2p"
    assert findings[0].evidence == (Evidence(where, ".metadata.ownerReferences", "Pod w0 (u)"),)


@pytest.mark.parametrize(("group", "blocked"), [("train", False), ("other", True)])
def test_a_claim_of_the_pods_own_native_group_serves_it(group: str, blocked: bool) -> None:
    owned = MADE.made_for(group, kind="PodGroup", version="scheduling.k8s.io/v1beta1")
    pod = FROM_TEMPLATE.native("train")
    assert bool(found(claims.not_usable, "pod/w0", pod, NODE, CLASS, TEMPLATE, owned)) is blocked


def test_a_claim_that_is_named_directly_may_belong_to_anybody() -> None:
    claim = make_claim("shared").request().made_for("somebody")
    assert not found(claims.not_usable, "pod/w0", POD.resource_claim("shared"), NODE, claim)


# -- classes


def test_a_class_that_does_not_exist() -> None:
    findings = found(claims.class_missing, "pod/w0", FROM_TEMPLATE, NODE, TEMPLATE, MADE)
    assert texts(findings) == [
        "there is no DeviceClass gpu, which claim w0-gpu-x7k2p names: pod w0 cannot start"
    ]
    where = "resourceclaim/default/w0-gpu-x7k2p"
    assert findings[0].evidence == (Evidence(where, ".spec.devices.requests[gpu].deviceClassName", "gpu"),)


def test_one_missing_class_among_alternatives_blocks_too() -> None:
    template = make_template("gpus").first_of(exact("gpu", name="any"), exact("big", name="large"))
    findings = found(claims.class_missing, "pod/w0", uses_template(POD, "gpus"), NODE, CLASS, template)
    assert texts(findings) == ["there is no DeviceClass big, which template gpus names: pod w0 cannot start"]
    field = ".spec.devices.requests[gpu/large].deviceClassName"
    assert findings[0].evidence == (Evidence("resourceclaimtemplate/default/gpus", field, "big"),)


def test_an_allocated_claim_needs_no_class_any_more() -> None:
    allocated = MADE.allocated("n1", "gpu-0")
    assert not found(claims.class_missing, "pod/w0", FROM_TEMPLATE, NODE, TEMPLATE, allocated)


def test_classes_that_were_not_read_are_not_called_missing() -> None:
    unseen = (Unseen("DeviceClass.resource.k8s.io", "forbidden"),)
    assert not found(claims.class_missing, "pod/w0", FROM_TEMPLATE, NODE, MADE, unseen=unseen)


# -- what is asked for


def test_requests_are_told_with_their_selectors_as_they_are() -> None:
    chosen = make_class("gpu").selector('device.driver == "gpu.example.com"')
    claim = MADE.set("spec", {"devices": {}}).request(selectors=[{"cel": {"expression": "a.b"}}], count=2)
    findings = found(claims_asked.requests, "pod/w0", FROM_TEMPLATE, NODE, chosen, claim)
    assert texts(findings) == ["claim w0-gpu-x7k2p asks for 2 of class gpu, for pod w0"]
    where, path = "resourceclaim/default/w0-gpu-x7k2p", ".spec.devices.requests[gpu]"
    assert findings[0].evidence == (
        Evidence(where, path, "2 of class gpu"),
        Evidence("deviceclass/gpu", ".spec.selectors", 'device.driver == "gpu.example.com"'),
        Evidence(where, f"{path}.selectors", "a.b"),
    )


def test_alternatives_all_devices_and_admin_access_are_told() -> None:
    claim = (
        make_claim("shared")
        .first_of(exact("big", name="large"), exact("gpu", name="small", count=2))
        .request("nic", name="nics", allocationMode="All", adminAccess=True)
    )
    findings = found(claims_asked.requests, "pod/w0", POD.resource_claim("shared"), NODE, claim)
    assert texts(findings) == [
        "claim shared asks for 1 of class big or else 2 of class gpu,"
        " and all of class nic (admin access), for pod w0"
    ]


def test_the_form_of_v1beta1_is_read_too() -> None:
    claim = make_claim("shared").request(count=3).beta()
    findings = found(claims_asked.requests, "pod/w0", POD.resource_claim("shared"), NODE, claim)
    assert texts(findings) == ["claim shared asks for 3 of class gpu, for pod w0"]


def test_pods_that_ask_alike_are_told_together() -> None:
    pods = [POD.scheduler("muster").named(f"w{n}").gang("train") for n in range(4)]
    asking = [uses_template(pod, "gpus", claim=f"{pod.get('metadata.name')}-gpu") for pod in pods]
    made = [make_claim(f"w{n}-gpu").request().made_for(f"w{n}") for n in range(4)]
    objects = (make_group("train", 4), *asking, *made, NODE, CLASS)
    assert texts(found(claims_asked.requests, "podgroup/train", *objects)) == [
        "claim w0-gpu asks for 1 of class gpu, for pod w0 and 3 others"
    ]


def test_that_the_plan_leaves_claims_out_is_a_warning_for_a_gang() -> None:
    pods = [POD.scheduler("muster").named(f"w{n}").gang("train").resource_claim("shared") for n in range(2)]
    findings = found(claims_asked.not_planned, "podgroup/train", make_group("train", 2), *pods, NODE)
    assert texts(findings) == [
        "seats are planned without the resource claims of pod w0 and w1: kube-scheduler may refuse the nodes"
    ]
    assert findings[0].weight is Weight.WARNS
    assert findings[0].evidence[0] == Evidence("pod/default/w0", ".spec.resourceClaims", "gpu")
    single = found(claims_asked.not_planned, "pod/w0", POD.resource_claim("shared"), NODE)
    assert [one.weight for one in single] == [Weight.NOTE]
    assert not found(claims_asked.not_planned, "pod/w0", POD, NODE)


# -- extended resources


def test_an_extended_resource_that_a_class_offers() -> None:
    pod = POD.gpus(1).set(
        "status.extendedResourceClaimStatus", {"resourceClaimName": "w0-extended-resources-q"}
    )
    findings = found(claims_asked.extended, "pod/w0", pod, NODE, CLASS.offers(GPU))
    assert texts(findings) == [
        f"{GPU} of pod w0 may come by Dynamic Resource Allocation: device class gpu offers it"
    ]
    field = ".status.extendedResourceClaimStatus.resourceClaimName"
    assert findings[0].evidence == (
        Evidence("deviceclass/gpu", ".spec.extendedResourceName", GPU),
        Evidence("pod/default/w0", field, "w0-extended-resources-q"),
    )
    assert not found(claims_asked.extended, "pod/w0", pod, NODE, CLASS)
    assert not found(claims_asked.extended, "pod/w0", POD, NODE, CLASS.offers(GPU))


def test_of_two_classes_that_offer_a_resource_the_newer_serves_it() -> None:
    newer = make_class("a-newer").offers(GPU).created("2026-02-01T00:00:00Z")
    older = [make_class(name).offers(GPU) for name in ("z", "b")]
    assert case("pod/w0", POD, *older, newer).dra.by_resource[GPU]["metadata"]["name"] == "a-newer"
    assert case("pod/w0", POD, *older).dra.by_resource[GPU]["metadata"]["name"] == "b"


def test_every_class_offers_the_resource_of_its_name() -> None:
    assert "deviceclass.resource.kubernetes.io/gpu" in case("pod/w0", POD, CLASS).dra.by_resource


# -- odd objects


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {"devices": "x"},
        {"devices": {"requests": [None, 1, {}]}},
        {"devices": {"requests": [{"name": 7, "exactly": [], "firstAvailable": {}}]}},
        {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": 3, "count": "2"}}]}},
    ],
)
def test_odd_claims_are_no_reason_to_fail(spec: object) -> None:
    claim = make_claim("shared").set("spec", spec).set("status", spec)
    pod = POD.resource_claim("shared").set("status.resourceClaimStatuses", [None, {"name": 1}])
    objects = (pod, NODE, claim, CLASS.set("spec", spec), make_slice("n1").set("spec", spec))
    explain(facts(*objects), Subject("pod", "default", "w0"))
