# SPDX-License-Identifier: Apache-2.0
"""One control plane for the session; nodes, namespace, Muster and scheduler anew for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.real.lab import Lab, prepare


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
