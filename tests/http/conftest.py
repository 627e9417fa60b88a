# SPDX-License-Identifier: Apache-2.0
"""A door with a gang behind it that has its seats: what no bad call may change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builders import make_group, make_node, make_pod
from tests.http.door import Door


@pytest.fixture
def door() -> Iterator[Door]:
    """n1 has 4 GPUs, 2 of them reserved for gang g; n2 has 4."""
    pods = [make_pod(name).gpus(1).gang("g").gated() for name in "ab"]
    made = Door(
        make_node("n1").gpus(4), make_node("n2").gpus(4), make_group("g", 2), *pods, make_pod("p").gpus(1)
    )
    assert made.reserved == (2, 2)
    yield made
    made.close()
