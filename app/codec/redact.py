# SPDX-License-Identifier: Apache-2.0
"""Takes out of an object what must not leave the cluster, by keeping only what is on a list.

    WHOLE    this field and all below it, byte for byte
    {...}    an object, of which these fields
    [...]    a list of such

A field that is not listed is gone, so that what Kubernetes adds later is gone too. Objects of kinds that
are not listed (Secrets, ConfigMaps) are gone altogether. What is left is enough for all that Muster
decides and explains; docs/snapshot.md says what it tells about a cluster. Changes no value but a variable's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from app.codec.kinds import ApiKind
from app.codec.wire import UNUSABLE
from app.domain.errors import InputError

Tree: TypeAlias = Any
"""See the module; a Struct is a tree with a mind of its own."""

WHOLE: Final = ...
REDACTED: Final = Raw(b'"REDACTED"')

ANNOTATIONS: Final = (
    "muster.dev/",
    "scheduling.k8s.io/",
    "scheduling.x-k8s.io/",
    "kueue.x-k8s.io/",
    "nvidia.com/",
    "jobset.sigs.k8s.io/",
    "leaderworkerset.sigs.k8s.io/",
    "batch.kubernetes.io/",
    "resource.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/",
    "volume.kubernetes.io/",
    "pv.kubernetes.io/",
)
"""What they begin with to stay: those that say how a pod is to be scheduled. Others may hold anything."""


class _StatusFields(Struct, omit_defaults=True, gc=False):
    nominated: Raw | UnsetType = msgspec.field(default=UNSET, name="f:nominatedNodeName")
    scheduled: Raw | UnsetType = msgspec.field(default=UNSET, name="f:scheduled")


class _Fields(Struct, omit_defaults=True, gc=False):
    status: _StatusFields | UnsetType | None = msgspec.field(default=UNSET, name="f:status")


class _Manager(Struct, omit_defaults=True, gc=False):
    """Who wrote a field, of the two fields of which it matters (`app.codec.objects`)."""

    manager: Raw | UnsetType = UNSET
    operation: Raw | UnsetType = UNSET
    subresource: Raw | UnsetType = UNSET
    fields: _Fields | UnsetType | None = msgspec.field(default=UNSET, name="fieldsV1")

    @property
    def matters(self) -> bool:
        status = self.fields.status if isinstance(self.fields, _Fields) else None
        return isinstance(status, _StatusFields) and status != _StatusFields()


class _Metadata(Struct, rename="camel", omit_defaults=True, gc=False):
    name: Raw | UnsetType = UNSET
    generate_name: Raw | UnsetType = UNSET
    namespace: Raw | UnsetType = UNSET
    uid: Raw | UnsetType = UNSET
    resource_version: Raw | UnsetType = UNSET
    generation: Raw | UnsetType = UNSET
    creation_timestamp: Raw | UnsetType = UNSET
    deletion_timestamp: Raw | UnsetType = UNSET
    deletion_grace_period_seconds: Raw | UnsetType = UNSET
    labels: Raw | UnsetType = UNSET
    annotations: dict[str, Raw] | UnsetType | None = UNSET
    owner_references: Raw | UnsetType = UNSET
    finalizers: Raw | UnsetType = UNSET
    managed_fields: list[_Manager] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.annotations:
            kept = {key: text for key, text in self.annotations.items() if key.startswith(ANNOTATIONS)}
            self.annotations = kept or UNSET
        if self.managed_fields:
            self.managed_fields = [entry for entry in self.managed_fields if entry.matters] or UNSET


class _Variable(Struct, rename="camel", omit_defaults=True, gc=False):
    """An environment variable: its name, that it has a value, and from what kind of place it takes one."""

    name: Raw | UnsetType = UNSET
    value: Raw | UnsetType = UNSET
    value_from: dict[str, Struct] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.value is not UNSET:
            self.value = REDACTED


def _whole(names: str) -> dict[str, Tree]:
    return dict.fromkeys(names.split(), WHOLE)


_CLAIMED: Final = _whole("accessModes resources storageClassName volumeMode volumeName selector")
_VOLUME: Final = {
    **_whole("name persistentVolumeClaim emptyDir"),
    "ephemeral": {"volumeClaimTemplate": {"spec": _CLAIMED}},
    "csi": _whole("driver"),
    "nfs": {},  # that there is one matters: it may bind the pod to some nodes
    "iscsi": {},
}
_CONTAINER: Final = {
    **_whole("name image restartPolicy resources"),
    "ports": [_whole("name containerPort hostPort protocol")],
}
_STATE: Final = {
    "waiting": _whole("reason message"),
    "running": _whole("startedAt"),
    "terminated": _whole(
        "exitCode reason signal startedAt finishedAt"
    ),  # its message is what the program said
}
_CONTAINER_STATUS: Final = {
    **_whole("name ready started restartCount allocatedResources allocatedResourcesStatus resources"),
    "state": _STATE,
    "lastState": _STATE,
}
_POD_STATUS: Final = {
    **_whole(
        "phase reason message nominatedNodeName conditions startTime qosClass resize observedGeneration"
        " resourceClaimStatuses extendedResourceClaimStatus allocatedResources resources"
    ),
    "containerStatuses": [_CONTAINER_STATUS],
    "initContainerStatuses": [_CONTAINER_STATUS],
}
_NODE: Final = {
    "spec": _whole("unschedulable taints"),
    "status": {
        **_whole("capacity allocatable conditions phase declaredFeatures"),
        "nodeInfo": _whole("kubeletVersion architecture operatingSystem"),
    },
}
_CLAIM: Final = {"devices": _whole("requests constraints")}  # `config` is for the driver's eyes
_CLAIM_STATUS: Final = {
    "allocation": {**_whole("nodeSelector allocationTimestamp"), "devices": _whole("results")},
    "reservedFor": WHOLE,
    "devices": [_whole("driver pool device shareID conditions")],
}
_ALL: Final = _whole("spec status")


def _pod_spec(*, keep_environment: bool) -> Tree:
    more = _whole("env envFrom command args") if keep_environment else {"env": [_Variable]}
    container = {**_CONTAINER, **more}
    return {
        **_whole(
            "nodeName nodeSelector affinity tolerations topologySpreadConstraints schedulerName"
            " schedulingGates schedulingGroup workloadRef priority priorityClassName preemptionPolicy"
            " overhead resources resourceClaims restartPolicy activeDeadlineSeconds"
            " terminationGracePeriodSeconds runtimeClassName serviceAccountName hostNetwork os"
        ),
        "containers": [container],
        "initContainers": [container],
        "volumes": [_VOLUME],
    }


def _trees(pod_spec: Tree) -> dict[tuple[str, str], Tree]:
    """What to keep of an object beside its metadata, by API group and kind."""
    template = {"metadata": _Metadata, "spec": pod_spec}
    job = {
        **_whole(
            "parallelism completions completionMode suspend activeDeadlineSeconds backoffLimit"
            " backoffLimitPerIndex maxFailedIndexes podReplacementPolicy ttlSecondsAfterFinished managedBy"
            " selector podFailurePolicy successPolicy"
        ),
        "template": template,
    }
    replicas = {**_whole("replicas selector minReadySeconds"), "template": template}
    return {
        ("", "Node"): _NODE,
        ("", "Namespace"): _ALL,
        ("", "Pod"): {"spec": pod_spec, "status": _POD_STATUS},
        ("", "PersistentVolumeClaim"): {"spec": _CLAIMED, "status": WHOLE},
        ("", "ResourceQuota"): _ALL,
        ("", "LimitRange"): _ALL,
        ("", "Event"): _whole(
            "involvedObject related reason message type action count series firstTimestamp lastTimestamp"
            " eventTime source reportingComponent"
        ),
        ("scheduling.k8s.io", "PriorityClass"): _whole("value globalDefault preemptionPolicy"),
        ("scheduling.k8s.io", "PodGroup"): _ALL,
        ("scheduling.x-k8s.io", "PodGroup"): _ALL,
        ("resource.k8s.io", "DeviceClass"): {"spec": _whole("selectors extendedResourceName")},
        ("resource.k8s.io", "ResourceSlice"): _ALL,
        ("resource.k8s.io", "DeviceTaintRule"): _ALL,
        ("resource.k8s.io", "ResourceClaim"): {"spec": _CLAIM, "status": _CLAIM_STATUS},
        ("resource.k8s.io", "ResourceClaimTemplate"): {"spec": {"metadata": _Metadata, "spec": _CLAIM}},
        ("batch", "Job"): {"spec": job, "status": WHOLE},
        ("apps", "ReplicaSet"): {"spec": replicas, "status": WHOLE},
        ("apps", "Deployment"): {
            "spec": {**replicas, **_whole("strategy paused progressDeadlineSeconds")},
            "status": WHOLE,
        },
        ("apps", "StatefulSet"): {
            "spec": {
                **replicas,
                **_whole("serviceName podManagementPolicy updateStrategy ordinals"),
                "volumeClaimTemplates": [{"metadata": _Metadata, "spec": _CLAIMED}],
            },
            "status": WHOLE,
        },
        ("jobset.x-k8s.io", "JobSet"): {
            "spec": {
                **_whole(
                    "suspend successPolicy failurePolicy startupPolicy managedBy ttlSecondsAfterFinished"
                ),
                "replicatedJobs": [
                    {
                        **_whole("name groupName replicas dependsOn"),
                        "template": {"metadata": _Metadata, "spec": job},
                    }
                ],
            },
            "status": WHOLE,
        },
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): {
            "spec": {
                **_whole("replicas startupPolicy rolloutStrategy"),
                "leaderWorkerTemplate": {
                    **_whole("size restartPolicy subGroupPolicy"),
                    "leaderTemplate": template,
                    "workerTemplate": template,
                },
            },
            "status": WHOLE,
        },
        ("policy", "PodDisruptionBudget"): _ALL,
        ("kueue.x-k8s.io", "Workload"): {
            "spec": {
                **_whole(
                    "active queueName priority priorityClassName priorityClassSource priorityClassRef"
                    " maximumExecutionTimeSeconds"
                ),
                "podSets": [{**_whole("name count minCount topologyRequest"), "template": template}],
            },
            "status": _whole("conditions admission requeueState reclaimablePods"),
        },
        ("kueue.x-k8s.io", "LocalQueue"): _ALL,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): _ALL,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): _ALL,
        ("coordination.k8s.io", "Lease"): _ALL,
        ("muster.dev", "SnapshotInfo"): _whole(
            "taken serverVersion namespaces redacted environmentKept counts absent unseen apiGates"
            " schedulerGates"
        ),
    }


class _Type(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class Redactor:
    """Redacts objects of all known kinds. `keep_environment` leaves env, envFrom, command and args."""

    def __init__(self, *, keep_environment: bool = False) -> None:
        trees = _trees(_pod_spec(keep_environment=keep_environment))
        head = {**_whole("apiVersion kind"), "metadata": _Metadata}
        self._decoders = {
            key: msgspec.json.Decoder(_compiled({**head, **tree}, key[1])) for key, tree in trees.items()
        }

    def items(self, kind: ApiKind, raws: Iterable[bytes]) -> list[bytes]:
        """Objects of one kind, as `app.kube.collect` brings them."""
        decoder = self._decoders[kind.group, kind.kind]
        return [_redacted(decoder, raw) for raw in raws]

    def item(self, raw: bytes) -> bytes | None:
        """Any object; None when it is of a kind that stays at home. Raises `InputError` when it is none."""
        try:
            found = msgspec.json.decode(raw, type=_Type)
        except UNUSABLE as error:
            raise InputError(f"not an object: {error}") from None
        decoder = self._decoders.get((found.api_version.rpartition("/")[0], found.kind))
        return None if decoder is None else _redacted(decoder, raw)


def _redacted(decoder: msgspec.json.Decoder[Any], raw: bytes) -> bytes:
    try:
        return msgspec.json.encode(decoder.decode(raw))
    except UNUSABLE:
        return _identity(raw)


def _identity(raw: bytes) -> bytes:
    """What is left of an object that is not of the shape of its kind: what it is called."""
    try:
        return msgspec.json.encode(_IDENTITY.decode(raw))
    except UNUSABLE as error:
        raise InputError(f"not an object: {error}") from None


def _compiled(tree: Tree, name: str) -> Any:
    if tree is WHOLE:
        return Raw
    if isinstance(tree, list):
        return list[_compiled(tree[0], name)]  # type: ignore[misc]
    if isinstance(tree, dict):
        fields = [(field, _optional(_compiled(below, field)), UNSET) for field, below in tree.items()]
        return msgspec.defstruct(name, fields, omit_defaults=True, gc=False)
    return tree


def _optional(kind: Any) -> Any:
    return kind | UnsetType if kind is Raw else kind | UnsetType | None


_IDENTITY: Final = msgspec.json.Decoder(
    _compiled({**_whole("apiVersion kind"), "metadata": _whole("name namespace uid")}, "Identity")
)
