# SPDX-License-Identifier: Apache-2.0
"""Read 1, shortages: another resource that runs out first, requests no node holds, and what is not judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from app.domain.pod import Pod
from app.domain.resources import is_device
from app.explain.case import Case
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit
from app.explain.reads.evidence import of_pod, on_node
from app.explain.words import in_units


@finding(
    "AnotherResourceRunsOut",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence=(
        "lacking {other}: {short} of {nodes} nodes with {ask} {name} free; a pod asks for {amount},"
        " at most {most} is free on them"
    ),
    meaning=(
        "The devices are there, and something else on the same node is used up: cpu, memory, the number of"
        " pods, local storage, huge pages, or a second kind of device. What counts are requests, not what is"
        " really in use: a node may be idle and have no cpu left to request."
    ),
    confirm=("kubectl describe node {first}",),
    decide=("request less {other} in these pods, or in those that hold it",),
)
def another_resource_runs_out(case: Case) -> Iterable[Hit]:
    """On nodes with enough of the one: what is too little of another."""
    if case.fits:
        return
    for pool in case.pools:
        rows = np.flatnonzero(pool.usable & (pool.free >= pool.ask))
        for other, amount in pool.template.requests:
            free = case.free(other)[rows]
            short = rows[free < amount]
            too_large = amount > int(case.inventory.columns.allocatable(other).max(initial=0))
            if other != pool.name and len(short) and not too_large:  # that is a finding of its own
                yield hit(
                    *(
                        on_node(
                            case,
                            row,
                            other,
                            f"{in_units(other, left)} free, {int(pool.free[row])} {pool.name} free",
                        )
                        for row, left in zip(short.tolist(), free[free < amount].tolist(), strict=True)
                    ),
                    name=pool.name,
                    ask=in_units(pool.name, pool.ask),
                    nodes=len(rows),
                    short=len(short),
                    other=other,
                    amount=in_units(other, amount),
                    most=in_units(other, int(free[free < amount].max())),
                    first=case.inventory.names[short[0]],
                )


@finding(
    "RequestTooLarge",
    read=Read.DEVICES,
    weight=Weight.BLOCKS,
    sentence="pod {pod} asks for {amount} {name}, and the largest node it may use has {largest}{elsewhere}",
    meaning=(
        "No node that admits the pod is large enough, even empty. A pod cannot be spread over nodes: the"
        " request has to become smaller, or a larger node has to come."
    ),
    confirm=("kubectl get nodes -o custom-columns='NODE:.metadata.name,HAS:.status.allocatable.{column}'",),
    decide=("split the pod into more and smaller ones", "add nodes that are large enough"),
)
def request_too_large(case: Case) -> Iterable[Hit]:
    """What a pod asks for and no node that admits it has, even empty."""
    for template in case.templates if case.waiting else ():
        admits = case.inventory.admitting(template)
        for name, amount in template.requests if admits.any() else ():
            there = case.inventory.columns.allocatable(name)
            largest, anywhere = int(there[admits].max()), int(there.max())
            if largest >= amount or (is_device(name) and not anywhere):
                continue
            pod = next(pod for pod in case.waiting if pod.template == template)
            other = f"; a node it may not use has {in_units(name, anywhere)}" if anywhere >= amount else ""
            yield hit(
                of_pod(pod, f".spec.containers[*].resources.requests['{name}']", in_units(name, amount)),
                pod=pod.key,
                name=name,
                amount=in_units(name, amount),
                largest=in_units(name, largest),
                elsewhere=other,
                column=name.replace(".", "\\."),
            )


@finding(
    "NotJudged",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="the pods have constraints that only kube-scheduler can judge: {what}",
    meaning=(
        "Whether the pods fit is worked out from requests, selectors, node affinity, taints and tolerations."
        " What is named here is left to kube-scheduler: that they fit holds only as far as it agrees, and its"
        " own message on the pod says what it misses."
    ),
    confirm=("kubectl describe pod {pod} -n {namespace}",),
)
def not_judged(case: Case) -> Iterable[Hit]:
    """Constraints that the planner does not model."""
    every = {pod.uid: _unjudged(pod) for pod in case.waiting}
    pod = next((pod for pod in case.waiting if every[pod.uid]), None)
    if pod is not None:
        what = dict.fromkeys(one for each in every.values() for one in each)
        yield hit(
            of_pod(pod, ".spec", ", ".join(every[pod.uid])),
            what=", ".join(what),
            pod=pod.name,
            namespace=pod.namespace,
        )


def _unjudged(pod: Pod) -> list[str]:
    """Without resource claims, which are told with the claims."""
    return [one for one in pod.template.unmodelled if one != "resource claims"]


FINDINGS: Final[tuple[Topic[Case], ...]] = (another_resource_runs_out, request_too_large, not_judged)
