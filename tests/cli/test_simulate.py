# SPDX-License-Identifier: Apache-2.0
"""`muster simulate` as people and scripts see it."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from app.cli import demo
from app.cli.main import app
from app.cli.scheduler import StandIn
from app.cli.serving import serving
from app.cli.simulate import PARTIAL, alike
from app.domain.errors import InputError
from tests.builders import Builder, Json, PodBuilder, make_group, make_node, make_pod, snapshot

TEAM = Builder({
    "apiVersion": "v1", "kind": "Namespace",
    "metadata": {"name": "team-a", "labels": {"muster.dev/enabled": "gangs"}},
})  # fmt: skip
MANIFEST = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train}
spec: {minMember: %d}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  completions: 6
  parallelism: 6
  template:
    metadata:
      labels: {scheduling.x-k8s.io/pod-group: train}
    spec:
      containers:
      - name: worker
        resources: {limits: {nvidia.com/gpu: 1}}
"""


class Desk:
    """A folder with a snapshot, in which the command is run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def cluster(self, *objects: Builder) -> None:
        (self.folder / "cluster.json").write_bytes(snapshot(*objects))

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def run(self, *args: str) -> Result:
        return CliRunner().invoke(app, ["simulate", "--snapshot", str(self.folder / "cluster.json"), *args])

    def result(self, *args: str) -> Json:
        out: Json = orjson.loads(self.run("-o", "json", *args).stdout)
        return out


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def member(name: str, gang: str) -> PodBuilder:
    return make_pod(name).gpus(1).gang(gang).gated()


def members(gang: str, count: int) -> list[PodBuilder]:
    return [member(f"{gang}-{number}", gang) for number in range(count)]


def names(entries: list[Json]) -> list[str]:
    return [entry["name"] for entry in entries]


# -- the demo that everybody knows: room for three, six pods


def test_of_six_members_with_a_minimum_of_three_three_would_run(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("six", 3), *members("six", 6))
    done = desk.run()
    assert done.exit_code == 1
    reason = (
        "gang default/six has its minimum and runs; this further member waits: "
        "0 of 3 nvidia.com/gpu free; gang default/six holds 3"
    )
    assert done.stdout.splitlines() == [
        "ORDER   NAMESPACE   NAME    NODE   GANG          AFTER",
        "1       default     six-0   n1     default/six   0s",
        "2       default     six-1   n1     default/six   0s",
        "3       default     six-2   n1     default/six   0s",
        "",
        "NAMESPACE   NAME                GANG          STATE     REASON",
        f"default     six-3 + 2 more...   default/six   waiting   {reason}",
        "",
        "3 of 6 pending pods would be bound; 3 stay: 3 waiting",
        "nvidia.com/gpu: 3 free before, 0 after, of 3",
    ]


def test_with_a_minimum_of_four_none_would_run(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("six", 4), *members("six", 6))
    done = desk.run("-o", "wide")
    assert done.exit_code == 1
    assert "ORDER" not in done.stdout
    rows = [re.split(r" {3,}", line) for line in done.stdout.splitlines()[1:7]]
    assert [row[1] for row in rows] == [f"six-{number}" for number in range(6)]
    assert {row[4] for row in rows} == {
        "gang default/six can never fit: an empty cluster would have seats for 3 of 4 members"
    }
    assert done.stdout.splitlines()[-2] == "0 of 6 pending pods would be bound; 6 stay: 6 waiting"


@pytest.mark.parametrize(("minimum", "bound"), [(3, 3), (4, 0)])
def test_the_same_submitted_as_a_job(desk: Desk, minimum: int, bound: int) -> None:
    desk.cluster(make_node("n1").gpus(3), TEAM)
    result = desk.result("-n", "team-a", "--submit", desk.file("job.yaml", MANIFEST % minimum))
    assert (len(result["bound"]), len(result["pending"])) == (bound, 6 - bound)
    assert all(pod["submitted"] for pod in [*result["bound"], *result["pending"]])
    assert {pod["gang"] for pod in [*result["bound"], *result["pending"]]} == {"team-a/train"}


@pytest.mark.parametrize("ungated", [True, False])
def test_members_that_were_never_gated_fare_the_same(desk: Desk, ungated: bool) -> None:
    pods = [pod.ungated() if ungated else pod for pod in members("six", 6)]
    desk.cluster(make_node("n1").gpus(3), make_group("six", 3), *pods)
    assert len(desk.result()["bound"]) == 3


# -- exit codes


def test_everything_bound_is_0(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(6), make_group("six", 3), *members("six", 6))
    done = desk.run()
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-2] == "6 of 6 pending pods would be bound"


def test_nothing_pending_is_0(desk: Desk) -> None:
    desk.cluster(make_node("n1"), make_pod("else").scheduler("default-scheduler"))
    done = desk.run()
    assert (done.exit_code, done.stdout) == (0, "0 of 0 pending pods would be bound\n")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        pytest.param(["--submit", "none.yaml"], "cannot read none.yaml: No such file", id="no such manifest"),
        pytest.param(
            ["--plot", "out.pdf"], "--plot: out.pdf must end in .png or .html", id="unknown picture"
        ),
        pytest.param(["--plot", "/none/out.html"], "cannot write /none/out.html", id="folder is missing"),
    ],
)
def test_bad_input_is_an_error_of_one_line(desk: Desk, args: list[str], text: str) -> None:
    desk.cluster(make_node("n1"))
    done = desk.run(*args)
    assert isinstance(done.exception, InputError)  # which the console script prints, with exit code 2
    assert text in str(done.exception)
    assert done.stdout == ""


def test_a_kind_that_is_not_supported_is_named_on_one_line_with_exit_code_2(desk: Desk) -> None:
    desk.cluster(make_node("n1"))
    manifest = desk.file("m.yaml", "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n")
    command = [sys.executable, "-P", "-m", "app", "simulate", "--snapshot", str(desk.folder / "cluster.json")]
    done = subprocess.run([*command, "--submit", manifest], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("muster: DaemonSet d: DaemonSet of apps/v1 is not supported; use Pod, ")
    assert done.stderr.count("\n") == 1


def test_a_png_without_pillow_is_refused_before_anything_is_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    done = desk.run("--plot", "out.png")  # there is no snapshot either
    assert str(done.exception).startswith("--plot: a PNG needs Pillow: pip install 'muster-scheduler[plot]'")


def test_a_manifest_without_submit_is_a_usage_error(desk: Desk) -> None:
    desk.cluster(make_node("n1"))
    done = desk.run("job.yaml")
    assert done.exit_code == 2
    assert "unexpected argument job.yaml; give manifests with --submit" in done.stderr


# -- what is submitted


@pytest.mark.parametrize("repeated", [True, False])
def test_several_manifests(desk: Desk, repeated: bool) -> None:
    desk.cluster(make_node("n1").gpus(8))
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {schedulerName: muster, containers: []}\n"
    first, second = desk.file("a.yaml", pod % "a"), desk.file("b.yaml", pod % "b")
    args = ["--submit", first, "--submit", second] if repeated else ["--submit", first, second]
    assert names(desk.result(*args)["bound"]) == ["a", "b"]


def test_what_muster_leaves_alone_is_said_and_is_not_bound(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(8))
    done = desk.run("-o", "wide", "-n", "team-b", "--submit", desk.file("job.yaml", MANIFEST % 1))
    assert done.exit_code == 1
    why = "namespace team-b has no label muster.dev/enabled in the snapshot: Muster leaves the pod alone"
    assert done.stdout.count(f"Ignored   {why}") == 6
    assert "0 of 6 pending pods would be bound; 6 stay: 6 Ignored" in done.stdout


def test_a_note_about_what_was_submitted_is_shown(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(8), TEAM)
    suspended = (MANIFEST % 1).replace("completions: 6", "suspend: true")
    done = desk.run("-n", "team-a", "--submit", desk.file("job.yaml", suspended))
    assert done.stdout.splitlines()[-1] == "note: Job team-a/train has no pods: it asks for none now"


# -- why the rest waits


@pytest.mark.parametrize(
    ("pods", "state", "reason"),
    [
        pytest.param(
            [member("p", "absent")],
            "forming",
            "gang default/absent has no PodGroup yet: create it in the same namespace",
            id="no PodGroup",
        ),
        pytest.param(
            [make_group("g", 2), member("p", "g")],
            "forming",
            "gang default/g has 1 of 2 members",
            id="incomplete",
        ),
        pytest.param(
            [make_group("g"), member("p", "g").gate("quota")],
            "forming",
            "gang default/g has 0 of 1 members ready: pod p is held by gate quota",
            id="a gate in a gang",
        ),
        pytest.param(
            [make_pod("p").gate("quota")],
            "SchedulingGated",
            "the pod is held by gate quota",
            id="a gate of others",
        ),
        pytest.param(
            [make_pod("p").gang("g").native("n")],
            "Pending",
            "pod names two PodGroups: scheduling.x-k8s.io/pod-group=g and "
            "spec.schedulingGroup.podGroupName=n; keep one of the two",
            id="both APIs",
        ),
        pytest.param(
            [make_pod("p").gpus(9)],
            "Pending",
            "0/1 nodes are available: 1 Insufficient nvidia.com/gpu",
            id="kube-scheduler itself",
        ),
    ],
)
def test_the_reason_is_musters_own_or_else_kube_schedulers(
    desk: Desk, pods: list[Builder], state: str, reason: str
) -> None:
    desk.cluster(make_node("n1").gpus(8), *pods)
    (pending,) = desk.result()["pending"]
    assert (pending["state"], pending["reason"]) == (state, reason)


def test_reasons_tell_how_it_is_in_the_end(desk: Desk) -> None:
    """Not how it was when the gang was refused first."""
    first, second = make_group("a", 2), make_group("b", 2).created("2026-01-01T00:00:01Z")
    desk.cluster(make_node("n1").gpus(3), first, second, *members("a", 2), *members("b", 2))
    assert {pod["reason"] for pod in desk.result()["pending"]} == {
        "gang default/b has seats for 1 of 2 members: 1 of 3 nvidia.com/gpu free; gang default/a holds 2"
    }


# -- until quiet


def late() -> tuple[Builder, ...]:
    """The gang has its turn before the pod whose nomination is in its way has found another place."""
    elsewhere = make_pod("elsewhere").gpus(1).selector({"kubernetes.io/hostname": "n2"}).nominated("n1")
    gang = (make_group("late"), make_pod("late-0").gpus(8).gang("late"))
    return (
        make_node("n1").gpus(8),
        make_node("n2").gpus(1),
        *gang,
        elsewhere.created("2026-01-02T00:00:00Z"),
    )


def test_at_once_a_refused_member_waits_with_its_seat(desk: Desk) -> None:
    desk.cluster(*late())
    result = desk.result()
    assert names(result["bound"]) == ["elsewhere"]
    (pending,) = result["pending"]
    assert (pending["state"], pending["reason"]) == ("planned", "has a seat on n1 and is not bound yet")


def test_until_quiet_it_is_tried_again_and_bound(desk: Desk) -> None:
    desk.cluster(*late())
    result = desk.result("--until-quiet")
    assert names(result["bound"]) == ["elsewhere", "late-0"]
    assert result["pending"] == []
    assert 1.0 <= result["bound"][1]["seconds"] == result["seconds"] < 10.0


def test_until_quiet_binds_at_least_what_is_bound_at_once(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("six", 3), *members("six", 6))
    assert desk.result("--until-quiet")["bound"] == desk.result()["bound"]


# -- settings


def test_musters_settings_count_as_for_serve(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_SCHEDULER_NAME", "gangs")
    renamed = make_pod("own").gpus(1).gang("own").scheduler("gangs")
    desk.cluster(make_node("n1").gpus(8), TEAM, make_group("own", 1), renamed, *members("other", 1))
    result = desk.result("-n", "team-a", "--submit", desk.file("job.yaml", MANIFEST % 6))
    assert [pod["namespace"] for pod in result["bound"]] == ["default", *["team-a"] * 6]
    assert names(result["bound"])[0] == "own" and result["pending"] == []


# -- forms


def test_without_headers_there_are_rows_alone(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("six", 3), *members("six", 6))
    lines = desk.run("--no-headers").stdout.splitlines()
    assert [line.split()[0] if line else "" for line in lines] == ["1", "2", "3", "", "default"]
    desk.cluster()
    assert desk.run("--no-headers").stdout == "\n"


def test_pods_that_differ_in_their_names_alone_share_a_row() -> None:
    one, other = ("a", "gang-1", "waiting", "full"), ("a", None, "Pending", "full")

    def stays(name: str, kind: tuple[str, str | None, str, str]) -> tuple[str, str, str | None, str, str]:
        return (kind[0], name, *kind[1:])

    pods = [stays("x-0", one), stays("lone", other), stays("x-1", one), stays("x-2", one)]
    assert alike(pods) == [stays("x-0 + 2 more...", one), stays("lone", other)]
    for place, value in enumerate(("b", "gang-2", "forming", "fuller")):
        changed = stays("x-3", (*one[:place], value, *one[place + 1 :]))  # type: ignore[arg-type]
        assert alike([stays("x-0", one), changed]) == [stays("x-0", one), changed]


@pytest.mark.parametrize(("namespaces", "notes"), [(["team-a"], [PARTIAL]), (None, [])])
def test_a_snapshot_of_a_part_is_said_to_give_an_upper_bound(
    desk: Desk, namespaces: list[str] | None, notes: list[str]
) -> None:
    info = Builder({
        "apiVersion": "muster.dev/v1", "kind": "SnapshotInfo", "metadata": {"name": "snapshot"},
        "counts": {"nodes": 1, "pods": 1}, "namespaces": namespaces,
    })  # fmt: skip
    desk.cluster(make_node("n1").gpus(3), make_pod("p").gpus(1), info)
    assert desk.result()["notes"] == notes


def test_the_json_has_everything(desk: Desk) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("two", 2), *members("two", 2), make_pod("p").gpus(4))
    total: Json = {"name": "nvidia.com/gpu", "allocatable": 3, "size": 3}
    assert desk.result() == {
        "bound": [
            {
                "order": number + 1, "namespace": "default", "name": f"two-{number}", "node": "n1",
                "gang": "default/two", "seconds": 0.0, "submitted": False,
            }
            for number in range(2)
        ],
        "pending": [
            {
                "namespace": "default", "name": "p", "gang": None, "state": "Pending", "submitted": False,
                "reason": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu",
            },
        ],
        "devices": [
            {
                "before": total | {"free": 3, "whole": 1, "members": 1},
                "after": total | {"free": 1, "whole": 0, "members": 0},
            },
        ],
        "seconds": 0.0,
        "notes": [],
    }  # fmt: skip


@pytest.mark.parametrize(("name", "start"), [("out.png", b"\x89PNG"), ("out.html", b"<!DOCTYPE html>")])
def test_a_picture_is_written(desk: Desk, name: str, start: bytes) -> None:
    desk.cluster(make_node("n1").gpus(3), make_group("six", 3), *members("six", 6))
    file = desk.folder / name
    assert desk.run("--plot", str(file)).exit_code == 1
    assert file.read_bytes().startswith(start)


def test_the_page_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text()
    command, _, shown = page.partition("```console\n$ muster ")[2].partition("\n")
    done = CliRunner().invoke(app, command.replace("app/cli/demo", str(demo.SNAPSHOTS)).split())
    assert shown.partition("```")[0] == done.stdout


# -- against the real thing


@pytest.mark.parametrize("scenario", ["three-of-six", "four-of-six", "launcher"])
def test_the_service_over_http_binds_the_same_pods(scenario: str) -> None:
    file = demo.SNAPSHOTS / f"{scenario}.json"
    done = CliRunner().invoke(app, ["simulate", "--snapshot", str(file), "-o", "json"])
    simulated = {pod["name"]: pod["node"] for pod in orjson.loads(done.stdout)["bound"]}
    expected = next(one for one in demo.SCENARIOS if one.name == scenario)
    with serving(file) as client:
        view = StandIn(client).run(lambda now: not demo.problem(expected, now), settle=0.5, limit=30)
    pods = [pod for pod in view.pods.values() if pod.scheduler == "muster" and pod.node is not None]
    assert simulated == {pod.name: pod.node for pod in pods}


def test_the_same_snapshot_gives_the_same_bytes(desk: Desk) -> None:
    """Whatever the seed by which Python orders its sets."""
    gangs = [
        builder
        for number in range(12)
        for builder in (make_group(f"g{number}", 2), *members(f"g{number}", 3))
    ]  # fmt: skip
    desk.cluster(*(make_node(f"n{number}").gpus(4) for number in range(5)), *gangs)
    command = [sys.executable, "-P", "-m", "app", "simulate", "--snapshot", str(desk.folder / "cluster.json")]
    outputs: set[Any] = set()
    for seed in ("1", "2", "3"):
        picture = desk.folder / f"{seed}.html"
        done = subprocess.run(
            [*command, "-o", "json", "--until-quiet", "--plot", str(picture)],
            capture_output=True, check=False, env=os.environ | {"PYTHONHASHSEED": seed},
        )  # fmt: skip
        outputs.add((done.stdout, picture.read_bytes().partition(b"</title>")[2]))
    assert len(outputs) == 1
