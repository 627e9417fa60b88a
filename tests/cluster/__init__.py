# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane for tests, on loopback, built from the pinned modules in tools/.

    from tests.cluster import Cluster

    with Cluster(nodes=4) as cluster:
        cluster.start_scheduler(cluster.plain_scheduler_config(), "plain")
        cluster.wait_for(lambda: ..., 30, "the pods run")

The first use builds the binaries (about ten minutes); `python -m tests.cluster.binaries` does it beforehand.
"""

from tests.cluster.client import ApiClient, ApiError, Watch
from tests.cluster.cluster import Cluster
from tests.cluster.components import Component
from tests.cluster.kwok import FAILS_AFTER, RUNS_FOR, make_node
from tests.cluster.processes import Process, WaitTimeout, free_port, wait_for
from tests.cluster.schedulers import Scheduler, plain_scheduler_config, render_scheduler_config

__all__ = [
    "FAILS_AFTER",
    "RUNS_FOR",
    "ApiClient",
    "ApiError",
    "Cluster",
    "Component",
    "Process",
    "Scheduler",
    "WaitTimeout",
    "Watch",
    "free_port",
    "make_node",
    "plain_scheduler_config",
    "render_scheduler_config",
    "wait_for",
]
