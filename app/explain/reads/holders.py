# SPDX-License-Identifier: Apache-2.0
"""Read 1, holders: who has the devices on nodes that the pods may use, and who has them for nothing.

Tells nothing where the pods fit without what others hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import itemgetter
from typing import Final

from app.codec.objects import stamp
from app.domain.ids import GangKey, PodUid
from app.domain.pod import Pod
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.pool import Ledger, Pool, asked
from app.explain.reads.evidence import name_of, object_of, of_pod
from app.explain.words import count, in_units, listed

STARTUP_SECONDS: Final = 600
"""A pod younger than this that has not started may well be pulling its image."""


@finding(
    "Holders",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="{used} {name} are held where the pods may go, the largest holders: {who}",
    meaning=(
        "Pods hold what they request from when they are bound until they have ended, whether they use it or"
        " not. Members of one gang are added up."
    ),
    confirm=("kubectl get pods -n {namespace} -o wide",),
    decide=("wait for the holders to end, or decide which of them may go",),
)
def holders(case: Case) -> Iterable[Hit]:
    """Per resource: the largest holders on the nodes that admit the pods."""
    for pool, ledger in _ledgers(case):
        if ledger.held:
            most = sorted(
                nlargest(100, ledger.held.items(), key=itemgetter(1)),
                key=lambda item: (-item[1], str(item[0])),
            )
            names = [(_name(case, key), in_units(pool.name, amount)) for key, amount in most[:3]]
            rest = f"; {len(ledger.held) - 3} more" if len(ledger.held) > 3 else ""
            yield hit(
                *(
                    Evidence(_object(case, key), pool.name, f"holds {in_units(pool.name, amount)}")
                    for key, amount in most
                ),
                name=pool.name,
                used=in_units(pool.name, sum(ledger.held.values())),
                who=", ".join(f"{name} ({amount})" for name, amount in names) + rest,
                namespace=_namespace(case, most[0][0]),
            )


@finding(
    "HeldByTerminating",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="{amount} {name} are held by {pods} being deleted{late}",
    meaning=(
        "A pod that is being deleted holds its devices until its containers have stopped and its object is"
        " gone. Within the grace period they are about to come free. Past it something is stuck: kubelet"
        " cannot stop a container (often one that waits for a broken device or volume), the node is down, or"
        " a finalizer keeps the object."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.metadata}}'",),
    decide=("find out what keeps the pods that are past their grace period, before forcing anything",),
)
def held_by_terminating(case: Case) -> Iterable[Hit]:
    """Per resource: pods that are being deleted and still hold it."""
    for pool, ledger in _ledgers(case):
        going = [pod for pod in ledger.idle if pod.deleting]
        late = [pod for pod in going if 0 < pod.expiry < case.facts.now]
        if going:
            yield _idle(
                pool,
                late + [pod for pod in going if pod not in late],
                {pod.uid: (".metadata.deletionTimestamp", stamp(pod.expiry)) for pod in going},
                weight=Weight.WARNS if late else None,
                pods=count(len(going), "pod"),
                late=_late(len(late), len(going)),
            )


@finding(
    "HeldWithoutWorking",
    read=Read.DEVICES,
    weight=Weight.WARNS,
    sentence="{amount} {name} are held by {pods} doing no work: {what}",
    meaning=(
        "A bound pod holds its devices also while its containers crash again and again, while its image"
        " cannot be pulled, or while it has not started for another reason. Members of a gang that wait for"
        " such a pod do no work either."
    ),
    confirm=("kubectl describe pod {pod} -n {namespace}",),
    decide=("mend or delete these pods",),
)
def held_without_working(case: Case) -> Iterable[Hit]:
    """Per resource: pods in a back-off, and pods that have long been bound and have not started."""
    for pool, ledger in _ledgers(case):
        why = {pod.uid: text for pod in ledger.idle if (text := _not_working(case, pod))}
        if why:
            yield _idle(
                pool,
                [pod for pod in ledger.idle if pod.uid in why],
                {uid: (".status", text) for uid, text in why.items()},
                pods=count(len(why), "pod"),
                what=listed([f"{text} ({n})" for text, n in Counter(why.values()).most_common()]),
            )


@finding(
    "LowerPriorityHolders",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="{amount} {name} are held by pods of a priority below {priority}: {preemption}",
    meaning=(
        "Pods of a lower priority could be preempted by kube-scheduler if the waiting pod's PriorityClass"
        " allows it, if evicting them would make room on one node (of everything, not of this resource"
        " alone), and if the pod is no member of a gang: Muster does not preempt for gangs, and no preemption"
        " of its scheduler takes a running gang below its minimum unless nothing cheaper exists."
    ),
    confirm=("kubectl get priorityclasses",),
    decide=("delete pods of a lower priority by hand",),
)
def lower_priority_holders(case: Case) -> Iterable[Hit]:
    """Per resource: what pods of a lower priority hold, and whether preemption would come to it."""
    for pool, ledger in _ledgers(case):
        if ledger.lower:
            first = case.waiting[0]
            yield hit(
                of_pod(first, ".spec.priority", str(first.priority)),
                of_pod(
                    first, ".spec.preemptionPolicy", "PreemptLowerPriority" if first.preempts else "Never"
                ),
                name=pool.name,
                amount=in_units(pool.name, sum(ledger.lower.values())),
                priority=min(pod.priority for pod in case.waiting),
                preemption=_preemption(case, pool, ledger, first),
            )


@finding(
    "FinishedPodsHoldNothing",
    read=Read.DEVICES,
    weight=Weight.FINE,
    sentence="ended, still listed and holding nothing: {pods} with {name}",
    meaning=(
        "Succeeded and Failed pods keep their node name until they are removed. They show in lists of pods"
        " and are counted by some dashboards, and what they requested is free."
    ),
)
def finished_pods_hold_nothing(case: Case) -> Iterable[Hit]:
    """Per resource: pods that have ended on the nodes that admit the pods."""
    return (
        hit(name=pool.name, pods=count(ledger.finished, "pod"))
        for pool, ledger in _ledgers(case)
        if ledger.finished
    )


def _ledgers(case: Case) -> Iterator[tuple[Pool, Ledger]]:
    if not case.fits:
        yield from ((pool, case.ledger[pool.name]) for pool in case.pools)


def _name(case: Case, key: GangKey | PodUid) -> str:
    if isinstance(key, GangKey):
        return name_of(key)
    return f"pod {case.inventory.pods[key].key}"


def _object(case: Case, key: GangKey | PodUid) -> str:
    return object_of(key) if isinstance(key, GangKey) else f"pod/{case.inventory.pods[key].key}"


def _namespace(case: Case, key: GangKey | PodUid) -> str:
    return key.namespace if isinstance(key, GangKey) else case.inventory.pods[key].namespace


def _idle(
    pool: Pool,
    found: list[Pod],
    why: dict[PodUid, tuple[str, str]],
    weight: Weight | None = None,
    **data: str,
) -> Hit:
    """Pods, what they hold, and the field that says why it is for nothing."""
    held = {pod.uid: asked(pod.template, pool.name) for pod in found}
    evidence = (
        of_pod(
            pod,
            why[pod.uid][0],
            f"{why[pod.uid][1]}; holds {in_units(pool.name, held[pod.uid])} on {pod.node}",
        )
        for pod in found
    )
    return hit(
        *evidence,
        weight=weight,
        name=pool.name,
        amount=in_units(pool.name, sum(held.values())),
        pod=found[0].name,
        namespace=found[0].namespace,
        **data,
    )


def _late(late: int, going: int) -> str:
    if not late:
        return ""
    return f"{'' if late == going else f', {late} of them'} past the grace period"


def _not_working(case: Case, pod: Pod) -> str:
    if pod.deleting:
        return ""
    if pod.stuck:
        return pod.stuck
    waited = case.facts.now - pod.created if case.facts.now and pod.created else 0
    return "not started" if waited > STARTUP_SECONDS else ""


def _preemption(case: Case, pool: Pool, ledger: Ledger, pod: Pod) -> str:
    """Whether they would make way, and whether that would do."""
    if not pod.preempts:
        return "the pod never preempts, so says its priority class"
    if pod.grouped:
        return "Muster does not preempt for gangs" if case.ours else f"that is up to {pod.scheduler}"
    if all(pool.free[row] + amount < pool.ask for row, amount in ledger.lower.items()):
        return "preempting them would not free enough on one node"
    return f"preempting some would free enough on one node, which is up to {pod.scheduler}"


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    holders,
    held_by_terminating,
    held_without_working,
    lower_priority_holders,
    finished_pods_hold_nothing,
)
