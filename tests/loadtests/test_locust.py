# SPDX-License-Identifier: Apache-2.0
"""The verbs under locust: bodies that a service answers, limits that are judged, and a run of seconds."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import orjson
import pytest

from app.cli.serving import serving
from loadtests.material.bodies import MEMBER, SIZES, calls, nodes_args, snapshot
from loadtests.material.objects import node_name
from loadtests.record import read
from loadtests.reporting.limits import exceeded, figures
from loadtests.reporting.thresholds import VerbLimit, Verbs

ROOT = Path(__file__).parents[2]
NODES = 500
SEAT = node_name(7)
LIMITS = Verbs(factor=2, limits=[VerbLimit(call="filter gpu 500", p50_ms=2, p99_ms=5)])


def test_bodies_offer_so_many_names_and_always_the_seat() -> None:
    made = calls(max(SIZES), SEAT)
    assert len({call.name for call in made}) == len(made)
    for call in made:
        names = orjson.loads(call.body)["NodeNames"]
        assert len(set(names)) == len(names) == int(call.name.rpartition(" ")[2])
        assert SEAT in names
    assert {call.name.rpartition(" ")[2] for call in calls(NODES, SEAT)} == {"1", "500"}
    shares = Counter({"gang": 0})
    for call in made:
        shares["gang" if orjson.loads(call.body)["Pod"]["metadata"]["labels"] else "other"] += call.weight
    assert shares["gang"] == shares["other"]


def test_each_kind_of_pod_is_answered_as_its_name_says(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(orjson.dumps(snapshot(NODES)))
    with serving(file) as client:
        everywhere = [node_name(index) for index in range(NODES)]
        seat = client.post("/filter", orjson.loads(nodes_args(MEMBER, everywhere)))["NodeNames"]
        found = {
            call.name: client.post(f"/{call.verb}", orjson.loads(call.body)) for call in calls(NODES, seat[0])
        }
    assert len(seat) == 1
    assert found["filter planned 500"]["NodeNames"] == found["filter planned 1"]["NodeNames"] == seat
    assert found["filter waiting 500"]["NodeNames"] == []
    assert len(found["filter gpu 500"]["NodeNames"]) == NODES - 8  # the gang's nodes are set aside
    assert len(found["filter cpu 500"]["NodeNames"]) == NODES
    assert found["prioritize gpu 500"]


def test_percentiles_are_figures_by_size_then_call() -> None:
    found = figures({"filter gpu 500": [1.0, 2.0, 3.0], "prioritize gpu 1": [4.0]})
    assert next(iter(found)) == "prioritize_gpu_1_p50_ms"
    assert found["filter_gpu_500_p50_ms"] == 2 and found["filter_gpu_500_calls"] == 3
    assert 2.9 < found["filter_gpu_500_p99_ms"] <= 3


@pytest.mark.parametrize(
    ("taken", "complaints"),
    [
        pytest.param([3.9] * 9, [], id="beyond the limit, within the factor"),
        pytest.param([4.1] * 9, ["filter gpu 500: p50 4.10 ms exceeds 2 x 2 ms"], id="a slow median"),
        pytest.param([1.0] * 9 + [99.0], ["filter gpu 500: p99 90.18 ms exceeds 2 x 5 ms"], id="a slow tail"),
    ],
)
def test_a_call_is_too_slow_beyond_factor_times_its_limit(taken: list[float], complaints: list[str]) -> None:
    assert exceeded({"filter gpu 500": taken, "filter cpu 1": [1e6]}, LIMITS) == complaints


def drive(*flags: str) -> subprocess.CompletedProcess[str]:
    """`python -m loadtests.verbs`, for a few seconds."""
    command = [sys.executable, "-m", "loadtests.verbs", "--nodes", str(NODES), "--seconds", "3", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)


@pytest.mark.skipif(importlib.util.find_spec("locust") is None, reason="locust is not installed: make locust")
def test_locust_drives_the_verbs_and_leaves_a_record(tmp_path: Path) -> None:
    done = drive("--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("VERB ") and len(done.stderr.splitlines()) == 1
    (record,) = read(tmp_path)
    assert (record.scenario, record.contender, record.nodes) == ("verbs", "muster", NODES)
    for call in calls(NODES, SEAT):
        name = call.name.replace(" ", "_")
        assert record.figures[f"{name}_calls"] > 0 and record.figures[f"{name}_p50_ms"] > 0
    assert record.figures["calls_per_second"] > 0


@pytest.mark.skipif(importlib.util.find_spec("locust") is not None, reason="locust is installed")
def test_without_locust_it_says_how_to_get_it() -> None:
    done = drive()
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "verbs: locust is not installed: run `make locust`, which installs it"
    ]
