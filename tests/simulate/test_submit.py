# SPDX-License-Identifier: Apache-2.0
"""Manifests become what the API server and the controllers would make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.codec.objects import GROUP_LABEL
from app.domain.errors import InputError
from app.domain.pod import GATE
from app.simulate.manifests import read_manifests
from app.simulate.submit import Submission
from tests.builders import Builder, Json, make_group, make_node, make_pod

CREATED = "2026-03-01T00:00:00Z"
NODE = make_node("n1").gpus(8).created(CREATED)


def namespace(name: str, value: str | None = None) -> Builder:
    labels = {} if value is None else {"muster.dev/enabled": value}
    return Builder({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def workload(kind: str, name: str = "train", api: str = "apps/v1", **spec: Any) -> Json:
    """A workload of a gang of the same name."""
    template = {
        "metadata": {"labels": {GROUP_LABEL: name}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }
    meta = {"name": name, "namespace": "team-a"}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": {**spec, "template": template}}


def job(**spec: Any) -> Json:
    return workload("Job", api="batch/v1", **spec)


def submitted(
    *objects: Json, there: tuple[Builder, ...] = (NODE, namespace("team-a", "gangs"))
) -> Submission:
    submission = Submission(builder.build() for builder in there)
    submission.add(objects)
    return submission


def pods(submission: Submission) -> list[Json]:
    return [item for item in submission.items if item["metadata"].get("uid") in submission.pods]


def names(submission: Submission) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(submission)]


# -- what controllers create


def test_an_indexed_job_makes_one_pod_for_each_index_that_runs_at_once() -> None:
    made = pods(submitted(job(completions=4, parallelism=3, completionMode="Indexed")))
    assert [pod["metadata"]["name"].rpartition("-")[0] for pod in made] == ["train-0", "train-1", "train-2"]
    meta = made[1]["metadata"]
    assert meta["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert meta["labels"]["batch.kubernetes.io/job-name"] == "train"
    assert meta["labels"][GROUP_LABEL] == "train"
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "train", True)
    assert meta["labels"]["controller-uid"] == owner["uid"]


@pytest.mark.parametrize(
    "many",
    [job(completions=12_000, parallelism=12_000), workload("ReplicaSet", replicas=12_000)],
    ids=["Job", "ReplicaSet"],
)
def test_of_thousands_of_pods_no_two_have_one_name(many: Json) -> None:
    assert len(set(names(submitted(many)))) == 12_000


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({}, 1, id="one by default"),
        pytest.param({"parallelism": 3}, 3, id="a work queue"),
        pytest.param({"parallelism": 5, "completions": 2}, 2, id="fewer completions"),
        pytest.param({"parallelism": 2, "suspend": True}, 0, id="suspended"),
    ],
)
def test_a_job_makes_the_pods_that_run_at_once(spec: Json, count: int) -> None:
    made = names(submitted(job(**spec)))
    assert len(set(made)) == len(made) == count
    assert all(name.startswith("train-") for name in made)


def test_a_workload_without_pods_is_noted() -> None:
    assert submitted(job(suspend=True)).notes == ["Job team-a/train has no pods: it asks for none now"]


def test_a_parallel_stateful_set_makes_all_pods_by_ordinal() -> None:
    spec: Json = {"replicas": 3, "podManagementPolicy": "Parallel", "ordinals": {"start": 5}}
    assert names(submitted(workload("StatefulSet", **spec))) == ["train-5", "train-6", "train-7"]


def test_an_ordered_stateful_set_makes_its_first_pod_and_says_so() -> None:
    submission = submitted(workload("StatefulSet", replicas=3))
    assert names(submission) == ["train-0"]
    assert submission.notes == [
        "StatefulSet team-a/train starts one pod after the other: only the first exists until that runs; "
        "with podManagementPolicy Parallel all do"
    ]


def test_a_deployment_makes_pods_of_its_replica_set() -> None:
    made = pods(submitted(workload("Deployment", replicas=2)))
    owners = {pod["metadata"]["ownerReferences"][0]["name"] for pod in made}
    assert len(made) == 2 and len(owners) == 1
    owner = owners.pop()
    assert all(pod["metadata"]["name"].startswith(f"{owner}-") for pod in made)
    assert all(owner == f"train-{pod['metadata']['labels']['pod-template-hash']}" for pod in made)


# -- what the API server adds


def test_a_submitted_pod_is_younger_than_everything_and_has_an_identity() -> None:
    submission = submitted(job(), make_pod("p", "team-a").build())
    first, second = (pod["metadata"] for pod in pods(submission))
    assert CREATED < first["creationTimestamp"] < second["creationTimestamp"]
    assert first["uid"] != second["uid"]


def test_equal_manifests_give_equal_objects() -> None:
    assert submitted(job(parallelism=3)).items == submitted(job(parallelism=3)).items


def test_an_object_without_a_namespace_comes_into_the_given_one() -> None:
    submission = Submission([], namespace="team-b")
    pod = make_pod("p").build()
    del pod["metadata"]["namespace"]
    submission.add([pod])
    assert pods(submission)[0]["metadata"]["namespace"] == "team-b"


def test_a_generated_name_is_completed() -> None:
    pod = make_pod("p").build()
    pod["metadata"] = {"generateName": "run-"}
    (name,) = names(submitted(pod))
    assert name.startswith("run-") and len(name) == 9


def test_a_pod_group_that_is_there_keeps_its_age_and_takes_the_new_minimum() -> None:
    old = make_group("train", 2, "team-a").created(CREATED)
    submission = submitted(make_group("train", 4, "team-a").uid("new").build(), there=(NODE, old))
    (group,) = [item for item in submission.items if item["kind"] == "PodGroup"]
    assert (group["spec"]["minMember"], group["metadata"]["uid"]) == (4, "uid-train")
    assert group["metadata"]["creationTimestamp"] == CREATED


@pytest.mark.parametrize(
    ("there", "priority"),
    [
        pytest.param(
            Builder({
                "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": "high"}, "value": 7,
            }), 7, id="a PriorityClass",
        ),
        pytest.param(make_pod("o").set("spec.priorityClassName", "high").priority(8), 8, id="another pod"),
    ],
)  # fmt: skip
def test_a_priority_class_becomes_a_priority(there: Builder, priority: int) -> None:
    submission = submitted(make_pod("p").set("spec.priorityClassName", "high").build(), there=(there,))
    assert pods(submission)[0]["spec"]["priority"] == priority


# -- who is Muster's


def test_in_an_enabled_namespace_a_member_is_gated() -> None:
    (pod,) = pods(submission := submitted(job()))
    assert (pod["spec"]["schedulerName"], pod["spec"]["schedulingGates"]) == ("muster", [{"name": GATE}])
    assert submission.left_alone == {}


def test_a_namespace_may_be_switched_on_by_the_same_manifests_in_any_order() -> None:
    submission = submitted(job(), namespace("team-a", "gangs").build(), there=(NODE,))
    assert submission.left_alone == {}


def test_who_names_muster_himself_is_not_gated_elsewhere() -> None:
    (pod,) = pods(submission := submitted(make_pod("p", "team-a").build(), there=(NODE,)))
    assert "schedulingGates" not in pod["spec"]
    assert submission.left_alone == {}


@pytest.mark.parametrize(
    ("pod", "there", "why"),
    [
        pytest.param(
            make_pod("p", "team-a").gang("t").set("spec.schedulerName", None),
            namespace("team-a"),
            "namespace team-a has no label muster.dev/enabled in the snapshot: Muster leaves the pod alone",
            id="namespace not switched on",
        ),
        pytest.param(
            make_pod("p", "team-a").set("spec.schedulerName", None),
            namespace("team-a", "gangs"),
            "namespace team-a is labelled gangs, which does not cover this pod: Muster leaves it alone",
            id="not covered",
        ),
        pytest.param(
            make_pod("p", "team-a").gang("t").scheduler("volcano"),
            namespace("team-a", "gangs"),
            "the pod names schedulerName volcano: Muster leaves it alone",
            id="of another scheduler",
        ),
    ],
)
def test_who_is_left_alone_is_told_why(pod: Builder, there: Builder, why: str) -> None:
    assert list(submitted(pod.build(), there=(NODE, there)).left_alone.values()) == [why]


# -- what cannot be used


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        pytest.param(
            workload("DaemonSet"),
            "DaemonSet train: DaemonSet of apps/v1 is not supported; use Pod, PodGroup, Job, StatefulSet, "
            "Deployment, ReplicaSet, Namespace or a List of these",
            id="a kind that is not known",
        ),
        pytest.param(
            {**job(), "apiVersion": "example.com/v1"},
            "Job train: Job of example.com/v1 is not",
            id="another API",
        ),
        pytest.param(
            job(parallelism="2"), "Job train: spec.parallelism: must be a number from 0", id="no number"
        ),
        pytest.param({**job(), "spec": {}}, "Job train: spec.template.spec is missing", id="no template"),
        pytest.param({**job(), "spec": None}, "Job train: spec is missing", id="no spec"),
        pytest.param(
            make_pod("p", "team-a").gang("t").set("spec.schedulingGates", ["x"]).build(),
            "Pod p: is not shaped as the API has it",
            id="texts for maps",
        ),
        pytest.param(
            make_pod("p", "team-a").set("metadata.labels", ["x"]).build(),
            "Pod p: is not shaped as the API has it",
            id="a list for a map",
        ),
        pytest.param(
            make_pod("p").set("spec.priorityClassName", "x").build(),
            "Pod p: the snapshot has no PriorityClass x",
            id="no such class",
        ),
    ],
)
def test_what_cannot_be_submitted_is_named(obj: Json, text: str) -> None:
    with pytest.raises(InputError) as error:
        submitted(obj)
    assert str(error.value).startswith(text)


def test_a_pod_that_is_there_already_is_not_created_again() -> None:
    with pytest.raises(InputError, match="pod default/p is in the snapshot already"):
        submitted(make_pod("p").build(), there=(make_pod("p"),))


# -- files


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "manifest.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "---\n# nothing\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n"
            "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\n",
            id="YAML documents",
        ),
        pytest.param(
            '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},'
            '{"apiVersion":"v1","kind":"PodList","items":[{"apiVersion":"v1","kind":"Pod",'
            '"metadata":{"name":"b"}}]}]}',
            id="Lists in JSON",
        ),
    ],
)
def test_every_object_of_a_file_is_read_in_order(tmp_path: Path, text: str) -> None:
    assert [obj["metadata"]["name"] for obj in read_manifests(write(tmp_path, text))] == ["a", "b"]


def test_timestamps_stay_text(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {at: 2026-01-01T00:00:00Z}}\n"
    (obj,) = read_manifests(write(tmp_path, text))
    assert obj["metadata"]["annotations"]["at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [", "is neither YAML nor JSON", id="no YAML"),
        pytest.param(b"\xff\xfe\x00", "is neither YAML nor JSON", id="no text"),
        pytest.param("", "has no object in it", id="empty"),
        pytest.param("- a", "document 1: is not a Kubernetes object", id="a list"),
        pytest.param("kind: Pod\napiVersion: v1\n", "document 1: Pod has no metadata.name", id="no name"),
        pytest.param("kind: 1\napiVersion: v1\n", "document 1: is not a Kubernetes object", id="no kind"),
        pytest.param("kind: List\napiVersion: v1\n", "document 1: is a List without items", id="no items"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str | bytes, problem: str) -> None:
    with pytest.raises(InputError) as error:
        read_manifests(write(tmp_path, text))
    assert problem in str(error.value) and "manifest.yaml" in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*none\.yaml: No such file"):
        read_manifests(tmp_path / "none.yaml")
