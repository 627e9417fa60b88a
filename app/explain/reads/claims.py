# SPDX-License-Identifier: Apache-2.0
"""Read 4, resource claims: whether those a pod refers to are there, are its own, and can be allocated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from app.explain.case import Case
from app.explain.dra.claims import CLAIM, CLASS, SLICE, TEMPLATE, Asked, controller, is_for
from app.explain.dra.requests import labelled
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import text
from app.explain.reads.claims_words import pods_of, weight_of, who

KINDS: Final = (CLAIM, TEMPLATE, CLASS, SLICE)
"""What read 4 rests on."""


def naming(asked: Asked) -> Evidence:
    """Where a pod names its claim, or the template for it."""
    entry, claim, template = asked.reference.entry, asked.reference.claim, asked.reference.template
    where = f"pod/{asked.pod.key}"
    if not entry:
        return Evidence(where, ".status.extendedResourceClaimStatus.resourceClaimName", claim)
    if not template:
        return Evidence(where, f".spec.resourceClaims[{entry}].resourceClaimName", claim)
    if not claim:
        return Evidence(where, f".spec.resourceClaims[{entry}].resourceClaimTemplateName", template)
    return Evidence(where, f".status.resourceClaimStatuses[{entry}].resourceClaimName", claim)


def _absent(case: Case, named: Iterable[tuple[str, Asked]], kind: str) -> Iterable[Hit]:
    """One hit for each name, empty ones left out; `kind` is how the sentence calls what is not there."""
    missing: defaultdict[str, list[Asked]] = defaultdict(list)
    for name, asked in named:
        if name:
            missing[name].append(asked)
    for name, group in missing.items():
        pods = pods_of(group)
        data: dict[str, object] = {kind: name, "namespace": case.subject.namespace, "who": who(pods)}
        yield Hit(data=data, evidence=tuple(map(naming, group)), weight=weight_of(case, pods))


@finding(
    "ResourceClaimTemplateMissing",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="there is no ResourceClaimTemplate {template} in {namespace}, so no claim is made for {who}",
    meaning=(
        "A pod that names a ResourceClaimTemplate waits until a claim has been made from it. Without the"
        " template none is made. The scheduler does not even try such a pod."
    ),
    confirm=("kubectl get resourceclaimtemplates -n {namespace}",),
    decide=("create the template, or correct its name where the pods are defined",),
)
def template_missing(case: Case) -> Iterable[Hit]:
    """Per template that is not there while claims should be made from it."""
    if case.facts.blind(TEMPLATE):
        return
    missing = (a for a in case.claims if not a.reference.claim and a.source is None)
    yield from _absent(case, ((asked.reference.template, asked) for asked in missing), "template")


@finding(
    "ResourceClaimNotCreated",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="no claim has been made from template {template} for {who} yet",
    meaning=(
        "The resourceclaim controller of kube-controller-manager makes a claim for each pod that names a"
        " template, and writes its name into status.resourceClaimStatuses. That takes moments; if it lasts,"
        " the controller does not run, cannot write, or a quota or a webhook refuses the claims."
    ),
    confirm=(
        "kubectl get events -n {namespace} --field-selector involvedObject.name={pod}",
        "kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status.resourceClaimStatuses}}'",
    ),
    decide=("see to kube-controller-manager, or to what refuses the claims",),
)
def not_created(case: Case) -> Iterable[Hit]:
    """Per template that is there and has not been used for some of the pods."""
    waiting: defaultdict[str, list[Asked]] = defaultdict(list)
    for asked in case.claims:
        known = asked.source is not None or case.facts.blind(TEMPLATE)
        if asked.reference.template and not asked.reference.claim and known:
            waiting[asked.reference.template].append(asked)
    for name, group in waiting.items():
        evidence = [
            Evidence(f"pod/{a.pod.key}", f".status.resourceClaimStatuses[{a.reference.entry}]", "absent")
            for a in group
        ]
        pods = pods_of(group)
        yield hit(
            *evidence,
            weight=weight_of(case, pods),
            template=name,
            who=who(pods),
            namespace=case.subject.namespace,
            pod=pods[0].name,
        )


@finding(
    "ResourceClaimMissing",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="there is no ResourceClaim {claim} in {namespace}, needed by {who}",
    meaning=(
        "A pod that names a claim waits until that claim is there. A claim that is named directly is made by"
        " people or their tools, never by Kubernetes; one that was made from a template has been deleted."
    ),
    confirm=("kubectl get resourceclaims -n {namespace}",),
    decide=("create the claim, correct its name, or recreate the pod if its own claim was deleted",),
)
def claim_missing(case: Case) -> Iterable[Hit]:
    """Per claim that is named and not there."""
    if case.facts.blind(CLAIM):
        return
    missing = (asked for asked in case.claims if asked.claim is None)
    yield from _absent(case, ((asked.reference.claim, asked) for asked in missing), "claim")


@finding(
    "ResourceClaimNotUsable",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="ResourceClaim {claim} cannot serve pod {pod}: {why}",
    meaning=(
        "A claim that is being deleted is given to nobody. A claim that was made from a template belongs to"
        " the one pod it was made for; a pod that was recreated under the same name needs a new one."
    ),
    confirm=("kubectl get resourceclaim {claim} -n {namespace} -o yaml",),
    decide=("wait until the claim is gone, or delete the pod and let its owner make it anew",),
)
def not_usable(case: Case) -> Iterable[Hit]:
    """Per pod: its claim is being deleted, or is another's."""
    for asked in case.claims:
        claim = asked.claim
        if claim is None:
            continue
        since = text(claim, "metadata", "deletionTimestamp")
        if since:
            yield _unusable(case, asked, "it is being deleted", ".metadata.deletionTimestamp", since)
        elif asked.reference.template and not is_for(claim, asked.pod, case.raw(asked.pod)):
            owner = controller(claim)
            what = f"{text(owner, 'kind')} {text(owner, 'name')} ({text(owner, 'uid')})" if owner else "none"
            yield _unusable(case, asked, "it was made for another owner", ".metadata.ownerReferences", what)


def _unusable(case: Case, asked: Asked, why: str, field: str, value: str) -> Hit:
    found = Evidence(f"resourceclaim/{asked.pod.namespace}/{asked.reference.claim}", field, value)
    claim, pod = asked.reference.claim, asked.pod
    weight = weight_of(case, [pod])
    return hit(found, weight=weight, why=why, claim=claim, namespace=pod.namespace, pod=pod.name)


@finding(
    "DeviceClassMissing",
    read=Read.CLAIMS,
    weight=Weight.BLOCKS,
    sentence="there is no DeviceClass {name}, which {source} names: {who} cannot start",
    meaning=(
        "Each request of a claim names a DeviceClass. As long as one of them does not exist the scheduler"
        " allocates nothing for the claim, not even if an alternative names a class that does. Classes are"
        " installed with the driver of the devices."
    ),
    confirm=("kubectl get deviceclasses",),
    decide=("install the driver or create the class, or correct the name in the claim or its template",),
)
def class_missing(case: Case) -> Iterable[Hit]:
    """Per class that an open claim names and that is not there."""
    if case.facts.blind(CLASS):
        return
    missing: defaultdict[str, list[Asked]] = defaultdict(list)
    for asked in case.claims:
        wanted = (one for request in asked.requests for one in request.alternatives)
        for name in dict.fromkeys(one.device_class for one in wanted if asked.open):
            if case.dra.device_class(name) is None:
                missing[name].append(asked)
    for name, group in missing.items():
        evidence = dict.fromkeys(e for asked in group for e in _naming(asked, name))
        pods, source = pods_of(group), labelled(group[0].source)
        yield hit(*evidence, weight=weight_of(case, pods), name=name, source=source, who=who(pods))


def _naming(asked: Asked, name: str) -> Iterable[Evidence]:
    for request in asked.requests:
        for wanted in request.alternatives:
            if wanted.device_class == name:
                yield Evidence(asked.where, f".spec.devices.requests[{wanted.name}].deviceClassName", name)


@finding(
    "ResourceClaimsUnseen",
    read=Read.CLAIMS,
    weight=Weight.WARNS,
    sentence="could not tell what the resource claims of {who} come to: not read: {kinds}",
    meaning=(
        "Without claims, templates, classes and slices there is no saying whether the devices of a claim are"
        " there or who holds them. Reading them takes permission for the group resource.k8s.io, and an API"
        " server that serves it; a snapshot must contain them."
    ),
    confirm=("kubectl api-resources --api-group=resource.k8s.io", "kubectl auth can-i list resourceslices"),
)
def unseen(case: Case) -> Iterable[Hit]:
    """Kinds that were not read although the pods have claims."""
    pods = [pod for pod in case.asking if "resource claims" in pod.template.unmodelled]
    made = not any(one.reference.template and not one.reference.claim for one in case.claims)
    matter = [kind for kind in KINDS if kind != TEMPLATE or not made]  # once made, a claim needs no template
    whys = {one.what: one.why for one in case.facts.unseen if one.what in matter}
    if pods and whys:
        kinds = ", ".join(kind.partition(".")[0] for kind in whys)
        yield hit(*(Evidence(kind, "", why) for kind, why in whys.items()), who=who(pods), kinds=kinds)


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    unseen,
    template_missing,
    not_created,
    claim_missing,
    not_usable,
    class_missing,
)
