# SPDX-License-Identifier: Apache-2.0
"""Pods from JSON: whose they are, where they are, what holds them; and JSON that is no pod."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.codec.objects import ObjectDecoder
from app.domain.errors import InputError
from app.domain.ids import GangApi, GangKey
from app.domain.placement import Requirement, Term, Toleration
from app.domain.pod import DeviceHealth
from tests.builders import Json, PodBuilder, key, make_pod, pod_of, term


def test_a_plain_pod() -> None:
    pod = pod_of(make_pod("p", "team").created("1970-01-02T00:00:00Z").priority(7).gated().gang("g"))
    assert (pod.uid, pod.key, pod.created, pod.priority) == ("uid-p", "team/p", 86400, 7)
    assert (pod.scheduler, pod.phase, pod.node, pod.nominated) == ("muster", "Pending", None, None)
    assert pod.gated
    assert not pod.deleting


def test_a_bound_and_deleted_pod() -> None:
    pod = pod_of(make_pod("p").on("n1").deleting())
    assert (pod.node, pod.phase, pod.deleting, pod.gates) == ("n1", "Running", True, ())


NULLS: Json = {
    "metadata": {
        "name": "p", "namespace": None, "uid": "u", "creationTimestamp": None, "deletionTimestamp": None,
        "labels": None, "managedFields": None,
    },
    "spec": {
        "containers": [{"resources": None, "ports": None, "restartPolicy": None}], "initContainers": None,
        "overhead": None, "resources": None, "nodeSelector": None, "affinity": None, "tolerations": None,
        "volumes": None, "topologySpreadConstraints": None, "resourceClaims": None, "nodeName": None,
        "schedulerName": None, "priority": None, "schedulingGates": None, "schedulingGroup": None,
    },
    "status": {"phase": None, "reason": None, "nominatedNodeName": None, "conditions": None},
}  # fmt: skip


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(NULLS, id="every field null"),
        pytest.param({"metadata": {"name": "p", "uid": "u"}}, id="no spec and no status"),
        pytest.param({"metadata": {"name": "p", "uid": "u"}, "spec": None, "status": None}, id="both null"),
    ],
)
def test_null_counts_as_absent(obj: Json) -> None:
    pod = ObjectDecoder().pod(orjson.dumps(obj))
    assert (pod.namespace, pod.scheduler, pod.phase, pod.priority) == (
        "default",
        "default-scheduler",
        "Pending",
        0,
    )
    assert (pod.gates, pod.gang, pod.mixed, pod.node, pod.nominated) == ((), None, None, None, None)
    assert pod.template.requests == (("pods", 1),)
    assert (pod.template.affinity, pod.template.unmodelled) == (None, ())


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("p"), None, id="no group"),
        pytest.param(make_pod("p").gang("g"), key("g"), id="by label"),
        pytest.param(make_pod("p").native("g"), key("g", native=True), id="by spec.schedulingGroup"),
        pytest.param(make_pod("p").gang(""), None, id="an empty label is none"),
        pytest.param(make_pod("p").gang("").native("g"), key("g", native=True), id="nor does it mix"),
        pytest.param(make_pod("p").native(""), None, id="an empty native name is none"),
        pytest.param(make_pod("p").set("spec.schedulingGroup", {}), None, id="a native group without a name"),
        pytest.param(make_pod("p", "a").gang("g"), key("g", "a"), id="the group is of the pod's namespace"),
        pytest.param(make_pod("p").gang("g").gated(), key("g"), id="a gated member is no gang of one"),
        pytest.param(
            make_pod("p").gated(),
            GangKey(GangApi.SINGLE, "default", "p@uid-p"),
            id="a gated pod without a group is a gang of one",
        ),
        pytest.param(
            make_pod("p").gang("").gated(),
            GangKey(GangApi.SINGLE, "default", "p@uid-p"),
            id="also with an empty label",
        ),
        pytest.param(make_pod("p").gate("other/gate"), None, id="a foreign gate makes no gang"),
    ],
)
def test_gang(pod: PodBuilder, want: GangKey | None) -> None:
    assert pod_of(pod).gang == want
    assert pod_of(pod).mixed is None


def test_equal_names_in_the_two_apis_are_two_gangs() -> None:
    assert pod_of(make_pod("p").gang("g")).gang != pod_of(make_pod("p").native("g")).gang


def test_a_pod_of_both_apis_belongs_to_neither_and_both_are_named() -> None:
    pod = pod_of(make_pod("p").gang("old").native("new").gated())
    assert pod.gang is None
    assert pod.mixed == ("scheduling.x-k8s.io/pod-group=old", "spec.schedulingGroup.podGroupName=new")


@pytest.mark.parametrize(
    ("pod", "ours"),
    [
        pytest.param(make_pod("p").nominated("n1", by="muster"), True, id="by muster"),
        pytest.param(make_pod("p").nominated("n1", by="kube-scheduler"), False, id="by the scheduler"),
        pytest.param(make_pod("p").set("status.nominatedNodeName", "n1"), False, id="by nobody known"),
        pytest.param(
            make_pod("p").set("status.nominatedNodeName", "n1").managed("muster", {"f:spec": {}}),
            False,
            id="by another, while muster owns a different field",
        ),
        pytest.param(
            make_pod("p").managed("kubelet", {}).nominated("n1", by="muster"), True, id="among other managers"
        ),
        pytest.param(
            make_pod("p").on("n1").nominated("n1", by="muster"), False, id="of a bound pod: nothing to clear"
        ),
        pytest.param(make_pod("p").nominated("", by="muster"), False, id="that has been cleared already"),
    ],
)
def test_whose_nomination(pod: PodBuilder, ours: bool) -> None:
    assert pod_of(pod).nominated_by_us is ours


def test_an_empty_nomination_is_none() -> None:
    assert pod_of(make_pod("p").set("status.nominatedNodeName", "")).nominated is None


def test_the_outcome_changes_with_each_attempt_until_the_pod_is_bound() -> None:
    first = pod_of(make_pod("p").attempted("0/3 nodes", at="2026-01-01T00:00:00Z"))
    second = pod_of(make_pod("p").attempted("0/3 nodes", at="2026-01-01T00:00:09Z"))
    assert pod_of(make_pod("p")).outcome == ""
    assert "0/3 nodes" in first.outcome
    assert first.outcome != second.outcome
    assert pod_of(make_pod("p").attempted("0/3 nodes").on("n1")).outcome == ""


def test_why_a_pod_failed_is_kept() -> None:
    failed = make_pod("p").on("n1").phase("Failed", reason="UnexpectedAdmissionError")
    assert pod_of(failed).failure == "UnexpectedAdmissionError"
    assert pod_of(failed.phase("Running")).failure == ""


@pytest.mark.parametrize("created", [None, "", "yesterday", "2026-13-45T00:00:00Z"])
def test_an_unreadable_age_is_no_failure(created: str | None) -> None:
    assert pod_of(make_pod("p").set("metadata.creationTimestamp", created)).created == 0


SPREAD = {"maxSkew": 1, "topologyKey": "zone"}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("p"), (), id="nothing"),
        pytest.param(make_pod("p").volume_claim(), ("volumes",), id="a volume claim"),
        pytest.param(
            make_pod("p").append("spec.volumes", {"name": "x", "projected": {}}),
            (),
            id="the token volume is not",
        ),
        pytest.param(make_pod("p").resource_claim(), ("resource claims",), id="a resource claim"),
        pytest.param(make_pod("p").host_port(80), ("host ports",), id="a host port"),
        pytest.param(
            make_pod("p").set("spec.affinity.podAntiAffinity", REQUIRED),
            ("inter-pod affinity",),
            id="required anti-affinity",
        ),
        pytest.param(
            make_pod("p").set("spec.affinity.podAffinity", PREFERRED), (), id="a preference is no constraint"
        ),
        pytest.param(
            make_pod("p").append(
                "spec.topologySpreadConstraints", {**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}
            ),
            ("topology spread",),
            id="a hard spread",
        ),
        pytest.param(
            make_pod("p").append(
                "spec.topologySpreadConstraints", {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}
            ),
            (),
            id="a soft one is not",
        ),
    ],
)
def test_what_only_the_scheduler_can_judge_is_named(pod: PodBuilder, want: tuple[str, ...]) -> None:
    assert pod_of(pod).template.unmodelled == want


def test_where_it_may_go() -> None:
    pod = (
        make_pod("p")
        .selector({"b": "2", "a": "1"})
        .affinity(term(("zone", "In", "x", "y")), term(fields=[("metadata.name", "NotIn", "n1")]))
        .toleration(key="gpu", operator="Exists")
        .toleration(key="team", value="a", effect="NoSchedule")
    )
    template = pod_of(pod).template
    assert template.selector == (("a", "1"), ("b", "2"))
    assert template.affinity == (
        Term(labels=(Requirement("zone", "In", ("x", "y")),)),
        Term(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)),
    )
    assert template.tolerations == (
        Toleration(key="gpu", operator="Exists"),
        Toleration(key="team", value="a", effect="NoSchedule"),
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(make_pod("p").selector({"a": "1"}), id="selector"),
        pytest.param(make_pod("p").in_zone("a"), id="affinity"),
        pytest.param(make_pod("p").toleration(operator="Exists"), id="toleration"),
        pytest.param(make_pod("p").cpu("1"), id="requests"),
        pytest.param(make_pod("p").init({"cpu": "1"}), id="init container"),
        pytest.param(make_pod("p").sidecar({"cpu": "1"}).init({"cpu": "1"}), id="sidecar, then init"),
        pytest.param(
            make_pod("p").init({"cpu": "1"}).sidecar({"cpu": "1"}).cpu("1"), id="init, then sidecar"
        ),
        pytest.param(make_pod("p").overhead({"cpu": "3"}), id="overhead"),
        pytest.param(make_pod("p").pod_level({"cpu": "4"}), id="pod level"),
        pytest.param(make_pod("p").volume_claim(), id="volume"),
        pytest.param(make_pod("p").resource_claim(), id="claim"),
        pytest.param(make_pod("p").host_port(80), id="port"),
        pytest.param(
            make_pod("p").append("spec.topologySpreadConstraints", {"whenUnsatisfiable": "DoNotSchedule"}),
            id="spread",
        ),
    ],
)
def test_one_decoder_does_not_confuse_one_shape_with_another(change: PodBuilder) -> None:
    decoder = ObjectDecoder()
    plain, changed = decoder.pod(make_pod("p").json()), decoder.pod(change.json())
    assert plain.template != changed.template
    assert changed.template == pod_of(change).template
    assert decoder.pod(change.json()).template is changed.template


def test_nor_an_init_container_with_a_sidecar_of_the_same_size() -> None:
    decoder = ObjectDecoder()
    pod = make_pod("p").cpu("1")
    once, always = pod.init({"cpu": "1"}), pod.sidecar({"cpu": "1"})
    found = [dict(decoder.pod(each.json()).template.requests)["cpu"] for each in (once, always)]
    assert found == [1000, 2000]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "Pod", id="nothing"),
        pytest.param(b"{", "Pod", id="half of it"),
        pytest.param(b"[]", "Pod: Expected `object`, got `array`", id="a list"),
        pytest.param(b"{}", "metadata", id="no metadata"),
        pytest.param(b'{"metadata":{"name":"p"}}', "pod default/p: metadata.uid: is missing", id="no UID"),
        pytest.param(b'{"metadata":{"name":7}}', r"\$\.metadata\.name", id="a number for a name"),
        pytest.param(
            make_pod("p").set("spec.schedulingGates", "x").json(),
            r"\$\.spec\.schedulingGates",
            id="gates as text",
        ),
        pytest.param(
            make_pod("p").set("spec.nodeSelector", ["a"]).json(),
            r"default/p: spec\.nodeSelector",
            id="selector as list",
        ),
        pytest.param(
            make_pod("p").set("spec.tolerations", {"a": 1}).json(),
            r"default/p: spec\.tolerations",
            id="tolerations",
        ),
        pytest.param(
            make_pod("p").set("spec.affinity", {"nodeAffinity": 5}).json(),
            r"default/p: spec\.affinity",
            id="affinity",
        ),
        pytest.param(
            make_pod("p").set("status.nominatedNodeName", "n").set("metadata.managedFields", {}).json(),
            r"metadata\.managedFields",
            id="managedFields as object",
        ),
        pytest.param(
            b'{"metadata":{"name":"p","uid":"u"},"spec":{"nodeSelector":{"a":"\xff"}}}',
            r"spec\.nodeSelector: Invalid UTF-8",
            id="bytes that are no text, in a part that is parsed later",
        ),
        pytest.param(
            b'{"metadata":{"name":"p","uid":"u"},"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
            "Pod",
            id="nested without end",
        ),
    ],
)
def test_json_that_is_no_pod_is_an_input_error_that_says_where(raw: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        ObjectDecoder().pod(raw)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "1", "Always", "NaN"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=4,
)
PLACES = [f"metadata.{name}" for name in NULLS["metadata"]] + [f"spec.{name}" for name in NULLS["spec"]]
PLACES += [f"status.{name}" for name in NULLS["status"]] + ["metadata", "spec", "status"]
FULL = make_pod("p").gpus(1).nominated("n1", by="muster").attempted("x")


@settings(deadline=None, max_examples=150, derandomize=True, database=None)
@given(st.sampled_from(PLACES), JSON)
def test_any_json_in_any_place_gives_a_pod_or_an_input_error(place: str, junk: object) -> None:
    try:
        pod = ObjectDecoder().pod(FULL.set(place, junk).json())
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert pod.uid


# -- containers


def _waits(reason: str) -> Json:
    return {"name": "main", "ready": False, "state": {"waiting": {"reason": reason, "message": "back-off"}}}


def _holds(*devices: Json) -> Json:
    allocated = [{"name": "nvidia.com/gpu", "resources": list(devices)}]
    return {"name": "main", "state": {"running": {}}, "allocatedResourcesStatus": allocated}


RUNS: Json = {"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
BOUND = make_pod("p").on("n1")


@pytest.mark.parametrize(
    ("pod", "stuck"),
    [
        pytest.param(BOUND.set("status.containerStatuses", [RUNS]), "", id="running"),
        pytest.param(BOUND.set("status.containerStatuses", [_waits("ContainerCreating")]), "", id="starting"),
        pytest.param(
            BOUND.set("status.containerStatuses", [RUNS, _waits("CrashLoopBackOff")]),
            "CrashLoopBackOff",
            id="the second container",
        ),
        pytest.param(
            BOUND.set("status.containerStatuses", [_waits("PodInitializing")]).set(
                "status.initContainerStatuses", [_waits("ImagePullBackOff")]
            ),
            "ImagePullBackOff",
            id="an init container, while the others wait for it",
        ),
        pytest.param(
            make_pod("p").set("status.containerStatuses", [_waits("CrashLoopBackOff")]), "", id="on no node"
        ),
    ],
)
def test_why_a_container_waits(pod: PodBuilder, stuck: str) -> None:
    assert pod_of(pod).stuck == stuck


def test_devices_that_are_not_healthy_are_kept_and_the_others_are_not() -> None:
    good, bare = {"resourceID": "GPU-0", "health": "Healthy"}, {"resourceID": "GPU-3"}
    bad = {"resourceID": "GPU-1", "health": "Unhealthy", "message": "ECC errors"}
    lost = {"resourceID": "GPU-2", "health": "Unknown", "message": None}
    assert pod_of(BOUND.set("status.containerStatuses", [_holds(good, bad, lost, bare)])).sick == (
        DeviceHealth("nvidia.com/gpu", "GPU-1", "Unhealthy", "ECC errors"),
        DeviceHealth("nvidia.com/gpu", "GPU-2", "Unknown"),
    )
    assert not pod_of(BOUND.set("status.containerStatuses", [_holds(good)])).sick


@pytest.mark.parametrize(
    "statuses",
    [
        pytest.param(None, id="null"),
        pytest.param([{"state": None, "allocatedResourcesStatus": None}], id="null fields"),
        pytest.param([{"state": {"waiting": None}}], id="null state"),
        pytest.param([{"state": {"waiting": {"reason": None}}}], id="no reason"),
        pytest.param([{"allocatedResourcesStatus": [{"name": None, "resources": None}]}], id="no devices"),
    ],
)
def test_container_statuses_without_values_are_as_good_as_none(statuses: object) -> None:
    pod = pod_of(BOUND.set("status.containerStatuses", statuses))
    assert (pod.node, pod.stuck, pod.sick) == ("n1", "", ())


def test_a_deleted_pod_says_when_its_grace_period_is_over() -> None:
    assert pod_of(make_pod("p").set("metadata.deletionTimestamp", "1970-01-02T00:00:00Z")).expiry == 86400
    assert pod_of(make_pod("p")).expiry == 0


@pytest.mark.parametrize(
    ("annotations", "waived"),
    [
        pytest.param({"muster.dev/gate": "none", "other": "x"}, True, id="none"),
        pytest.param({"muster.dev/gate": "gang"}, False, id="another value"),
        pytest.param({"muster.dev/gate": None}, False, id="null"),
        pytest.param({"other": 'is "muster.dev/gate" here?'}, False, id="the name in a value"),
        pytest.param({"muster.dev/gate": 1}, False, id="a number"),
        pytest.param(["muster.dev/gate"], False, id="a list"),
        pytest.param(None, False, id="no annotations"),
    ],
)
def test_the_gate_is_waived_by_one_annotation_however_odd_the_others(
    annotations: object, waived: bool
) -> None:
    assert pod_of(make_pod("p").set("metadata.annotations", annotations)).waived is waived
