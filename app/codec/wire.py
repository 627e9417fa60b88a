# SPDX-License-Identifier: Apache-2.0
"""The wire fields that are read, as msgspec structs; everything else in an object is skipped unparsed.

Source: core/v1 and the two PodGroup APIs. Fields that repeat from pod to pod (resources, affinity,
tolerations) stay raw bytes: they are the key under which a parsed template is found again.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")

NOTHING = Raw(b"")

UNUSABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding bytes of any kind may raise: wrong JSON or types, wrong text, nested without end."""


class Identity(Struct, rename="camel", gc=False):
    """The part of metadata that tells objects and their versions apart."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str | None = None

    @property
    def key(self) -> str:
        """namespace/name, or the name alone."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def version(self) -> int:
        """The resource version as a number; -1 when it is none, which compares with nothing."""
        version = self.resource_version
        return int(version) if version and version.isdecimal() else -1


class Header(Struct, gc=False):
    """Any object, its identity alone."""

    metadata: Identity = msgspec.field(default_factory=Identity)


class Annotations(Struct, gc=False):
    gate: str | None = msgspec.field(default=None, name="muster.dev/gate")


class Metadata(Identity, rename="camel", gc=False):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: Raw = NOTHING
    managed_fields: Raw = NOTHING


class ManagedFields(Struct, rename="camel", gc=False):
    manager: str = ""
    subresource: str = ""
    fields_v1: Raw = msgspec.field(default=NOTHING, name="fieldsV1")


class Container(Struct, rename="camel", gc=False):
    resources: Raw = NOTHING
    restart_policy: str | None = None
    ports: Raw = NOTHING


class Resources(Struct, gc=False):
    requests: dict[str, object] | None = None
    limits: dict[str, object] | None = None


class Gate(Struct, gc=False):
    name: str = ""


class SchedulingGroup(Struct, rename="camel", gc=False):
    pod_group_name: str | None = None


class PodSpec(Struct, rename="camel", gc=False):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Raw = NOTHING
    resources: Raw = NOTHING
    node_selector: Raw = NOTHING
    affinity: Raw = NOTHING
    tolerations: Raw = NOTHING
    volumes: Raw = NOTHING
    topology_spread_constraints: Raw = NOTHING
    resource_claims: Raw = NOTHING
    node_name: str | None = None
    scheduler_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None


class Condition(Struct, rename="camel", gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None
    last_probe_time: str | None = None


class Waiting(Struct, gc=False):
    reason: str | None = None


class ContainerState(Struct, gc=False):
    waiting: Waiting | None = None


class ResourceHealth(Struct, gc=False):
    resource_id: str | None = msgspec.field(default=None, name="resourceID")
    health: str | None = None
    message: str | None = None


class ResourceStatus(Struct, gc=False):
    name: str | None = None
    resources: list[ResourceHealth] | None = None


class ContainerStatus(Struct, rename="camel", gc=False):
    state: ContainerState | None = None
    allocated_resources_status: list[ResourceStatus] | None = None


class PodStatus(Struct, rename="camel", gc=False):
    phase: str | None = None
    reason: str | None = None
    nominated_node_name: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class PodObject(Struct, gc=False):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class TaintObject(Struct, gc=False):
    key: str = ""
    effect: str = ""
    value: str | None = None


class NodeSpec(Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[TaintObject] | None = None


class NodeStatus(Struct, gc=False):
    allocatable: dict[str, object] | None = None
    capacity: dict[str, object] | None = None
    conditions: list[Condition] | None = None


class NodeObject(Struct, gc=False):
    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class Gang(Struct, rename="camel", gc=False):
    min_count: int | None = None


class SchedulingPolicy(Struct, gc=False):
    gang: Gang | None = None


class PodGroupSpec(Struct, rename="camel", gc=False):
    min_member: int | None = None
    schedule_timeout_seconds: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


class PodGroupObject(Struct, rename="camel", gc=False):
    metadata: Metadata
    api_version: str = ""
    spec: PodGroupSpec | None = None
    status: dict[str, object] | None = None


class SelectorRequirement(Struct, gc=False):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class SelectorTerm(Struct, rename="camel", gc=False):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Struct, rename="camel", gc=False):
    node_selector_terms: list[SelectorTerm] | None = None


class NodeAffinity(Struct, gc=False):
    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinity(Struct, gc=False):
    required: list[Raw] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, rename="camel", gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TolerationObject(Struct, gc=False):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class Spread(Struct, rename="camel", gc=False):
    when_unsatisfiable: str = ""


class ListMeta(Struct, gc=False):
    continue_: str | None = msgspec.field(default=None, name="continue")
    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")


class ObjectList(Struct, Generic[T], gc=False):
    """A Kubernetes list."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[T] | None = None


class WatchLine(Struct, Generic[T], gc=False):
    """One line of a watch stream: `type` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    object: T
    type: str = ""


class Status(Struct, gc=False):
    """meta/v1 Status, as an ERROR event or a failed call carries it."""

    code: int = 0
    message: str = ""
    reason: str = ""
