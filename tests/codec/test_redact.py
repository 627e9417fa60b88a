# SPDX-License-Identifier: Apache-2.0
"""What redaction leaves is enough to decide and explain, and nothing that it does not list gets through."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.codec.kinds import KINDS
from app.codec.objects import ObjectDecoder
from app.codec.redact import Redactor
from app.codec.snapshot import SnapshotInfo, Unseen, value_of
from app.domain.errors import InputError
from tests.builders import Builder, Json, make_group, make_node, make_pod

SECRET = "s3cr3t"
SHY = Redactor()
FRANK = Redactor(keep_environment=True)

TEMPLATE: Json = {
    "metadata": {"labels": {"app": "x"}, "annotations": {"vault/token": SECRET}},
    "spec": {
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": SECRET}],
        "securityContext": {"seLinuxOptions": {"user": SECRET}},
        "hostAliases": [{"ip": SECRET, "hostnames": [SECRET]}],
        "initContainers": [{"name": "i", "image": "busybox", "command": [SECRET], "args": [SECRET]}],
        "containers": [
            {
                "name": "c",
                "image": "trainer:1",
                "command": ["sh", "-c", SECRET],
                "args": [SECRET],
                "workingDir": SECRET,
                "env": [
                    {"name": "TOKEN", "value": SECRET},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": SECRET}}},
                ],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "volumeMounts": [{"name": "v", "mountPath": SECRET}],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Auth", "value": SECRET}]}},
                "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
                "resources": {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "4"}},
                "ports": [{"containerPort": 1, "hostPort": 9, "hostIP": SECRET}],
            }
        ],
        "volumes": [
            {"name": "v", "secret": {"secretName": SECRET}},
            {"name": "w", "configMap": {"name": SECRET}},
            {"name": "h", "hostPath": {"path": SECRET}},
            {"name": "n", "nfs": {"server": SECRET, "path": SECRET}},
            {"name": "d", "csi": {"driver": "csi.example.com", "volumeAttributes": {"share": SECRET}}},
            {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": SECRET}}]}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    },
}


def obj(api_version: str, kind: str, **rest: Any) -> Json:
    """An object whose metadata holds what no metadata should."""
    applied = {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "kueue.x-k8s.io/queue-name": "q"}
    fields = [{"manager": SECRET, "operation": "Update", "fieldsV1": {"f:spec": {f"f:{SECRET}": {}}}}]
    meta: Json = {"name": "x", "namespace": "ns", "uid": "u", "labels": {"team": "a"}}
    meta |= {"annotations": applied, "managedFields": fields, "selfLink": SECRET}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, SECRET: SECRET, **rest}


CLAIM: Json = {
    "devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}],
        "config": [{"opaque": {"driver": "d", "parameters": {"key": SECRET}}}],
    }
}
STATUS: Json = {
    "phase": "Running",
    "podIP": SECRET,
    "podIPs": [{"ip": SECRET}],
    "hostIP": SECRET,
    "hostIPs": [{"ip": SECRET}],
    "containerStatuses": [
        {
            "name": "c",
            "restartCount": 7,
            "imageID": SECRET,
            "containerID": SECRET,
            "state": {"terminated": {"exitCode": 1, "message": SECRET, "containerID": SECRET}},
            "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": [{"health": "Unhealthy"}]}],
        }
    ],
}
JOB: Json = {"parallelism": 2, "template": TEMPLATE}
PLANTED: dict[str, Json] = {
    "pod": obj("v1", "Pod", spec=TEMPLATE["spec"], status=STATUS),
    "node": obj(
        "v1",
        "Node",
        spec={"podCIDR": SECRET, "providerID": SECRET, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        status={
            "allocatable": {"cpu": "4"},
            "addresses": [{"type": "InternalIP", "address": SECRET}],
            "images": [{"names": [SECRET], "sizeBytes": 1}],
            "nodeInfo": {"machineID": SECRET, "systemUUID": SECRET, "bootID": SECRET, "kubeletVersion": "v1"},
            "volumesAttached": [{"name": SECRET, "devicePath": SECRET}],
        },
    ),
    "job": obj("batch/v1", "Job", spec=JOB),
    "replicaset": obj("apps/v1", "ReplicaSet", spec={"template": TEMPLATE}),
    "deployment": obj("apps/v1", "Deployment", spec={"template": TEMPLATE}),
    "statefulset": obj(
        "apps/v1",
        "StatefulSet",
        spec={
            "template": TEMPLATE,
            "volumeClaimTemplates": [
                {"metadata": {"name": "d", "annotations": {"a": SECRET}}, "spec": {"dataSource": SECRET}}
            ],
        },
    ),
    "jobset": obj(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        spec={"replicatedJobs": [{"name": "w", "template": {"metadata": {}, "spec": JOB}}]},
    ),
    "leaderworkerset": obj(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        spec={"leaderWorkerTemplate": {"leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE}},
    ),
    "workload": obj(
        "kueue.x-k8s.io/v1beta1",
        "Workload",
        spec={"podSets": [{"name": "main", "template": TEMPLATE}]},
        status={"admissionChecks": [{"podSetUpdates": [{"annotations": {"a": SECRET}}]}]},
    ),
    "claim": obj(
        "resource.k8s.io/v1",
        "ResourceClaim",
        spec=CLAIM,
        status={"allocation": CLAIM, "devices": [{"driver": "d", "data": {"key": SECRET}}]},
    ),
    "claim template": obj(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        spec={"metadata": {"annotations": {"a": SECRET}}, "spec": CLAIM},
    ),
    "class": obj("resource.k8s.io/v1", "DeviceClass", spec=CLAIM["devices"]),
}


def redacted(item: Json, redactor: Redactor = SHY) -> Json:
    raw = redactor.item(orjson.dumps(item))
    assert raw is not None
    found: Json = orjson.loads(raw)
    return found


@pytest.mark.parametrize("item", PLANTED.values(), ids=PLANTED.keys())
def test_no_secret_gets_through(item: Json) -> None:
    assert SECRET not in orjson.dumps(redacted(item)).decode()


@pytest.mark.parametrize("item", PLANTED.values(), ids=PLANTED.keys())
def test_what_an_object_is_called_stays_with_what_says_how_it_is_queued(item: Json) -> None:
    found = redacted(item)
    assert (found["apiVersion"], found["kind"]) == (item["apiVersion"], item["kind"])
    assert found["metadata"] == {
        "name": "x",
        "namespace": "ns",
        "uid": "u",
        "labels": {"team": "a"},
        "annotations": {"kueue.x-k8s.io/queue-name": "q"},
    }


def test_nothing_of_an_unlisted_field_gets_through_wherever_it_stands() -> None:
    """A secret in place of every field of a pod that is not on the list: planted into each object of it."""

    def plant(value: Any) -> Any:
        if isinstance(value, dict):
            return {**{key: plant(below) for key, below in value.items()}, "unheardOf": SECRET}
        return [plant(below) for below in value] if isinstance(value, list) else value

    kept_whole = {"labels", "resources", "allocatedResourcesStatus", "persistentVolumeClaim"}

    def without(value: Any) -> Any:
        """The parts below which all is kept are left as they were."""
        if isinstance(value, dict):
            return {key: "as it is" if key in kept_whole else without(below) for key, below in value.items()}
        return [without(below) for below in value] if isinstance(value, list) else value

    planted = plant(without(PLANTED["pod"]))
    assert SECRET not in orjson.dumps(redacted(planted)).decode()


def test_names_of_variables_stay_and_from_where_they_are() -> None:
    (container,) = redacted(PLANTED["pod"])["spec"]["containers"]
    assert container["env"] == [
        {"name": "TOKEN", "value": "REDACTED"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {}}},
    ]
    assert "command" not in container
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "4"}}


def test_the_environment_is_kept_on_demand_and_nothing_else() -> None:
    kept = redacted(PLANTED["pod"], FRANK)
    (given,) = PLANTED["pod"]["spec"]["containers"]
    (container,) = kept["spec"]["containers"]
    for field in ("env", "envFrom", "command", "args"):
        assert container.pop(field) == given[field]
    (first,) = kept["spec"]["initContainers"]
    assert (first.pop("command"), first.pop("args")) == ([SECRET], [SECRET])
    assert SECRET not in orjson.dumps(kept).decode()


def test_volumes_keep_what_binds_a_pod_to_nodes() -> None:
    volumes = {volume.pop("name"): volume for volume in redacted(PLANTED["pod"])["spec"]["volumes"]}
    assert volumes == {
        "v": {},
        "w": {},
        "h": {},
        "n": {"nfs": {}},
        "d": {"csi": {"driver": "csi.example.com"}},
        "t": {},
        "p": {"persistentVolumeClaim": {"claimName": "data"}},
    }


GROUP_COUNTS: Json = {"f:status": {"f:scheduled": {}, "f:running": {}}}
DECIDING: list[Builder] = [
    make_node("n1").gpus(8).zone("a").taint("gpu", "yes").cordoned(),
    make_node("n2").not_ready("Unknown").allocatable({"nvidia.com/gpu": "7"}),
    make_pod("p").gpus(4).gang("g").gated().gate("other/gate").priority(7).in_zone("a", "b"),
    make_pod("p").native("g").toleration(key="gpu", operator="Exists").selector({"zone": "a"}),
    make_pod("p").native("g").gang("h"),
    make_pod("p").gated().set("spec.preemptionPolicy", "Never"),
    make_pod("p").cpu("2").sidecar({"cpu": "1"}).init({"memory": "3Gi"}).overhead({"cpu": "250m"}),
    make_pod("p").pod_level({"cpu": "8"}).volume_claim().resource_claim().host_port(80),
    make_pod("p").set("spec.volumes", [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]),
    make_pod("p").set("spec.volumes", [{"name": "v", "csi": {"driver": "d"}}]),
    make_pod("p").set("spec.volumes", [{"name": "v", "iscsi": {"iqn": "i"}}]),
    make_pod("p").set("spec.volumes", [{"name": "v", "nfs": {"server": "s"}}]),
    make_pod("p").set("spec.volumes", [{"name": "v", "secret": {"secretName": "s"}}]),
    make_pod("p").set("spec.topologySpreadConstraints", [{"whenUnsatisfiable": "DoNotSchedule"}]),
    make_pod("p").set("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", [{}]),
    make_pod("p").nominated("n1", by="muster"),
    make_pod("p").nominated("n1").managed("muster", {"f:metadata": {}}),
    make_pod("p").attempted("0/3 nodes are available"),
    make_pod("p").on("n1").deleting(),
    make_pod("p").on("n1").phase("Failed", reason="Evicted"),
    make_pod("p").set("spec.containers", None).set("spec.schedulingGates", None),
    make_group("g", 3).timeout(60).status(scheduled=2, running=1),
    make_group("g", 3).status(scheduled=2).managed("coscheduling", GROUP_COUNTS),
    make_group("g", 3).status(scheduled=2).managed("muster", GROUP_COUNTS),
    make_group("g", 3).native(),
    make_group("g").minimum(None),
]


@pytest.mark.parametrize("builder", DECIDING)
@pytest.mark.parametrize("redactor", [SHY, FRANK], ids=["shy", "frank"])
def test_a_redacted_object_decides_as_the_whole_one_does(builder: Builder, redactor: Redactor) -> None:
    whole = builder.set("metadata.annotations", {"a": SECRET}).build()
    value = value_of(ObjectDecoder(), whole)
    assert value is not None
    assert value_of(ObjectDecoder(), redacted(whole, redactor)) == value


def test_every_kind_of_a_snapshot_is_known_and_secrets_are_not() -> None:
    for kind in KINDS:
        item = obj(kind.api_version(kind.versions[0]), kind.kind)
        assert len(SHY.items(kind, [orjson.dumps(item)])) == 1
    for api_version, name in (("v1", "Secret"), ("v1", "ConfigMap"), ("batch/v1", "Pod"), ("v1", "")):
        assert SHY.item(orjson.dumps(obj(api_version, name))) is None


def test_what_a_snapshot_says_of_itself_stays() -> None:
    info = SnapshotInfo(
        taken="t", counts={"pods": 1}, unseen=(Unseen("nodes", "why"),), api_gates={"A": True}
    )
    assert SHY.item(info.item()) is not None
    assert redacted(orjson.loads(info.item())) == orjson.loads(info.item())


@pytest.mark.parametrize(
    "broken", [{"spec": 7}, {"spec": {"containers": 7}}, {"spec": {"containers": [7]}}, {"status": []}]
)
def test_of_an_object_of_another_shape_its_name_is_left(broken: Json) -> None:
    item = {**obj("v1", "Pod", spec=TEMPLATE["spec"]), **broken}
    assert redacted(item) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "ns", "uid": "u"},
    }


@pytest.mark.parametrize("raw", [b"", b"7", b"[]", b"{", b'{"apiVersion":"v1","kind":"Pod","metadata":7}'])
def test_what_is_no_object_is_an_input_error(raw: bytes) -> None:
    with pytest.raises(InputError, match="not an object"):
        SHY.item(raw)
