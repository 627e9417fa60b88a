# SPDX-License-Identifier: Apache-2.0
"""What docs/submit.md tells people to do, done to the letter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.lab import Lab, phase
from tests.real.muster import ROOT

pytestmark = pytest.mark.real

EXAMPLES = ROOT / "examples"


@pytest.fixture
def team(shared: Lab) -> Iterator[Lab]:
    """Both namespaces of examples/namespaces.yaml and room for the largest example; empty afterwards."""
    cluster = shared.cluster
    cluster.kubectl("apply", "-f", str(EXAMPLES / "namespaces.yaml"))
    for namespace in ("team-a", "team-b"):
        cluster.wait_for_service_account(namespace)
    shared.nodes(4, gpus=8)
    yield shared
    for namespace in ("team-a", "team-b"):
        for file in sorted(EXAMPLES.glob("*.yaml")):
            if file.name != "namespaces.yaml":
                _kubectl(shared, "delete", namespace, file.name, "--cascade=foreground", "--ignore-not-found")


@pytest.mark.parametrize(
    ("file", "namespace", "gang", "running"),
    [
        ("job-gang.yaml", "team-a", "train", 4),
        ("launcher-workers.yaml", "team-a", "mpi", 5),
        ("native-group.yaml", "team-a", "native", 2),
        ("three-seats.yaml", "team-a", "seats", 6),
        ("job-gang.yaml", "team-b", "train", 4),
    ],
)
def test_each_example_ends_with_its_gang_running(
    team: Lab, file: str, namespace: str, gang: str, running: int
) -> None:
    _kubectl(team, "apply", namespace, file)
    team.wait(lambda: _running(team, gang, namespace) == running, 20, f"{gang} runs")
    assert all(p["spec"]["schedulerName"] == "muster" for p in team.of(gang, namespace))


@pytest.mark.parametrize(("namespace", "scheduler"), [("team-b", "muster"), ("team-a", "default-scheduler")])
def test_the_single_gpu_pod_is_ours_only_where_gpus_are_covered(
    team: Lab, namespace: str, scheduler: str
) -> None:
    _kubectl(team, "apply", namespace, "single-gpu.yaml")
    assert team.pod("notebook", namespace)["spec"]["schedulerName"] == scheduler
    if scheduler == "muster":
        team.wait(lambda: phase(team.pod("notebook", namespace)) == "Running", 20, "the notebook runs")


def test_submit_again_as_the_document_tells(team: Lab) -> None:
    _kubectl(team, "apply", "team-a", "job-gang.yaml")
    team.wait(lambda: _running(team, "train", "team-a") == 4, 20, "the first run runs")
    first = {p["metadata"]["uid"] for p in team.of("train", "team-a")}

    team.cluster.kubectl("delete", "-n", "team-a", "job", "train", "--cascade=foreground")
    _kubectl(team, "apply", "team-a", "job-gang.yaml")
    team.wait(lambda: _running(team, "train", "team-a") == 4, 20, "the second run runs")
    assert first.isdisjoint(p["metadata"]["uid"] for p in team.of("train", "team-a"))


def _kubectl(lab: Lab, verb: str, namespace: str, file: str, *options: str) -> None:
    lab.cluster.kubectl(verb, "-n", namespace, "-f", str(EXAMPLES / file), *options)


def _running(lab: Lab, gang: str, namespace: str) -> int:
    return sum(phase(p) == "Running" for p in lab.of(gang, namespace))
