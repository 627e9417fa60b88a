# SPDX-License-Identifier: Apache-2.0
"""What slows gangs down: client limits, backoff, sampling, and a weight that lets others outvote Muster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from app.explain.config.configuration import Configuration
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import number

LEAST_QPS: Final = 200.0
LEAST_WEIGHT: Final = 4
"""Muster's best score is 100 times the weight; the default plugins' own spreading adds up to 300."""
SAMPLED_FROM_NODES: Final = 100
"""Below, kube-scheduler looks at all nodes whatever is set."""


@finding(
    "LowQps",
    read=Read.GROUP,
    sentence=(
        "clientConnection.qps is {qps:g}: a gang of hundreds starts at {qps:g} requests a second at most"
    ),
    meaning=(
        "kube-scheduler limits its own requests to the API server: 50 a second unless set. A gang starts"
        " all at once and needs some requests a pod. The API server protects itself (priority and"
        " fairness)."
    ),
    decide=("qps: 500",),
)
def low_qps(config: Configuration) -> Iterable[Hit]:
    """A limit that gangs reach; a negative one means none."""
    qps = float(config.value("clientConnection", "qps", default=0.0)) or 50.0
    if 0 < qps < LEAST_QPS:
        yield hit(config.saw("clientConnection", "qps", default="50 by default"), qps=qps)


@finding(
    "LowBurst",
    read=Read.GROUP,
    sentence="clientConnection.burst is {burst}, below qps ({qps:g}): a gang cannot even use what qps allows",
    meaning=(
        "burst is how many requests may go out at once after a pause, which is what a gang that starts"
        " needs. It is 100 unless set, also where qps is set higher."
    ),
    decide=("burst: {twice}",),
)
def low_burst(config: Configuration) -> Iterable[Hit]:
    """burst below qps."""
    qps = float(config.value("clientConnection", "qps", default=0.0)) or 50.0
    burst = config.value("clientConnection", "burst", default=0) or 100
    if 0 < burst < qps:
        seen = config.saw("clientConnection", "burst", default="100 by default")
        yield hit(seen, qps=qps, burst=burst, twice=int(2 * qps))


@finding(
    "Backoff",
    read=Read.GROUP,
    sentence="pods pause up to {most} s after a failed attempt: devices stay idle while their pods sleep",
    meaning=(
        "kube-scheduler doubles a pod's pause with each failed attempt, from podInitialBackoffSeconds (1)"
        " to podMaxBackoffSeconds (10 unless set). With Muster, pods that wait are gated and never tried,"
        " so there is no storm of retries to hold back."
    ),
    decide=("podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 1",),
)
def backoff(config: Configuration) -> Iterable[Hit]:
    """More than a second."""
    most = config.value("podMaxBackoffSeconds", default=10)
    if most > 1:
        fields = (("podInitialBackoffSeconds", 1), ("podMaxBackoffSeconds", 10))
        yield hit(*(config.saw(field, default=f"{usual} by default") for field, usual in fields), most=most)


@finding(
    "AllNodes",
    read=Read.GROUP,
    sentence=(
        "{where} is 100: every pod is tried on every node, which costs most of the throughput when they"
        " are many"
    ),
    meaning=(
        "With 100, kube-scheduler filters and scores all nodes for each pod and offers them all to Muster."
        " That is not needed: a planned member is nominated, and its node is tried first and alone."
    ),
    decide=("no percentageOfNodesToScore: the default adapts to the size of the cluster",),
)
def all_nodes(config: Configuration) -> Iterable[Hit]:
    """Nothing is sampled."""
    for where, share in _shares(config):
        if share == 100:
            yield hit(config.cite(Evidence("", where, "100")), where=where)


@finding(
    "Sampling",
    read=Read.GROUP,
    sentence=(
        "{where} is {share}: kube-scheduler offers Muster a part of the nodes, which need not hold a pod's"
        " only room"
    ),
    meaning=(
        "From 100 nodes on, kube-scheduler stops looking once it found this share of them. A planned"
        " member is not touched: it is nominated to its seat, and that node is tried first. A single pod"
        " or a member without a gate sees only what is offered, and waits for another attempt when its"
        " room is elsewhere. The default adapts to the size of the cluster, and Muster nominates from"
        " nominate_from_nodes nodes on (100 unless set): with a higher number the seats of planned members"
        " need not be offered either."
    ),
    decide=("no percentageOfNodesToScore, and MUSTER_NOMINATE_FROM_NODES at 100",),
)
def sampling(config: Configuration) -> Iterable[Hit]:
    """A share that was set; or the default, where planned members are not nominated."""
    shares = list(_shares(config))
    for where, share in shares:
        if 0 < share < 100:
            yield hit(config.cite(Evidence("", where, str(share))), where=where, share=share)
    if all(share == 0 for _, share in shares) and config.muster.nominate_from_nodes > SAMPLED_FROM_NODES:
        seen = Evidence("setting", "nominate_from_nodes", str(config.muster.nominate_from_nodes))
        yield hit(seen, where="percentageOfNodesToScore", share="adaptive")


def _shares(config: Configuration) -> Iterator[tuple[str, int]]:
    """What is set for Muster's profile: its own, which wins over that of all."""
    field = "percentageOfNodesToScore"
    if config.ours is not None and (own := number(config.ours.raw, field)) is not None:
        yield f"{config.ours.where}.{field}", own
    elif (share := number(config.raw, field)) is not None:
        yield field, share


@finding(
    "Parallelism",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="parallelism is {workers}, below the default of 16: filtering nodes takes longer",
    meaning=(
        "How many workers kube-scheduler filters and scores nodes with. It has no effect on what is decided."
    ),
    decide=("parallelism: 16, or nothing",),
)
def parallelism(config: Configuration) -> Iterable[Hit]:
    """Fewer workers than usual."""
    workers = config.value("parallelism", default=16)
    if 0 < workers < 16:
        yield hit(config.saw("parallelism"), workers=workers)


@finding(
    "LowWeight",
    read=Read.GROUP,
    sentence=(
        "{where} has weight {given}: the default plugins outvote Muster, and single pods spread over GPU"
        " nodes"
    ),
    meaning=(
        "Muster's scores (0 to 10) count ten times the weight. The default plugins prefer free cpu and"
        " memory, balance and images with up to 300 points together; below a weight of 4 that outweighs"
        " packing, and nodes that gangs need whole are broken up. The guarantee itself does not depend on"
        " it."
    ),
    decide=("weight: 5",),
)
def low_weight(config: Configuration) -> Iterable[Hit]:
    """A weight with which packing loses."""
    for stanza in config.calling("prioritize"):
        weight = number(stanza.raw, "weight") or 0
        if 0 < weight < LEAST_WEIGHT:
            yield hit(config.cite(stanza.saw("weight")), where=stanza.where, given=weight)


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (
    low_qps,
    low_burst,
    backoff,
    all_nodes,
    sampling,
    parallelism,
    low_weight,
)
