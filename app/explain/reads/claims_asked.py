# SPDX-License-Identifier: Apache-2.0
"""Read 4, requests: what the claims ask for, what the planner leaves out, extended resources by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.dra.claims import Asked
from app.explain.dra.requests import Request, labelled
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, maps, text
from app.explain.reads.claims_words import pods_of, who


@finding(
    "ResourceClaimRequests",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence="{source} asks for {what}, for {who}",
    meaning=(
        "What the pods ask for by Dynamic Resource Allocation: devices of a class, narrowed by the selectors"
        " of the class and of the request (expressions in CEL, shown as they are). Of several alternatives"
        " the first that can be had is taken."
    ),
    confirm=("kubectl get resourceclaims,resourceclaimtemplates -n {namespace} -o yaml",),
)
def requests(case: Case) -> Iterable[Hit]:
    """Per different list of requests."""
    groups: defaultdict[tuple[Request, ...], list[Asked]] = defaultdict(list)
    for asked in case.claims:
        if asked.source is not None:
            groups[asked.requests].append(asked)
    for wanted, group in groups.items():
        what = ", and ".join(str(request) for request in wanted) or "nothing"
        yield hit(
            *_asked(case, group[0]),
            who=who(pods_of(group)),
            source=labelled(group[0].source),
            what=what,
            namespace=case.subject.namespace,
        )


def _asked(case: Case, asked: Asked) -> Iterable[Evidence]:
    for wanted in (one for request in asked.requests for one in request.alternatives):
        path = f".spec.devices.requests[{wanted.name}]"
        yield Evidence(asked.where, path, str(wanted))
        own = len(wanted.selectors)
        for index, text_ in enumerate(case.dra.selectors(wanted)):
            of_class = index < len(case.dra.selectors(wanted)) - own
            where = f"deviceclass/{wanted.device_class}" if of_class else asked.where
            yield Evidence(where, ".spec.selectors" if of_class else f"{path}.selectors", text_)


@finding(
    "ResourceClaimsNotPlanned",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence="seats are planned without the resource claims of {who}: kube-scheduler may refuse the nodes",
    meaning=(
        "Muster plans CPU, memory and extended resources. Devices of resource claims are allocated by"
        " kube-scheduler's DynamicResources plugin, pod by pod. A gang whose members have claims may be"
        " admitted by Muster and still fail to get its devices for all of them; what 'fits' means here is"
        " without the claims."
    ),
    confirm=("kubectl get resourceclaims -n {namespace}",),
    decide=("keep enough devices for whole gangs free, or give gangs devices as extended resources",),
)
def not_planned(case: Case) -> Iterable[Hit]:
    """What the planner leaves out; a warning for a gang, of which a part could be left without devices."""
    pods = [pod for pod in case.waiting if "resource claims" in pod.template.unmodelled]
    if pods:
        gang = case.gang is not None and case.minimum > 1
        found = [Evidence(f"pod/{pod.key}", ".spec.resourceClaims", _entries(case, pod)) for pod in pods]
        yield hit(
            *found,
            weight=Weight.WARNS if gang else None,
            who=who(pods),
            namespace=case.subject.namespace,
        )


def _entries(case: Case, pod: Pod) -> str:
    return ", ".join(text(item, "name") for item in maps(case.raw(pod), "spec", "resourceClaims"))


@finding(
    "ExtendedResourceByClaim",
    read=Read.CLAIMS,
    weight=Weight.NOTE,
    sentence="{resource} of {who} may come by Dynamic Resource Allocation: device class {name} offers it",
    meaning=(
        "A DeviceClass may offer its devices under the name of an extended resource. A pod that requests the"
        " resource then gets it from a device plugin on nodes that advertise it, and by a claim that the"
        " scheduler makes on others. Allocatable does not count the latter, so a node may have devices for"
        " such a pod although its allocatable says 0."
    ),
    confirm=(
        "kubectl get deviceclass {name} -o yaml",
        "kubectl get resourceclaims -n {namespace}",
    ),
)
def extended(case: Case) -> Iterable[Hit]:
    """Per extended resource that a class offers."""
    for resource in case.devices:
        found = case.dra.by_resource.get(resource)
        if found is None:
            continue
        name = text(found, "metadata", "name")
        pods = [pod for pod in case.asking if dict(pod.template.requests).get(resource)]
        offered = text(found, "spec", "extendedResourceName") or resource
        evidence = [Evidence(f"deviceclass/{name}", ".spec.extendedResourceName", offered)]
        for pod in pods:
            claim = dig(case.raw(pod), "status", "extendedResourceClaimStatus", "resourceClaimName")
            if isinstance(claim, str):
                where = ".status.extendedResourceClaimStatus.resourceClaimName"
                evidence.append(Evidence(f"pod/{pod.key}", where, claim))
        yield hit(*evidence, resource=resource, name=name, who=who(pods), namespace=case.subject.namespace)


FINDINGS: Final[tuple[Topic[Case], ...]] = (requests, not_planned, extended)
