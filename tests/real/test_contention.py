# SPDX-License-Identifier: Apache-2.0
"""Sixty gangs on two nodes: all of them run in the end, and none is ever left half started."""

from __future__ import annotations

from random import Random

import pytest

from tests.real.lab import Lab, phase
from tests.real.workloads import Object, group, pod, template

pytestmark = pytest.mark.real

GANGS = 60


def test_sixty_interleaved_gangs_of_one_or_two_members_all_run(lab: Lab) -> None:
    lab.nodes(2, gpus=8)
    random = Random(20260)
    groups: list[Object] = []
    pods: list[Object] = []
    for number in range(GANGS):
        name, members, native = f"g{number:02}", random.randint(1, 2), number % 4 == 3
        label, field = (None, name) if native else (name, None)
        shape = template(gang=label, native=field, gpus=random.randint(4, 8), runs_for="1s")
        groups.append(group("gangs", name, members, native=native))
        pods += [pod("gangs", f"{name}-{index}", shape) for index in range(members)]
        lab.minimums[f"gangs/{name}"] = members
    random.shuffle(pods)
    lab.create(*groups)
    lab.create(*pods)

    lab.wait(lambda: all(phase(p) == "Succeeded" for p in lab.pods()), 240, "all sixty gangs have run")
    assert len(lab.pods()) == len(pods)
