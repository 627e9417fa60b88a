# SPDX-License-Identifier: Apache-2.0
"""The admission policy on the real API server, without and with the native group API.

Most pods are created as a dry run: the answer is the pod as admission left it, and nothing stays behind.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.deploy.manifests import DEPLOY, ENABLED_LABEL, GATE, GROUP_LABEL, Object, documents

pytestmark = pytest.mark.real

GANGS, GPUS, OFF, OTHER = "ns-gangs", "ns-gpus", "ns-off", "ns-other-value"
VARIANTS = [GANGS, GPUS]
FOREIGN = "example.com/quota"


@pytest.fixture(scope="module", params=[False, True], ids=["no-native-api", "native-api"])
def native(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def cluster(native: bool) -> Iterator[Cluster]:
    with Cluster(native_groups=native, controller_manager=False, kwok=False) as started:
        for name, value in ((GANGS, "gangs"), (GPUS, "gpus"), (OFF, None), (OTHER, "other")):
            started.create_namespace(name, labels={ENABLED_LABEL: value} if value else {})
        for item in documents(DEPLOY / "admission-policy.yaml"):
            started.api.create(item)
        started.wait_for(lambda: is_ours(admit(started, GANGS, member())), 60, "the policy works")
        yield started


def make_pod(**spec: Any) -> Object:
    containers = [{"name": "main", "image": "busybox:1.37"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
    }


def member(group: str = "train", **spec: Any) -> Object:
    pod = make_pod(**spec)
    pod["metadata"]["labels"] = {GROUP_LABEL: group}
    return pod


def asking(limits: dict[str, str], *, where: str = "containers") -> Object:
    pod = make_pod(initContainers=[{"name": "init", "image": "busybox:1.37"}])
    pod["spec"][where][0]["resources"] = {"limits": limits}
    return pod


def gpu_pod(**spec: Any) -> Object:
    pod = asking({"nvidia.com/gpu": "1"})
    pod["spec"].update(spec)
    return pod


def owned_by(kind: str, api_version: str) -> Object:
    pod = member()
    owner = {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "1", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def admit(cluster: Cluster, namespace: str, pod: Object) -> Object:
    answer: Object = cluster.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    return answer


def gates(pod: Object) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def is_ours(pod: Object) -> bool:
    """Both or neither: a gate without the scheduler, or the reverse, fails here."""
    has_gate, has_name = GATE in gates(pod), pod["spec"]["schedulerName"] == "muster"
    assert has_gate == has_name, pod["spec"]
    return has_gate


# --- which pods each variant covers ---


@pytest.mark.parametrize("namespace", VARIANTS)
def test_members_of_a_labelled_group_are_covered_by_both_variants(cluster: Cluster, namespace: str) -> None:
    assert is_ours(admit(cluster, namespace, member()))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_members_of_a_native_group_are_covered_by_both_variants(
    cluster: Cluster, native: bool, namespace: str
) -> None:
    """Without the native API the field is dropped only after admission: gated, but of no group when stored.

    No expression can see that coming; Muster releases such a pod: the policy does not cover what is stored.
    """
    answer = admit(cluster, namespace, make_pod(schedulingGroup={"podGroupName": "train"}))
    assert is_ours(answer)
    assert ("schedulingGroup" in answer["spec"]) == native


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_scheduling_group_without_a_name_is_no_group(cluster: Cluster, namespace: str) -> None:
    with_null = make_pod(schedulingGroup=None)
    assert not is_ours(admit(cluster, namespace, with_null))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_an_empty_group_label_is_no_group(cluster: Cluster, namespace: str) -> None:
    assert not is_ours(admit(cluster, namespace, member("")))


@pytest.mark.parametrize("namespace", VARIANTS)
@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="nothing asked"),
        pytest.param(asking({"cpu": "1", "memory": "1Gi"}), id="cpu and memory"),
        pytest.param(asking({"cpu": "1", "hugepages-2Mi": "2Mi"}), id="hugepages"),
        pytest.param(asking({"nvidia.com/gpu": "0"}), id="zero devices"),
        pytest.param(asking({"batch.kubernetes.io/slot": "1"}), id="a name of kubernetes.io"),
    ],
)
def test_pods_without_group_and_device_are_covered_by_none(
    cluster: Cluster, namespace: str, pod: Object
) -> None:
    assert not is_ours(admit(cluster, namespace, pod))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(asking({"nvidia.com/gpu": "1"}), id="whole gpu"),
        pytest.param(asking({"amd.com/gpu": "8"}), id="another vendor"),
        pytest.param(asking({"example.com/fpga": "2"}), id="any extended resource"),
        pytest.param(
            asking({"nvidia.com/gpu": "1"}, where="initContainers"), id="only an init container asks"
        ),
        pytest.param(
            make_pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]), id="a claim"
        ),
    ],
)
def test_pods_that_ask_for_a_device_are_covered_by_gpus_alone(cluster: Cluster, pod: Object) -> None:
    assert is_ours(admit(cluster, GPUS, pod))
    assert not is_ours(admit(cluster, GANGS, pod))


def test_the_second_container_counts_and_mig_profiles_are_devices(cluster: Cluster) -> None:
    pod = make_pod()
    resources = {"requests": {"nvidia.com/mig-1g.10gb": 1}, "limits": {"nvidia.com/mig-1g.10gb": 1}}
    pod["spec"]["containers"].append({"name": "second", "image": "busybox:1.37", "resources": resources})
    assert is_ours(admit(cluster, GPUS, pod))
    assert not is_ours(admit(cluster, GANGS, pod))


@pytest.mark.parametrize("namespace", [OFF, OTHER, "default"])
@pytest.mark.parametrize("pod", [member(), gpu_pod()], ids=["member", "gpu"])
def test_other_namespaces_are_left_alone(cluster: Cluster, namespace: str, pod: Object) -> None:
    assert not is_ours(admit(cluster, namespace, pod))


# --- exclusions ---


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_pod_of_another_scheduler_keeps_it(cluster: Cluster, namespace: str) -> None:
    answer = admit(cluster, namespace, member(schedulerName="kueue-or-whoever"))
    assert answer["spec"]["schedulerName"] == "kueue-or-whoever"
    assert not is_ours(answer)


@pytest.mark.parametrize("namespace", VARIANTS)
@pytest.mark.parametrize("name", ["default-scheduler", "muster", ""])
def test_a_pod_that_names_the_default_or_muster_is_covered(
    cluster: Cluster, namespace: str, name: str
) -> None:
    assert is_ours(admit(cluster, namespace, member(schedulerName=name)))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_pod_that_has_a_node_is_left_alone(cluster: Cluster, namespace: str) -> None:
    assert not is_ours(admit(cluster, namespace, member(nodeName="node-1")))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_pod_of_a_daemonset_is_left_alone(cluster: Cluster, namespace: str) -> None:
    assert not is_ours(admit(cluster, namespace, owned_by("DaemonSet", "apps/v1")))


@pytest.mark.parametrize("namespace", VARIANTS)
@pytest.mark.parametrize(("kind", "version"), [("Job", "batch/v1"), ("DaemonSet", "example.com/v1")])
def test_pods_of_other_owners_are_covered(cluster: Cluster, namespace: str, kind: str, version: str) -> None:
    assert is_ours(admit(cluster, namespace, owned_by(kind, version)))


@pytest.mark.parametrize("namespace", VARIANTS)
@pytest.mark.parametrize("name", ["system-cluster-critical", "system-node-critical"])
def test_a_pod_of_a_system_priority_class_is_left_alone(cluster: Cluster, namespace: str, name: str) -> None:
    assert not is_ours(admit(cluster, namespace, member(priorityClassName=name)))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_pod_of_another_priority_class_is_covered(cluster: Cluster, namespace: str) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    if not cluster.api.exists(f"{path}/urgent"):
        cluster.post(path, {"metadata": {"name": "urgent"}, "value": 1000})
    # The API server's admission sees a new class through a watch of its own, a moment later.
    pod = member(priorityClassName="urgent")
    assert is_ours(cluster.wait_for(lambda: admit(cluster, namespace, pod), 15, "the new class is known"))


@pytest.mark.parametrize("namespace", VARIANTS)
def test_each_exclusion_holds_for_a_pod_that_asks_for_a_gpu_too(cluster: Cluster, namespace: str) -> None:
    for spec in (
        {"schedulerName": "other"},
        {"nodeName": "node-1"},
        {"priorityClassName": "system-node-critical"},
    ):
        assert not is_ours(admit(cluster, namespace, gpu_pod(**spec)))
    agent = gpu_pod()
    agent["metadata"]["ownerReferences"] = owned_by("DaemonSet", "apps/v1")["metadata"]["ownerReferences"]
    assert not is_ours(admit(cluster, namespace, agent))


# --- gates ---


def test_gates_of_others_stay_beside_ours(cluster: Cluster) -> None:
    pod = member(schedulingGates=[{"name": FOREIGN}, {"name": "example.com/other"}])
    assert gates(admit(cluster, GANGS, pod)) == [FOREIGN, "example.com/other", GATE]


def test_a_gate_that_is_there_is_not_added_again(cluster: Cluster) -> None:
    assert gates(admit(cluster, GANGS, member(schedulingGates=[{"name": GATE}]))) == [GATE]
    pod = member(schedulingGates=[{"name": GATE}, {"name": FOREIGN}])
    assert gates(admit(cluster, GANGS, pod)) == [GATE, FOREIGN]


def test_a_pod_with_repeated_names_in_its_lists_passes(cluster: Cluster) -> None:
    """The API allows these repetitions, and a patch must neither refuse nor merge them."""
    pod = member()
    pod["spec"]["containers"][0].update(
        env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        ports=[{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}, {"containerPort": 53}],
    )
    answer = admit(cluster, GANGS, pod)
    assert is_ours(answer)
    assert [item["value"] for item in answer["spec"]["containers"][0]["env"]] == ["1", "2"]
    assert len(answer["spec"]["containers"][0]["ports"]) == 3


def test_nothing_but_scheduler_and_gate_changes(cluster: Cluster) -> None:
    pod = gpu_pod(priorityClassName="system-node-critical")  # left alone: the pod as everybody else leaves it
    expected = admit(cluster, GPUS, pod)["spec"]
    expected["schedulerName"] = "muster"
    expected["schedulingGates"] = [{"name": GATE}]
    answer = admit(cluster, GPUS, gpu_pod())["spec"]
    same = expected.keys() - {"priority", "priorityClassName", "preemptionPolicy", "tolerations"}
    assert {key: answer.get(key) for key in same} == {key: expected[key] for key in same}


def test_a_change_of_a_pod_that_exists_adds_no_gate(cluster: Cluster) -> None:
    pod = make_pod()
    pod["metadata"] |= {"name": "late", "namespace": GANGS}
    cluster.api.create(pod)
    path = f"/api/v1/namespaces/{GANGS}/pods/late"
    patched = cluster.patch(path, {"metadata": {"labels": {GROUP_LABEL: "train"}}})
    assert not is_ours(patched)
    cluster.delete(f"{path}?gracePeriodSeconds=0")


def test_our_gate_can_be_lifted_alone(cluster: Cluster) -> None:
    pod = member(schedulingGates=[{"name": FOREIGN}])
    pod["metadata"] |= {"name": "lifted", "namespace": GANGS}
    cluster.api.create(pod)
    path = f"/api/v1/namespaces/{GANGS}/pods/lifted"
    lift = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    patched = cluster.patch(path, lift, "application/strategic-merge-patch+json")
    assert gates(patched) == [FOREIGN]
    cluster.delete(f"{path}?gracePeriodSeconds=0")


# --- together with other mutations ---


def test_a_pod_that_gets_its_gpu_from_a_later_mutation_is_covered(cluster: Cluster) -> None:
    """`reinvocationPolicy: IfNeeded`: the policy looks again after another one has changed the pod."""
    policy, binding, _ = (copy.deepcopy(item) for item in documents(DEPLOY / "admission-policy.yaml"))
    policy["metadata"]["name"] = binding["metadata"]["name"] = "zz-adds-a-gpu"
    policy["spec"] |= {
        "reinvocationPolicy": "Never",
        "variables": [],
        "matchConditions": [
            {
                "name": "wants",
                "expression": "object.metadata.?annotations[?'test/gpu'].orValue('') == 'yes'",
            }
        ],
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": "[JSONPatch{op: 'add', path: '/spec/containers/0/resources',"
                    " value: Object.spec.containers.resources{limits: {'nvidia.com/gpu': '1'},"
                    " requests: {'nvidia.com/gpu': '1'}}}]"
                },
            }
        ],
    }
    binding["spec"]["policyName"] = "zz-adds-a-gpu"
    pod = make_pod()
    pod["metadata"]["annotations"] = {"test/gpu": "yes"}
    cluster.api.create(policy)
    cluster.api.create(binding)
    try:
        answer = cluster.wait_for(lambda: with_gpu(admit(cluster, GPUS, pod)), 60, "the GPU is added")
        assert is_ours(answer)
        assert gates(answer) == [GATE]
    finally:
        for item in (binding, policy):
            cluster.delete(cluster.api.path_of(item))


def test_a_covered_pod_is_written_out_and_read_back_once(cluster: Cluster) -> None:
    """The API server asks a policy again about its own change, and each mutation that it asks for costs it
    the whole pod in JSON, there and back: more than all the rest of admission."""
    assert mutations_of(cluster, member()) == 1
    assert mutations_of(cluster, make_pod()) <= 2, "a pod that is not covered may become so: it is seen again"


def mutations_of(cluster: Cluster, pod: Object) -> int:
    """How often a mutation of the policy is asked for while a pod is created."""
    before = mutations(cluster)
    admit(cluster, GANGS, pod)
    return mutations(cluster) - before


def mutations(cluster: Cluster) -> int:
    """How often one has been asked for, whatever it changed."""
    metrics = cluster.api.text("/metrics").splitlines()
    counts = (line for line in metrics if line.startswith("apiserver_mutating_admission_policy_check_total{"))
    return sum(int(float(line.rpartition(" ")[2])) for line in counts if 'policy="muster"' in line)


def with_gpu(pod: Object) -> Object:
    limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return pod if "nvidia.com/gpu" in limits else {}


# --- without the gate: on request, and in a burst ---

GATE_ANNOTATION = "muster.dev/gate"
NONE = {GATE_ANNOTATION: "none"}
MUSTER = "/api/v1/namespaces/muster-system"


def annotated(pod: Object, **further: str) -> Object:
    pod["metadata"]["annotations"] = {**NONE, **further}
    return pod


def is_ours_ungated(pod: Object, *, gates_left: list[str] | None = None) -> bool:
    """Muster places it, and no gate of ours keeps it from the queue."""
    annotation = pod["metadata"].get("annotations", {}).get(GATE_ANNOTATION)
    ungated = annotation == "none" and gates(pod) == (gates_left or [])
    return ungated and pod["spec"]["schedulerName"] == "muster"


def burst(cluster: Cluster, *, lasts: bool) -> None:
    """Say so as Muster does, and wait until admission has heard."""
    cluster.api.patch(MUSTER, {"metadata": {"labels": {"muster.dev/burst": "true" if lasts else None}}})
    heard = is_ours_ungated if lasts else is_ours
    cluster.wait_for(lambda: heard(admit(cluster, GANGS, member())), 10, "admission knows of the burst")


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> None:
    """Muster's namespace; before, the policy works without."""
    cluster.create_namespace("muster-system")


@pytest.fixture(params=range(3), ids=lambda turn: f"turn-{turn}")
def lasting(cluster: Cluster, installed: None, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A burst. The API server takes the two bindings in an order of its own, drawn anew when one changes:
    several turns have a chance to see both."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/muster-burst"
    cluster.api.patch(path, {"metadata": {"labels": {"turn": str(request.param)}}})
    burst(cluster, lasts=True)
    yield cluster
    burst(cluster, lasts=False)


@pytest.mark.parametrize("namespace", VARIANTS)
def test_a_member_may_ask_for_no_gate(cluster: Cluster, namespace: str) -> None:
    assert is_ours_ungated(admit(cluster, namespace, annotated(member())))
    foreign = annotated(member(schedulingGates=[{"name": FOREIGN}, {"name": GATE}]))
    assert is_ours_ungated(admit(cluster, namespace, foreign), gates_left=[FOREIGN])


def test_a_single_pod_queues_by_its_gate_whatever_it_asks_for(cluster: Cluster) -> None:
    assert is_ours(admit(cluster, GPUS, annotated(gpu_pod())))


def test_another_value_asks_for_nothing(cluster: Cluster) -> None:
    pod = member()
    pod["metadata"]["annotations"] = {GATE_ANNOTATION: "gang"}
    assert is_ours(admit(cluster, GANGS, pod))


def test_without_the_label_the_namespace_changes_nothing(cluster: Cluster, installed: None) -> None:
    assert is_ours(admit(cluster, GANGS, member()))


def test_in_a_burst_members_come_without_the_gate(lasting: Cluster) -> None:
    assert is_ours_ungated(admit(lasting, GANGS, member()))
    assert is_ours_ungated(admit(lasting, GPUS, member()))
    gated = member(schedulingGates=[{"name": FOREIGN}, {"name": GATE}])
    assert is_ours_ungated(admit(lasting, GANGS, gated), gates_left=[FOREIGN])
    assert is_ours_ungated(admit(lasting, GANGS, annotated(member(), other="kept")))


def test_in_a_burst_all_else_is_as_ever(lasting: Cluster) -> None:
    assert is_ours(admit(lasting, GPUS, gpu_pod())), "single pods queue by their gate"
    assert not is_ours(admit(lasting, GANGS, make_pod()))
    assert not is_ours(admit(lasting, OFF, member()))
    assert not is_ours(admit(lasting, GANGS, member(nodeName="n1")))
    pod = member()
    pod["metadata"]["annotations"] = {"other": "kept"}
    assert admit(lasting, GANGS, pod)["metadata"]["annotations"] == {"other": "kept", **NONE}


def test_in_a_burst_a_member_is_written_out_and_read_back_twice_at_most(lasting: Cluster) -> None:
    assert mutations_of(lasting, member()) <= 2
