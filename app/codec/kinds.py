# SPDX-License-Identifier: Apache-2.0
"""The kinds that a snapshot is made of: all that may say why a pod is pending.

Data alone, in the order of the file and of the questions: what is there, who asks for it, what stands in
between, what was said about it. Secrets and ConfigMaps are never among them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class ApiKind(Struct, frozen=True):
    """A kind of object and where the API serves it.

    `versions` are newest first; the first that is served is read. `optional`: a cluster need not serve it.
    `selectors` are field selectors, one list each: all else of this kind is left where it is.
    """

    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    optional: bool = False
    selectors: tuple[str, ...] = ("",)

    @property
    def name(self) -> str:
        """As `kubectl get` takes it: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """What stands in `apiVersion`: `v1`, `batch/v1`."""
        return f"{self.group}/{version}" if self.group else version


_ORDINARY: Final = "".join(
    f",reason!={reason}"
    for reason in ("Scheduled", "Pulling", "Pulled", "Created", "Started", "Killing", "AddedInterface")
)
"""What is told about every pod that is well, and so most of all events."""

_EVENTS: Final = (
    f"involvedObject.kind=Pod{_ORDINARY}",
    "involvedObject.kind=PodGroup",
    *(f"involvedObject.kind={kind},type=Warning" for kind in ("Job", "ReplicaSet", "StatefulSet", "JobSet")),
)

_OURS: Final = ("metadata.name=muster",)
_DRA: Final = ("v1", "v1beta2", "v1beta1")
_RULES: Final = ("v1", "v1beta2", "v1alpha3")
_NATIVE: Final = ("v1", "v1beta1", "v1alpha2", "v1alpha1")
_ADMISSION: Final = "admissionregistration.k8s.io"

KINDS: Final = (
    # What is there.
    ApiKind("Node", "nodes", namespaced=False),
    ApiKind("DeviceClass", "deviceclasses", "resource.k8s.io", _DRA, namespaced=False, optional=True),
    ApiKind("ResourceSlice", "resourceslices", "resource.k8s.io", _DRA, namespaced=False, optional=True),
    ApiKind("DeviceTaintRule", "devicetaintrules", "resource.k8s.io", _RULES, False, optional=True),
    # Who asks for it.
    ApiKind("Namespace", "namespaces", namespaced=False),
    ApiKind("PriorityClass", "priorityclasses", "scheduling.k8s.io", namespaced=False),
    ApiKind("PodGroup", "podgroups", "scheduling.x-k8s.io", ("v1alpha1",), optional=True),
    ApiKind("PodGroup", "podgroups", "scheduling.k8s.io", _NATIVE, optional=True),
    ApiKind("Pod", "pods"),
    ApiKind("ResourceClaimTemplate", "resourceclaimtemplates", "resource.k8s.io", _DRA, optional=True),
    ApiKind("ResourceClaim", "resourceclaims", "resource.k8s.io", _DRA, optional=True),
    ApiKind("PersistentVolumeClaim", "persistentvolumeclaims"),
    # Who makes the pods.
    ApiKind("Job", "jobs", "batch"),
    ApiKind("ReplicaSet", "replicasets", "apps"),
    ApiKind("Deployment", "deployments", "apps"),
    ApiKind("StatefulSet", "statefulsets", "apps"),
    ApiKind("JobSet", "jobsets", "jobset.x-k8s.io", ("v1alpha2",), optional=True),
    ApiKind("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io", optional=True),
    # What stands in between.
    ApiKind("ResourceQuota", "resourcequotas"),
    ApiKind("LimitRange", "limitranges"),
    ApiKind("PodDisruptionBudget", "poddisruptionbudgets", "policy"),
    ApiKind("Workload", "workloads", "kueue.x-k8s.io", ("v1beta2", "v1beta1"), optional=True),
    ApiKind("LocalQueue", "localqueues", "kueue.x-k8s.io", ("v1beta2", "v1beta1"), optional=True),
    ApiKind(
        "MutatingAdmissionPolicy", "mutatingadmissionpolicies", _ADMISSION, ("v1", "v1beta1"),
        namespaced=False, optional=True, selectors=_OURS,
    ),
    ApiKind(
        "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", _ADMISSION, ("v1", "v1beta1"),
        namespaced=False, optional=True, selectors=_OURS,
    ),
    ApiKind("Lease", "leases", "coordination.k8s.io", selectors=("metadata.name=kube-scheduler", *_OURS)),
    # What was said about it. The API server forgets it after an hour by itself.
    ApiKind("Event", "events", selectors=_EVENTS),
)  # fmt: skip
