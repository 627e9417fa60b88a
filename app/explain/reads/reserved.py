# SPDX-License-Identifier: Apache-2.0
"""Read 1, what is kept for others: seats that Muster reserved, and nominations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from app.domain.pod import Pod
from app.explain.blocker import shown
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.pool import Pool, asked
from app.explain.reads.words import listed, of_pod, pods


@finding(
    "ReservedForOthers",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="{amount} {name} are reserved for others where the pods may go: {who}",
    meaning=(
        "Muster has set seats aside for gangs that are being admitted, and for pods whose binding is under"
        " way. They bind within a minute or so, or give the seats back. Seats bind only pods that Muster"
        " places: another scheduler does not see them."
    ),
    confirm=("kubectl get pods -n {namespace} -o wide",),
)
def reserved_for_others(case: Case) -> Iterable[Hit]:
    """Per resource: what is reserved for others on the nodes that admit the pods."""
    for pool in case.pools if case.ours and not case.fits else ():
        seats = [
            (booking, amount)
            for booking in case.inventory.book
            if booking.gang != case.key and pool.usable[booking.row]
            if (amount := asked(booking.template, pool.name))
        ]
        by_gang: Counter[str] = Counter()
        for booking, amount in seats:
            by_gang[f"gang {booking.gang}" if booking.gang else "pods being bound"] += amount
        if seats:
            gangs = [booking.gang for booking, _ in seats if booking.gang]
            yield hit(
                *(
                    Evidence(f"node/{booking.node}", pool.name, f"{amount} for {booking.gang or booking.uid}")
                    for booking, amount in seats
                ),
                name=pool.name,
                amount=shown(pool.name, by_gang.total()),
                who=_amounts(pool, by_gang),
                namespace=gangs[0].namespace if gangs else case.subject.namespace,
            )


@finding(
    "KeptForNominated",
    read=Read.DEVICES,
    weight=Weight.NOTE,
    sentence="{amount} {name} are kept for {pods} nominated to nodes where the pods may go: {who}",
    meaning=(
        "A pod with `status.nominatedNodeName` and at least the same priority counts as if it were on that"
        " node. Mostly it waits for its victims to end. A nomination that is never cleared keeps devices from"
        " everybody: it belongs to a pod that its scheduler has given up."
    ),
    confirm=("kubectl get pod {pod} -n {namespace} -o jsonpath='{{.status}}'",),
)
def kept_for_nominated(case: Case) -> Iterable[Hit]:
    """Per resource: nominations of others that count against the pods."""
    for pool in case.pools if not case.fits else ():
        found = [pod for pod in case.inventory.foreign_nominations() if _counts(case, pool, pod)]
        if found:
            held = Counter({f"pod {pod.key}": asked(pod.template, pool.name) for pod in found})
            yield hit(
                *(of_pod(pod, ".status.nominatedNodeName", str(pod.nominated)) for pod in found),
                name=pool.name,
                amount=shown(pool.name, held.total()),
                pods=pods(len(found)),
                who=_amounts(pool, held),
                pod=found[0].name,
                namespace=found[0].namespace,
            )


def _counts(case: Case, pool: Pool, pod: Pod) -> bool:
    """Whether a nomination takes something from the pods."""
    if (
        pod.uid in {one.uid for one in case.pods}
        or pod.nominated is None
        or pod.priority < min(one.priority for one in case.waiting)
    ):
        return False
    return bool(asked(pod.template, pool.name) and pool.usable[case.inventory.columns.row_of[pod.nominated]])


def _amounts(pool: Pool, who: Counter[str]) -> str:
    return listed([f"{name} ({shown(pool.name, amount)})" for name, amount in who.most_common()])


FINDINGS: Final[tuple[Topic, ...]] = (reserved_for_others, kept_for_nominated)
