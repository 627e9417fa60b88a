# SPDX-License-Identifier: Apache-2.0
"""Read 3, members: how many there are, who creates the rest, and what keeps them from counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.makers import MAKERS, STATEFUL_SET
from app.explain.objects import text
from app.explain.reads.evidence import object_of
from app.explain.reads.scheduler import owner_of, starts_as_one
from app.explain.words import count, listed


def lacking(case: Case) -> int:
    """Members that the gang's minimum wants and that do not exist, bound, waiting or counted as succeeded."""
    if case.gang is None or not case.gang.defined or case.facts.blind("Pod") or _over(case):
        return 0
    return max(0, case.minimum - case.settled - len(case.waiting))


def _over(case: Case) -> bool:
    """Whether all members there were have ended, and nobody is to create more."""
    none_left = case.pods and not case.waiting and not case.bound
    return bool(none_left) and not any(maker.short for maker in case.makers)


@finding(
    "MembersMissing",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="the gang needs {need} and has {have}: {why}",
    meaning=(
        "A gang starts when as many members as its minimum exist. Muster creates none: a Job, a ReplicaSet, a"
        " StatefulSet or an operator does. If those together are to create fewer than the minimum at once,"
        " the gang never starts, however much is free."
    ),
    confirm=("kubectl get jobs,replicasets,statefulsets,pods -n {namespace}",),
    decide=("lower the minimum of the PodGroup, or raise what creates its pods",),
)
def members_missing(case: Case) -> Iterable[Hit]:
    """Fewer members exist than the minimum."""
    lacks = lacking(case)
    if case.gang is None or not lacks:
        return
    evidence = [Evidence(one.object, ".spec", f"{one.bound_by}; {one.there} there") for one in case.makers]
    yield hit(
        *evidence,
        weight=_weight(case),
        need=count(case.minimum, "member"),
        have=case.minimum - lacks,
        why=_who(case, case.minimum - (case.gang.roll.succeeded)),
        namespace=case.gang.key.namespace,
    )


def _weight(case: Case) -> Weight | None:
    """Where no scheduler waits for the whole gang, those members that exist start without the others."""
    return Weight.WARNS if case.waiting and not starts_as_one(case) else None


def _who(case: Case, minimum: int) -> str:
    if not case.makers:
        unread = [kind.partition(".")[0] for kind in MAKERS if case.facts.blind(kind)]
        if unread:
            return f"what would create more could not be told: not read: {', '.join(unread)}"
        return "nothing was found that would create more"
    wanted = sum(one.wanted for one in case.makers)
    who = listed(f"{one.name} ({one.bound_by})" for one in case.makers if one.wanted or not wanted)
    if wanted < minimum:
        return f"{who} will never create enough"
    return f"{who} has not created them yet" if len(case.makers) == 1 else f"{who} have not created them yet"


@finding(
    "OrderedReady",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{maker} creates one pod after the other, each once the one before is Ready: the gang can never"
    " have {minimum} members that wait together",
    meaning=(
        "With podManagementPolicy OrderedReady, which is the default, a StatefulSet creates pod-1 when pod-0"
        " is Ready. A gang starts pod-0 only when its other members exist. Each waits for the other for ever."
    ),
    confirm=("kubectl get statefulset -n {namespace} {name} -o jsonpath='{{.spec.podManagementPolicy}}'",),
    decide=("create the StatefulSet again with podManagementPolicy Parallel; the field cannot be changed",),
)
def ordered_ready(case: Case) -> Iterable[Hit]:
    """Members are missing, and a StatefulSet that would create them waits for one of those that wait."""
    for maker in case.makers if lacking(case) else ():
        policy = text(maker.raw, "spec", "podManagementPolicy") or "OrderedReady"
        if maker.kind == STATEFUL_SET and policy == "OrderedReady" and maker.short:
            yield hit(
                Evidence(maker.object, ".spec.podManagementPolicy", policy),
                weight=_weight(case),
                maker=maker.name,
                name=text(maker.raw, "metadata", "name"),
                namespace=case.subject.namespace,
                minimum=case.minimum,
            )


@finding(
    "ForeignGate",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="gate {gate}{owner} holds {pods}",
    meaning=(
        "A scheduling gate keeps a pod out of the scheduler's queue until whoever set it lifts it. Muster"
        " never touches a gate of another system; a member that one holds exists but is not ready. If that"
        " system admits pods one by one while the gang waits for all of them, the two wait for each other."
    ),
    confirm=("kubectl get pod -n {namespace} {pod} -o jsonpath='{{.spec.schedulingGates}}'",),
    decide=("ask the owner of the gate {gate} why it is still there",),
)
def foreign_gate(case: Case) -> Iterable[Hit]:
    """Each gate that is not Muster's, with the pods that carry it."""
    gates = Counter(gate for pod in case.waiting for gate in pod.foreign_gates)
    for gate, number in gates.items():
        held = [pod for pod in case.waiting if gate in pod.foreign_gates]
        owner = owner_of(gate)
        spared = case.spares(pod for pod in case.waiting if pod.foreign_gates)
        yield hit(
            *(Evidence(f"pod/{pod.key}", ".spec.schedulingGates", gate) for pod in held),
            weight=Weight.WARNS if spared else None,
            gate=gate,
            owner=f" ({owner})" if owner else "",
            pods=f"pod {held[0].name}" if number == 1 else f"{number} of {len(case.waiting)} waiting pods",
            namespace=held[0].namespace,
            pod=held[0].name,
        )


@finding(
    "PrioritiesMixed",
    read=Read.GROUP,
    sentence="members have the priorities {priorities}: the lowest counts for the whole gang",
    meaning=(
        "A gang queues as a whole, so it has one priority: that of its least important member. With others in"
        " the same gang it stands further back than its owner may think, and is easier to preempt in part."
    ),
    confirm=("kubectl get pods -n {namespace} -o custom-columns=NAME:.metadata.name,P:.spec.priority",),
    decide=("give all members the same priorityClassName",),
)
def priorities_mixed(case: Case) -> Iterable[Hit]:
    """More than one priority among the members that are alive."""
    if case.gang is None or len(case.gang.roll.priorities) < 2:
        return
    alive = [pod for pod in case.pods if pod.alive]
    numbers = Counter(pod.priority for pod in alive)
    shown = {pod.priority: pod for pod in reversed(alive)}
    yield hit(
        *(Evidence(f"pod/{shown[p].key}", ".spec.priority", str(p)) for p in sorted(shown)),
        priorities=listed(f"{p} ({count(numbers[p], 'member')})" for p in sorted(numbers)),
        namespace=case.gang.key.namespace,
    )


@finding(
    "MembersSucceeded",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{ended} of this gang ended well and no member runs: they belong to an earlier run and do not"
    " count",
    meaning=(
        "Members that Succeeded count towards the minimum only while another member is bound and alive."
        " Otherwise a PodGroup that is used again would start with fewer pods than it needs."
    ),
    confirm=("kubectl get pods -n {namespace} --field-selector status.phase=Succeeded",),
)
def members_succeeded(case: Case) -> Iterable[Hit]:
    """Succeeded members beside waiting ones, and none bound."""
    if case.gang is None or not case.waiting or case.bound:
        return
    ended = [pod for pod in case.pods if pod.phase == "Succeeded"]
    if ended:
        evidence = (Evidence(f"pod/{pod.key}", ".status.phase", pod.phase) for pod in ended)
        yield hit(*evidence, ended=count(len(ended), "member"), namespace=case.gang.key.namespace)


@finding(
    "MoreThanMinimum",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="the minimum is {minimum} of {alive} members: {surplus} more may wait while the gang runs",
    meaning=(
        "Members beyond the minimum join when there is room for them. That is meant for elastic work; where"
        " all pods are needed, a lower minimum starts a gang that waits for its last ranks while it holds"
        " devices."
    ),
    confirm=("kubectl get pods -n {namespace} -o wide",),
    decide=("raise the minimum to {alive} if all of them are needed",),
)
def more_than_minimum(case: Case) -> Iterable[Hit]:
    """More members are alive than the minimum, and some of them wait."""
    alive = len(case.waiting) + len(case.bound)
    if case.gang is not None and case.gang.group is not None and case.waiting and alive > case.minimum > 1:
        group = case.gang.key
        yield hit(
            Evidence(object_of(group), "minimum", str(case.minimum)),
            minimum=case.minimum,
            alive=alive,
            surplus=alive - case.minimum,
            namespace=group.namespace,
        )


FINDINGS: Final[tuple[Topic[Case], ...]] = (
    ordered_ready,
    members_missing,
    foreign_gate,
    members_succeeded,
    more_than_minimum,
    priorities_mixed,
)
