# SPDX-License-Identifier: Apache-2.0
"""Members held at the barrier: one is deleted, or the last does not come in time."""

from __future__ import annotations

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.volumes import late_member, provide
from tests.real.workloads import near, pod, template

pytestmark = pytest.mark.real


def test_a_member_deleted_while_held_is_answered_at_once_and_its_replacement_joins(lab: Lab) -> None:
    lab.nodes(2)
    lab.group("train", 4)
    lab.members("train", 3, gpus=4)
    late_member(lab, "train", gpus=4)
    lab.wait(lambda: lab.held() == 3, 20, "three members are held")
    answered = lab.calls("bind")

    lab.delete("pods", "train-0")
    lab.wait(lambda: lab.held() == 2 and lab.calls("bind") == answered + 1, 2, "its call was answered")
    lab.members("train", 1, gpus=4, first=3)
    lab.wait(lambda: lab.held() == 3, 15, "the replacement is held too")
    assert lab.bound("train") == 0

    provide(lab, "train")
    lab.wait(lambda: lab.bound("train") == 4, 15, "the gang is bound")
    lab.wait(lambda: lab.seats() == 0, 5, "every seat has become usage")


def test_at_the_groups_deadline_nothing_is_bound_and_everything_goes_back(plane: Cluster) -> None:
    settings = {"nominate_from_nodes": "0", "backoff_seconds": "2"}
    with Lab(plane, log_name="deadline", settings=settings) as lab:
        lab.nodes(2)
        lab.group("train", 3, timeout=3)
        lab.members("train", 2)
        late_member(lab, "train")
        lab.wait(lambda: lab.held() == 2, 20, "two members are held")

        lab.wait(lambda: lab.held() == 0 and lab.seats() == 0, 6, "calls answered, seats given back")
        assert lab.bound("train") == 0
        # The late one waits for its volume inside kube-scheduler, which keeps a nomination of its own for it.
        lab.wait(lambda: not lab.nominated("train", by="muster"), 1, "no nomination of ours is left")
        assert "gave its seats back" in lab.describe("pod", "train-0")

        provide(lab, "train")
        lab.wait(lambda: lab.bound("train") == 3, 25, "the gang's next try succeeds")


def test_when_nobody_joins_any_more_the_hold_ends(plane: Cluster) -> None:
    settings = {"hold_seconds": "1", "nominate_from_nodes": "0", "backoff_seconds": "3"}
    with Lab(plane, log_name="quiet-hold", settings=settings) as lab:
        node = lab.nodes(1)[0]
        lab.group("train", 3)
        lab.members("train", 2)
        lab.create(pod("gangs", "train-lonely", template(gang="train", more=near(app="friend"))))
        lab.wait(lambda: lab.held() == 2, 20, "two members are held, kube-scheduler cannot place the third")

        lab.wait(lambda: lab.held() == 0 and lab.seats() == 0, 6, "calls answered, seats given back")
        lab.wait(lambda: not lab.nominated("train"), 3, "no nomination is left")
        assert lab.bound("train") == 0

        friend = pod("gangs", "friend", template(gpus=0, labels={"app": "friend"}))
        friend["spec"]["nodeName"] = node
        lab.create(friend)
        lab.wait(lambda: lab.bound("train") == 3, 25, "with its friend there the third can be placed")
