# SPDX-License-Identifier: Apache-2.0
"""Worlds that are closed when the test is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pytest

from app.extender.timing import Timing
from tests.builders import Builder
from tests.extender.world import World


class Make(Protocol):
    """Makes a world of these objects."""

    def __call__(
        self, *objects: Builder, timing: Timing | None = None, lag: bool = False, bursts: bool = False
    ) -> World: ...


@pytest.fixture
def make() -> Iterator[Make]:
    """As many worlds as a test needs."""
    made: list[World] = []

    def one(
        *objects: Builder, timing: Timing | None = None, lag: bool = False, bursts: bool = False
    ) -> World:
        made.append(World(*objects, timing=timing, lag=lag, bursts=bursts))
        return made[-1]

    yield one
    for world in made:
        world.close()


def seats(world: World) -> dict[str, str]:
    """Name → node of every seat that a pod has."""
    inventory = world.service.inventory
    return {inventory.pods[b.uid].name: str(b.node) for b in inventory.book if not b.vacant}
