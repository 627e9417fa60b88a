# SPDX-License-Identifier: Apache-2.0
"""One control plane for the session; nodes, namespace, Muster and scheduler anew for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab, prepare
from tests.real.muster import Rig


@pytest.fixture(scope="session")
def plane() -> Iterator[Cluster]:
    """API server with the native PodGroup API, controllers, kwok; CRD and admission policy installed."""
    with Cluster(native_groups=True) as cluster:
        prepare(cluster)
        yield cluster


@pytest.fixture
def lab(plane: Cluster, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """An empty cluster with Muster and its scheduler running. Checks at the end that nobody was wronged."""
    with Lab(plane, log_name=request.node.name) as fresh:
        yield fresh


class Standing:
    """The Muster and scheduler that tests share, while no other test needs a scheduler of its own."""

    def __init__(self) -> None:
        self._rig: Rig | None = None

    def on(self, plane: Cluster) -> Rig:
        """Running."""
        if self._rig is None:
            self._rig = Rig(plane, name="shared")
            self._rig.start()
        return self._rig

    def end(self) -> None:
        """Not running."""
        if self._rig is not None:
            self._rig.stop()
            self._rig = None


@pytest.fixture(scope="session")
def standing() -> Iterator[Standing]:
    """See there."""
    kept = Standing()
    yield kept
    kept.end()


@pytest.fixture(autouse=True)
def _one_scheduler_of_a_name(standing: Standing, request: pytest.FixtureRequest) -> None:
    if "shared" not in request.fixturenames:
        standing.end()


@pytest.fixture
def shared(plane: Cluster, standing: Standing) -> Iterator[Lab]:
    """Like `lab`, but Muster stays from test to test: quicker, and shows that it forgets."""
    with Lab(plane, rig=standing.on(plane)) as fresh:
        yield fresh
