# SPDX-License-Identifier: Apache-2.0
"""PodGroups deleted, created again and edited, and pods created again, in each state a gang can be in.

The barrier is reached by a gang of two of which one can be placed by Muster but not by kube-scheduler: it
wants to be where a pod labelled `app=anchor` is, which the planner does not model.
"""

from __future__ import annotations

import pytest

from tests.real.lab import Lab
from tests.real.observer import gpus
from tests.real.workloads import LABEL_API, near, pod, template

pytestmark = pytest.mark.real

GROUPS = "podgroups.scheduling.x-k8s.io"
SOON_SECONDS = 5.0


# -- waiting


def test_deleted_while_waiting_nobody_binds_until_it_is_created_again(shared: Lab) -> None:
    _waiting(shared)
    shared.delete("podgroups", "train")
    shared.wait(lambda: _says(shared, "pod", "train-0", "has no PodGroup yet"), SOON_SECONDS, "they say so")
    _make_room(shared)
    assert shared.bound("train") == 0

    shared.group("train", 2)
    shared.wait(lambda: shared.bound("train") == 2, 15, "both are bound")


def test_minimum_lowered_while_waiting_binds_who_fits(shared: Lab) -> None:
    _waiting(shared)
    _set_minimum(shared, 1)
    shared.wait(lambda: shared.bound("train") == 1, 15, "one is bound")
    shared.wait(lambda: shared.gated("train") == 1, SOON_SECONDS, "the other waits")


def test_minimum_raised_while_waiting_asks_for_more_members(shared: Lab) -> None:
    _waiting(shared)
    _set_minimum(shared, 3)
    why = "has 2 of 3 members"
    shared.wait(lambda: _says(shared, GROUPS, "train", why), SOON_SECONDS, "it says what is missing")
    _make_room(shared)
    assert shared.bound("train") == 0

    shared.members("train", 1, first=2, gpus=2)
    shared.wait(lambda: shared.bound("train") == 3, 15, "all three are bound")


def test_all_pods_created_again_while_waiting_are_the_gang(shared: Lab) -> None:
    _waiting(shared)
    _create_again(shared)
    shared.wait(lambda: _says(shared, "pod", "train-1", "has seats for 1 of 2"), SOON_SECONDS, "they wait")
    _make_room(shared)
    shared.wait(lambda: shared.bound("train") == 2, 15, "both are bound")


# -- at the barrier


def test_deleted_at_the_barrier_the_held_member_is_answered_at_once(shared: Lab) -> None:
    _at_the_barrier(shared)
    shared.delete("podgroups", "train")
    shared.wait(lambda: _at_rest(shared), SOON_SECONDS, "nobody is held and nothing is reserved")
    assert shared.bound("train") == 0

    _anchor(shared)
    shared.group("train", 2)
    shared.wait(lambda: shared.bound("train") == 2, 30, "both are bound under the new PodGroup")


def test_minimum_lowered_at_the_barrier_lets_the_held_member_pass(shared: Lab) -> None:
    _at_the_barrier(shared)
    _set_minimum(shared, 1)
    shared.wait(lambda: shared.bound("train") == 1, SOON_SECONDS, "the held member is bound")


def test_minimum_raised_at_the_barrier_binds_nobody(shared: Lab) -> None:
    _at_the_barrier(shared, timeout=5)
    _set_minimum(shared, 3)
    _anchor(shared)
    shared.wait(lambda: _at_rest(shared), 30, "the members go back")
    assert shared.bound("train") == 0

    shared.members("train", 1, first=2)
    shared.wait(lambda: shared.bound("train") == 3, 60, "with the third all are bound")


def test_all_pods_created_again_at_the_barrier_leave_nothing_behind(shared: Lab) -> None:
    _at_the_barrier(shared)
    for member in shared.of("train"):
        shared.delete("pods", member["metadata"]["name"])
    shared.wait(lambda: _at_rest(shared), SOON_SECONDS, "nobody is held and nothing is reserved")

    shared.members("train", 2)
    shared.wait(lambda: shared.bound("train") == 2, 15, "the new ones are bound")


# -- running


def test_deleted_while_running_the_members_run_on_and_a_new_one_waits(shared: Lab) -> None:
    _running(shared)
    shared.delete("podgroups", "train")
    shared.members("train", 1, first=2)
    shared.wait(lambda: _says(shared, "pod", "train-2", "has no PodGroup yet"), SOON_SECONDS, "it waits")
    assert shared.bound("train") == 2

    shared.group("train", 2)
    shared.wait(lambda: shared.bound("train") == 3, 15, "with the PodGroup it joins")


def test_minimum_raised_while_running_the_members_run_on_and_new_ones_join(shared: Lab) -> None:
    _running(shared)
    _set_minimum(shared, 4)
    shared.wait(lambda: _state(shared, "wounded") == 1, SOON_SECONDS, "Muster knows")
    assert shared.bound("train") == 2

    shared.members("train", 2, first=2)
    shared.wait(lambda: shared.bound("train") == 4, 15, "the new ones join")
    shared.wait(lambda: _state(shared, "running") == 1, SOON_SECONDS, "it is whole again")


def test_minimum_lowered_while_running_changes_nothing_for_who_runs(shared: Lab) -> None:
    _running(shared)
    _set_minimum(shared, 1)
    shared.members("train", 1, first=2, gpus=8)
    shared.wait(
        lambda: _says(shared, "pod", "train-2", "this further member waits"), SOON_SECONDS, "it waits"
    )
    assert shared.bound("train") == 2


def test_all_pods_created_again_while_running_start_from_nothing(shared: Lab) -> None:
    _running(shared)
    shared.gang("holder", 1, gpus=5)
    shared.wait(lambda: shared.bound("holder") == 1, 15, "little is free")
    _create_again(shared)
    shared.wait(lambda: shared.bound("train") == 2, 15, "the new ones are bound where the old ones were")

    for member in shared.of("train"):
        shared.delete("pods", member["metadata"]["name"])
    shared.members("train", 2, gpus=2)
    shared.wait(lambda: _says(shared, "pod", "train-0", "has seats for 1 of 2"), SOON_SECONDS, "they wait")
    assert shared.bound("train") == 0


# -- how to get there


def _waiting(lab: Lab) -> None:
    """Two members of two GPUs each, room for one; for three of them and `next` when the holder goes."""
    lab.nodes(1, gpus=10)
    lab.gang("holder", 1, gpus=7)
    lab.wait(lambda: lab.bound("holder") == 1, 15, "little is free")
    lab.gang("train", 2, gpus=2)
    lab.wait(lambda: _says(lab, "pod", "train-0", "has seats for 1 of 2"), SOON_SECONDS, "the gang waits")


def _make_room(lab: Lab) -> None:
    """Returns when Muster has seen it: another gang that had to wait as well is bound."""
    lab.gang("next", 1, gpus=4)
    lab.wait(lambda: lab.gated("next") == 1, 5, "another gang waits")
    lab.delete("pods", "holder-0")
    lab.wait(lambda: lab.bound("next") == 1, 15, "it has taken a part of the room")


def _at_the_barrier(lab: Lab, *, timeout: int | None = None) -> None:
    lab.nodes(1, gpus=8)
    lab.group("train", 2, timeout=timeout)
    lab.members("train", 1)
    lab.members("train", 1, first=1, more=near(app="anchor"))
    lab.wait(lambda: lab.rig.metric("muster_held_binds") == 1, 15, "one member is held for the other")
    assert lab.bound("train") == 0


def _anchor(lab: Lab) -> None:
    """What the second member wants to be near to."""
    lab.create(pod("gangs", "anchor", template(gpus=0, labels={"app": "anchor"}, scheduler="muster")))


def _at_rest(lab: Lab) -> bool:
    return not any(lab.rig.metric(name) for name in ("muster_held_binds", "muster_reserved_seats"))


def _running(lab: Lab) -> None:
    lab.nodes(1, gpus=8)
    lab.gang("train", 2)
    lab.wait(lambda: lab.bound("train") == 2, 15, "the gang runs")


def _state(lab: Lab, state: str) -> float:
    return lab.rig.metric(f'muster_gangs{{state="{state}"}}')


def _set_minimum(lab: Lab, minimum: int) -> None:
    """The witness goes on with the lower of the two: whoever ran before is not to blame."""
    path = f"/apis/{LABEL_API}/namespaces/gangs/podgroups/train"
    lab.cluster.patch(path, {"spec": {"minMember": minimum}})
    lab.minimums["gangs/train"] = min(minimum, lab.minimums["gangs/train"])


def _create_again(lab: Lab) -> None:
    """The same names and shapes, other UIDs."""
    old = lab.of("train")
    for member in old:
        lab.delete("pods", member["metadata"]["name"])
    lab.members("train", len(old), gpus=gpus(old[0]))


def _says(lab: Lab, kind: str, name: str, text: str) -> bool:
    described = lab.describe(kind, name)
    assert text in described, described[described.find("Events:") :]
    return True
