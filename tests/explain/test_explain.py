# SPDX-License-Identifier: Apache-2.0
"""From objects to a verdict: one sentence, its code, its exit."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.errors import InputError
from app.domain.gang import GangState
from app.domain.ids import GangKey, NodeName, PodUid
from app.domain.plan import Plan, Seat
from app.domain.reasons import Reason, Refusal
from app.explain.explain import explain
from app.explain.facts import Unseen
from app.explain.finding import Weight
from app.explain.report import Outcome, Report, Subject
from tests.builders import Builder, PodBuilder, key, make_group, make_node, make_pod, pod_of
from tests.explain.dra_objects import make_claim, make_class, make_slice, uses_template
from tests.explain.looking import facts
from tests.explain.workloads import ended, event, job, of, quota, replica_set

NODE = make_node("n1").gpus(8)
OTHERS = make_pod("w0").gpus(4).set("spec.schedulerName", "default-scheduler")
GROUP = make_group("g", 2)
A, B, C = (make_pod(name).gpus(4).gang("g").gated() for name in "abc")
JOB = job("train", 2, gang="g")
QUOTA = (
    'Error creating: pods "train-0" is forbidden: exceeded quota: gpus,'
    " requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, limited:"
    " requests.nvidia.com/gpu=8"
)


def report(what: str, *objects: Builder, **more: Any) -> Report:
    kind, _, name = what.partition("/")
    return explain(facts(*objects, **more), Subject(kind, "default", name))


@pytest.mark.parametrize(
    ("objects", "what", "code", "sentence"),
    [
        pytest.param(
            (NODE, OTHERS),
            "pod/w0",
            Outcome.FITS,
            "pod default/w0 fits now: on node n1; default-scheduler has not placed it yet",
            id="one pod fits",
        ),
        pytest.param(
            (NODE, OTHERS, OTHERS.named("x").gpus(6).on("n1")),
            "pod/w0",
            Outcome.BUSY,
            "pod default/w0 waits: 2 of 8 nvidia.com/gpu free; pod default/x holds 6",
            id="one pod and busy nodes",
        ),
        pytest.param(
            (NODE, make_node("n2"), OTHERS.cpu("32"), OTHERS.named("x").gpus(0).cpu("60").on("n1")),
            "pod/w0",
            Outcome.BUSY,
            "pod default/w0 waits: 4 of 64 cpu free on nodes it may use; pod default/x holds 60",
            id="cpu is short where the devices are, and plenty elsewhere",
        ),
        pytest.param(
            (NODE, OTHERS.gpus(16)),
            "pod/w0",
            Outcome.NEVER_FITS,
            "pod default/w0 can never fit as the cluster stands:"
            " a pod requests 16 nvidia.com/gpu and the largest node has 8",
            id="one pod that can never fit",
        ),
        pytest.param(
            (NODE, OTHERS.on("n1")),
            "pod/w0",
            Outcome.RUNS,
            "pod default/w0 is on node n1; its phase is Running",
            id="one pod runs",
        ),
        pytest.param(
            (NODE, OTHERS.phase("Failed", reason="Evicted")),
            "pod/w0",
            Outcome.FINISHED,
            "pod default/w0 has ended: Evicted",
            id="one pod has ended",
        ),
        pytest.param(
            (NODE, OTHERS.deleting()),
            "pod/w0",
            Outcome.FINISHED,
            "pod default/w0 is being deleted",
            id="one pod is on its way out",
        ),
        pytest.param(
            (NODE, OTHERS.volume_claim("data")),
            "pod/w0",
            Outcome.BLOCKED,
            "pod default/w0 does not start: volume claim data of pod w0 does not exist",
            id="it would fit, and something else blocks",
        ),
        pytest.param(
            (NODE, GROUP, A.on("n1"), B.phase("Failed")),
            "pod/a",
            Outcome.RUNS,
            "pod default/a is on node n1; its phase is Running;"
            " its gang default/g is wounded: 1 of 2 members (minimum 2) run",
            id="a member runs and its gang does not",
        ),
        pytest.param(
            (NODE, GROUP, A),
            "pod/a",
            Outcome.BLOCKED,
            "pod default/a waits: gang default/g has 1 of 2 members",
            id="a member of a gang that is not complete",
        ),
        pytest.param(
            (NODE, GROUP, A),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g waits: it has 1 of 2 members",
            id="a gang is not told its own name again",
        ),
        pytest.param(
            (NODE, GROUP, A, B),
            "podgroup/g",
            Outcome.FITS,
            "podgroup default/g is about to be planned",
            id="a gang that is complete",
        ),
        pytest.param(
            (NODE, GROUP, A.on("n1"), B.on("n1"), C),
            "podgroup/g",
            Outcome.RUNS,
            "podgroup default/g runs with 2 of 3 members (minimum 2); 1 more waits: gang default/g is"
            " about to"
            " be planned",
            id="a gang runs with more to come",
        ),
        pytest.param(
            (NODE, GROUP, A.on("n1"), B.phase("Failed")),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g is wounded: it runs 1 of 2 members (minimum 2):"
            " the gang needs 2 members and has 1: nothing was found that would create more",
            id="a wounded gang, and why",
        ),
        pytest.param(
            (NODE, GROUP, *(pod.scheduler("batch") for pod in (A, B))),
            "pod/a",
            Outcome.FITS,
            "pod default/a fits now: its gang has seats for 2 of 2 pods that wait, on n1; batch has not"
            " placed"
            " them yet",
            id="a member of a gang of another scheduler",
        ),
        pytest.param(
            (NODE, GROUP, *(pod.gpus(8).scheduler("batch") for pod in (A, B))),
            "pod/a",
            Outcome.NEVER_FITS,
            "pod default/a waits: gang default/g can never fit as the cluster stands:"
            " an empty cluster would have seats for 1 of 2 members",
            id="a gang of another scheduler that can never fit",
        ),
        pytest.param(
            (NODE, GROUP),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g has no pods:"
            " the gang needs 2 members and has 0: nothing was found that would create more",
            id="nobody creates pods",
        ),
        pytest.param(
            (NODE, GROUP, JOB, event(JOB, "FailedCreate", QUOTA)),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g has no pods: quota gpus refuses 2 pods of job train:"
            " requested requests.nvidia.com/gpu=1, used requests.nvidia.com/gpu=8 of"
            " requests.nvidia.com/gpu=8",
            id="a quota lets none be created",
        ),
        pytest.param(
            (NODE, JOB.set("spec.suspend", True)),
            "job/train",
            Outcome.BLOCKED,
            "job default/train has no pods:"
            " job train is suspended: it creates no pods until spec.suspend is false",
            id="a suspended Job",
        ),
        pytest.param(
            (NODE, JOB),
            "job/train",
            Outcome.BLOCKED,
            "job default/train has no pods",
            id="a Job without pods and without a reason",
        ),
        pytest.param(
            (NODE, replica_set("web", 0)),
            "replicaset/web",
            Outcome.FINISHED,
            "replicaset default/web has no pods, and wants none",
            id="nothing is wanted",
        ),
        pytest.param(
            (NODE, ended(JOB, "Complete"), of(JOB, make_pod("p").phase("Succeeded"))),
            "job/train",
            Outcome.FINISHED,
            "job default/train is complete",
            id="a Job is complete",
        ),
        pytest.param(
            (NODE, ended(JOB, "Failed", "DeadlineExceeded")),
            "job/train",
            Outcome.FINISHED,
            "job default/train has failed: DeadlineExceeded",
            id="a Job has failed",
        ),
        pytest.param(
            (
                NODE,
                replica_set("web", 2),
                of(replica_set("web", 2), OTHERS.phase("Failed", reason="Evicted")),
            ),
            "replicaset/web",
            Outcome.BLOCKED,
            "replicaset default/web does not run: 1 pod has ended and none is alive; more are to be created,"
            " and are not there yet",
            id="all pods were evicted and none has come instead",
        ),
        pytest.param(
            (NODE, GROUP, JOB, *(of(JOB, pod.phase("Failed")) for pod in (A, B))),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g does not run: 2 pods have ended and none is alive; the gang needs 2 members"
            " and has 0: job train (parallelism 2, completions 2) has not created them yet",
            id="all members have failed and the Job owes more",
        ),
        pytest.param(
            (NODE, GROUP, *(pod.phase("Succeeded") for pod in (A, B))),
            "podgroup/g",
            Outcome.FINISHED,
            "podgroup default/g has ended: 2 pods have ended and none is alive",
            id="a gang that is over",
        ),
        pytest.param(
            (NODE, OTHERS.gpus(8), OTHERS.named("x").nominated("n1").priority(1)),
            "pod/w0",
            Outcome.BUSY,
            "pod default/w0 waits: 8 of 8 nvidia.com/gpu free, 4 of them for nominated pods",
            id="a nominated pod has what looks free",
        ),
        *(
            pytest.param(
                (NODE, OTHERS.gpus(8).scheduler(name).nominated("n1")),
                "pod/w0",
                Outcome.FITS,
                f"pod default/w0 fits now: on node n1; {name} has not placed it yet",
                id=f"a nomination of its own is not in its way, under {name}",
            )
            for name in ("default-scheduler", "muster")
        ),
        pytest.param(
            (NODE, OTHERS.gpus(8).priority(2), OTHERS.named("x").nominated("n1").priority(1)),
            "pod/w0",
            Outcome.FITS,
            "pod default/w0 fits now: on node n1; default-scheduler has not placed it yet",
            id="a nominated pod of lower priority is not in the way",
        ),
        pytest.param(
            (NODE, OTHERS.host_port(80).attempted("0/1 nodes are available: 1 no free ports.")),
            "pod/w0",
            Outcome.UNKNOWN,
            "pod default/w0: could not tell, there is room, and default-scheduler alone judges host ports;"
            " it says: 0/1 nodes are available: 1 no free ports.",
            id="refused for what only its scheduler judges",
        ),
        pytest.param(
            (NODE, OTHERS.attempted("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")),
            "pod/w0",
            Outcome.FITS,
            "pod default/w0 fits now: on node n1; default-scheduler has not placed it yet",
            id="refused for what has come free since",
        ),
        pytest.param(
            (NODE, GROUP, A, B.scheduler("batch").ungated()),
            "pod/a",
            Outcome.BLOCKED,
            "pod default/a waits: gang default/g has 1 of 2 members; 1 more waits for batch",
            id="a member whose gang is split hears what Muster says",
        ),
        pytest.param(
            (NODE, GROUP, A, B.scheduler("batch").ungated()),
            "pod/b",
            Outcome.FITS,
            "pod default/b fits now: its gang has seats for 2 of 2 pods that wait, on n1; batch and muster"
            " have not placed them yet",
            id="the other member of a split gang",
        ),
        pytest.param(
            (NODE, replica_set("web", 2), of(replica_set("web", 2), OTHERS.on("n1"))),
            "replicaset/web",
            Outcome.RUNS,
            "replicaset default/web runs: 1 of 2 pods are on nodes",
            id="not all pods were created",
        ),
        pytest.param(
            (NODE, job("two"), *(of(job("two"), OTHERS.named(name)) for name in ("p0", "p1"))),
            "job/two",
            Outcome.FITS,
            "job default/two fits now: seats for 2 of 2 pods that wait, on n1; default-scheduler has not"
            " placed"
            " them yet",
            id="several pods fit",
        ),
    ],
)
def test_verdict(objects: tuple[Builder, ...], what: str, code: Outcome, sentence: str) -> None:
    found = report(what, *objects).verdict
    assert (found.code, found.sentence) == (code, sentence)


@pytest.mark.parametrize(
    ("what", "reason", "subject", "code", "sentence"),
    [
        ("podgroup/g", Reason.NEVER_FITS, "too big", Outcome.NEVER_FITS,
         "podgroup default/g can never fit as the cluster stands: too big"),
        ("pod/a", Reason.NEVER_FITS, "too big", Outcome.NEVER_FITS,
         "pod default/a waits: gang default/g can never fit as the cluster stands: too big"),
        ("podgroup/g", Reason.BEHIND, "default/x", Outcome.BUSY,
         "podgroup default/g waits behind gang default/x"),
        ("podgroup/g", Reason.BUSY, "no room", Outcome.BUSY,
         "podgroup default/g waits: it has seats for 1 of 2 members: no room"),
        ("podgroup/g", Reason.BACKOFF, "it lapsed", Outcome.BUSY,
         "podgroup default/g waits before its next try: it lapsed"),
        ("podgroup/g", Reason.NO_PACKING, "odd sizes", Outcome.NO_PACKING,
         "podgroup default/g waits: it found no packing, not even on an empty cluster, which is no proof:"
         " odd sizes"),
    ],
)  # fmt: skip
def test_a_gated_pod_is_told_what_muster_says(
    what: str, reason: Reason, subject: str, code: Outcome, sentence: str
) -> None:
    def said(gang: GangKey) -> Refusal:
        return Refusal(reason=reason, gang=gang, have=1, need=2, subject=subject)

    found = report(what, NODE, GROUP, A, B, refusal=said).verdict
    assert (found.code, found.sentence) == (code, sentence)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (Reason.BUSY, "pod default/s waits: no room"),
        (Reason.NEVER_FITS, "pod default/s can never fit as the cluster stands: no room"),
        (Reason.BEHIND, "pod default/s waits behind gang no room"),
    ],
)
def test_a_gang_of_one_is_told_as_a_pod(reason: Reason, sentence: str) -> None:
    def said(gang: GangKey) -> Refusal:
        return Refusal(reason=reason, gang=gang, have=0, need=1, subject="no room")

    assert report("pod/s", NODE, make_pod("s").gpus(1).gated(), refusal=said).verdict.sentence == sentence


def test_reserved_seats_are_told_of_the_gang_and_of_the_member() -> None:
    seen = facts(NODE, GROUP, A, B, C, state=lambda gang: GangState.PLANNED)
    plan = Plan(
        gang=key("g"), seats=tuple(Seat(PodUid(f"uid-{n}"), NodeName("n1"), pod_of(A).template) for n in "ab")
    )
    seen.inventory.reserve(plan)
    assert [explain(seen, Subject(kind, "default", name)).verdict.sentence for kind, name in (
        ("podgroup", "g"), ("pod", "a"), ("pod", "c"),
    )] == [
        "podgroup default/g fits: Muster has reserved 2 seats for it; it is planned",
        "pod default/a fits: Muster has reserved a seat on node n1 for it; its gang default/g is planned",
        "pod default/c waits: gang default/g is about to be planned",
    ]  # fmt: skip


def test_what_is_not_there_is_an_error_that_says_whether_it_was_looked_for() -> None:
    with pytest.raises(InputError, match="there is no pod default/gone; check the name"):
        report("pod/gone", NODE)
    with pytest.raises(InputError, match="namespace default was not read"):
        explain(facts(NODE, namespaces=("a",)), Subject("pod", "default", "gone"))
    with pytest.raises(InputError, match=r"Job\.batch was not read: forbidden"):
        explain(facts(NODE, unseen=(Unseen("Job.batch", "forbidden"),)), Subject("job", "default", "j"))


def test_what_was_not_read_limits_the_verdict() -> None:
    limited = explain(facts(NODE, OTHERS, namespaces=("default",)), Subject("pod", "default", "w0"))
    assert limited.verdict.sentence == (
        "pod default/w0 fits now: on node n1; default-scheduler has not placed it yet;"
        " at best, since other namespaces were not read"
    )
    assert limited.unseen == (
        "pods of the namespaces default alone were read: what is free is an upper bound",
    )


def test_without_pods_nothing_is_said_of_them() -> None:
    unseen = (Unseen("Pod", "forbidden"),)
    for what, *objects in (("podgroup/g", GROUP), ("job/train", JOB)):
        blind = explain(
            facts(NODE, *objects, unseen=unseen), Subject(*what.replace("/", "/default/").split("/"))
        )
        assert (blind.verdict.code, blind.verdict.exit) == (Outcome.UNKNOWN, 2)
        assert blind.verdict.sentence.endswith(": could not tell, since pods were not read")
        assert [f.code for section in blind.sections for f in section.findings if f.weight != "note"] == []


def test_a_node_that_could_not_be_read_takes_the_proof_away() -> None:
    limited = facts(NODE, OTHERS.gpus(16), unseen=(Unseen("Node n2", "an odd quantity"),))
    found = explain(limited, Subject("pod", "default", "w0")).verdict
    assert (found.code, found.sentence) == (
        Outcome.NO_PACKING,
        "pod default/w0 waits: no packing was found, which is no proof, since some nodes could not be read:"
        " a pod requests 16 nvidia.com/gpu and the largest node has 8",
    )


def test_seats_of_pods_that_are_gangs_of_their_own_are_not_in_the_way_of_their_owner() -> None:
    twins = job("twins", 2)
    pods = [of(twins, make_pod(name).gpus(4).gated()) for name in ("t0", "t1")]

    def said(gang: GangKey) -> Refusal:
        return Refusal(reason=Reason.BUSY, gang=gang, have=0, need=1, subject="no room")

    seen = facts(NODE, twins, *pods, refusal=said, state=lambda gang: GangState.PLANNED)
    ask = Subject("job", "default", "twins")
    assert explain(seen, ask).verdict.sentence == "job default/twins waits: no room"
    for name in ("t0", "t1"):
        single = seen.inventory.pods[PodUid(f"uid-{name}")].gang
        assert single is not None
        seen.inventory.reserve(
            Plan(gang=single, seats=(Seat(PodUid(f"uid-{name}"), NodeName("n1"), pod_of(pods[0]).template),))
        )
    assert explain(seen, ask).verdict.sentence == (
        "job default/twins fits: Muster has reserved 2 seats for 2 of 2 waiting pods"
    )


def test_where_no_muster_runs_none_has_reserved_anything() -> None:
    seen = facts(NODE, GROUP, A, B, state=lambda gang: GangState.PLANNED, supposed=True)
    plan = Plan(
        gang=key("g"), seats=tuple(Seat(PodUid(f"uid-{n}"), NodeName("n1"), pod_of(A).template) for n in "ab")
    )
    seen.inventory.reserve(plan)
    found = [explain(seen, Subject(*what)).verdict.sentence for what in (
        ("podgroup", "default", "g"), ("pod", "default", "a"),
    )]  # fmt: skip
    assert found == [
        "podgroup default/g fits: Muster would reserve 2 seats for it now",
        "pod default/a fits: Muster would reserve a seat on node n1 for it now",
    ]


def test_without_nodes_nothing_is_said_about_room() -> None:
    blind = explain(facts(OTHERS, unseen=(Unseen("Node", "forbidden"),)), Subject("pod", "default", "w0"))
    assert (blind.verdict.code, blind.verdict.exit) == (Outcome.UNKNOWN, 2)
    assert blind.verdict.sentence == "pod default/w0: could not tell, since nodes were not read"


def test_what_blocks_comes_first_in_its_section() -> None:
    pods = [A, B.gate("example.com/hold")]
    (group,) = [s for s in report("podgroup/g", NODE, GROUP, *pods).sections if s.title.startswith("Gang")]
    order = [finding.weight for finding in group.findings]
    assert order == sorted(order, key=list(Weight).index)
    assert (order[0], order[-1]) == (Weight.BLOCKS, Weight.NOTE)


def test_a_quota_of_which_no_event_tells_is_named() -> None:
    spent = {"requests.nvidia.com/gpu": "8"}
    found = report("job/train", NODE, JOB, quota("gpus", hard=spent, used=spent)).verdict
    assert (found.code, found.sentence) == (
        Outcome.BLOCKED,
        "job default/train has no pods: quota gpus leaves 0 nvidia.com/gpu, and each of 2 pods to come from"
        " job train asks for 1",
    )


HELD = OTHERS.gate("example.com/hold")
NO_VOLUME = OTHERS.volume_claim("data")
NO_TEMPLATE = uses_template(OTHERS, "gone")
NO_CLAIM = OTHERS.resource_claim("gone")
NO_CLASS = OTHERS.resource_claim("open")
OPEN = make_claim("open").request("nope")


@pytest.mark.parametrize("bad", [HELD, NO_VOLUME, NO_TEMPLATE, NO_CLAIM, NO_CLASS])
def test_what_keeps_one_pod_does_not_block_others_that_can_do_without_it(bad: PodBuilder) -> None:
    two = job("two")
    good, bad = of(two, OTHERS.named("good")), of(two, bad.named("bad"))
    assert report("job/two", NODE, OPEN, two, good, bad).verdict.code is Outcome.FITS
    assert report("pod/good", NODE, OPEN, two, good, bad).verdict.code is Outcome.FITS
    assert report("pod/bad", NODE, OPEN, two, good, bad).verdict.code is Outcome.BLOCKED
    assert report("job/two", NODE, OPEN, two, bad).verdict.code is Outcome.BLOCKED
    three = [pod.scheduler("batch").ungated() for pod in (A, B)]
    member = bad.named("c").gang("g").scheduler("batch")
    assert report("podgroup/g", NODE, OPEN, GROUP, *three, member).verdict.code is Outcome.FITS
    assert report("podgroup/g", NODE, OPEN, GROUP.minimum(3), *three, member.gpus(0)).verdict.exit == 1


@pytest.mark.parametrize("kind", ["ResourceClaim", "DeviceClass", "ResourceSlice"])
def test_claims_that_were_not_read_leave_it_open_whether_the_pod_fits(kind: str) -> None:
    unseen = (Unseen(f"{kind}.resource.k8s.io", "forbidden"),)
    objects = (
        NODE,
        OTHERS.resource_claim("c"),
        make_claim("c").request(),
        make_class(),
        make_slice("n1").gpus(1),
    )
    found = report("pod/w0", *objects, unseen=unseen).verdict
    assert (found.code, found.sentence) == (
        Outcome.UNKNOWN,
        "pod default/w0: could not tell, there is room, and what its resource claims need was not read"
        f" ({kind})",
    )
    assert report("pod/w0", *objects).verdict.code is Outcome.FITS
    assert report("pod/w0", NODE, OTHERS, unseen=unseen).verdict.code is Outcome.FITS
