# SPDX-License-Identifier: Apache-2.0
"""What a person reads who runs `kubectl describe` on a pod that waits, or on its PodGroup."""

from __future__ import annotations

import pytest

from tests.real.lab import Lab
from tests.real.workloads import near

pytestmark = pytest.mark.real

GROUPS = "podgroups.scheduling.x-k8s.io"
TOLD_SECONDS = 5.0


def test_no_pod_group(shared: Lab) -> None:
    shared.nodes(1)
    shared.members("lost", 2)
    _pod_tells(shared, "lost-1", "gang gangs/lost has no PodGroup yet: create it in the same namespace")


def test_a_member_is_missing_and_then_the_devices(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.gang("holder", 1, gpus=4)
    shared.wait(lambda: shared.bound("holder") == 1, 15, "half of the node is taken")
    shared.gang("team", 4, minimum=5)
    _both_tell(shared, "team", "gang gangs/team has 4 of 5 members")

    shared.members("team", 1, first=4)
    busy = "has seats for 4 of 5 members: 4 of 8 nvidia.com/gpu free; gang gangs/holder holds 4"
    _both_tell(shared, "team", f"gang gangs/team {busy}")

    shared.delete("pods", "team-4")
    _both_tell(shared, "team", "gang gangs/team has 4 of 5 members", times=2)


def test_a_gate_of_somebody_else(shared: Lab) -> None:
    shared.nodes(1)
    shared.gang("quota", 2, gates=("example.com/quota",))
    _both_tell(
        shared,
        "quota",
        "gang gangs/quota has 0 of 2 members ready: pod quota-0 is held by gate example.com/quota",
    )


def test_more_than_an_empty_cluster_has(shared: Lab) -> None:
    shared.nodes(2, gpus=8)
    shared.gang("huge", 3, gpus=8)
    shared.gang("wide", 1, gpus=16)
    _both_tell(
        shared, "huge", "can never fit: an empty cluster would have seats for 2 of 3 members"
    )  # fmt: skip
    _both_tell(
        shared, "wide", "can never fit: a member requests 16 nvidia.com/gpu and the largest node has 8"
    )  # fmt: skip


def test_behind_another_gang(shared: Lab) -> None:
    shared.nodes(1, gpus=8)
    shared.group("first", 2)
    shared.members("first", 1, gpus=4)
    shared.members("first", 1, first=1, gpus=4, more=near(app="not-there"))
    shared.wait(lambda: shared.rig.metric("muster_held_binds") == 1, 15, "one member is held for the other")

    shared.gang("second", 1, gpus=4)
    _both_tell(shared, "second", "gang gangs/second waits behind gang gangs/first")


def _both_tell(lab: Lab, gang: str, text: str, times: int = 1) -> None:
    _pod_tells(lab, f"{gang}-0", text, times)
    lab.wait(lambda: _counts(lab.describe(GROUPS, gang), text, times), TOLD_SECONDS, f"{gang}: {text}")


def _pod_tells(lab: Lab, name: str, text: str, times: int = 1) -> None:
    lab.wait(lambda: _counts(lab.describe("pod", name), text, times), TOLD_SECONDS, f"{name}: {text}")


def _counts(described: str, text: str, times: int) -> bool:
    """The sentence stands there, as often said as expected: `(x2 over 3s)`."""
    lines = [line for line in described.splitlines() if text in line]
    assert lines, described[described.find("Events:") :]
    return times == 1 or any(f"(x{times} over" in line for line in lines)
