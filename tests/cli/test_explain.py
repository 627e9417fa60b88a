# SPDX-License-Identifier: Apache-2.0
"""`muster explain` as it is run: forms of the question, forms of the answer, exit codes, bad input."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson
import pytest
import yaml

from app.cli.client import Client
from app.cli.main import run
from app.cli.serving import serving
from app.codec.kinds import KINDS
from app.codec.snapshot import SnapshotInfo, Unseen
from app.explain.report import Outcome, Report
from tests.builders import Builder, Json, make_group, make_node, make_pod, snapshot

SECONDS = 120
NODE = make_node("n1").gpus(8)
OWNER: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default", "uid": "uid-train"},
    "spec": {},
}


def owned(name: str) -> Builder:
    return make_pod(name).gpus(1).set("metadata.ownerReferences", [{"kind": "Job", "uid": "uid-train"}])


CLUSTER = (
    NODE,
    make_pod("held").gpus(5).on("n1"),
    make_pod("small").gpus(1).scheduler("default-scheduler"),
    make_pod("large").gpus(9).scheduler("default-scheduler"),
    make_pod("busy").gpus(4).scheduler("default-scheduler"),
    make_pod("done").on("n1", phase="Succeeded"),
    make_pod("away", "team-a").gpus(1),
    make_group("g", 2),
    make_pod("g0").gpus(1).gang("g").gated(),
    make_pod("g1").gpus(1).gang("g").gated(),
    make_group("h", 2),
    make_pod("h0").gpus(1).gang("h").gated(),
)


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Muster = Callable[..., Ended]


@pytest.fixture
def muster(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Muster:
    """The command in this process, as its console script runs it."""
    for name in [name for name in os.environ if name.startswith(("MUSTER_", "KUBE"))]:
        monkeypatch.delenv(name)

    def call(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["muster", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            run()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A List as kubectl writes it."""
    path = tmp_path / "cluster.json"
    items = orjson.loads(snapshot(*CLUSTER, owned("t0")))["items"]
    path.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, OWNER]}))
    return path


def told(file: Path, info: SnapshotInfo) -> Path:
    """The same as `muster snapshot` writes it."""
    items = [*orjson.loads(file.read_bytes())["items"], orjson.loads(info.item())]
    path = file.with_name("told.json.gz")
    path.write_bytes(gzip.compress(orjson.dumps({"kind": "List", "items": items})))
    return path


# -- the verdict, and its exit code


@pytest.mark.parametrize(
    ("what", "code", "first"),
    [
        ("pod small", 0, "pod default/small fits now: on node n1; default-scheduler"),
        ("pod held", 0, "pod default/held is on node n1; its phase is Running"),
        ("pod done", 0, "pod default/done has ended: Succeeded"),
        (
            "pod busy",
            1,
            "pod default/busy waits: 3 of 8 nvidia.com/gpu free, 2 of them reserved; pod default/held",
        ),
        (
            "pod large",
            1,
            "pod default/large can never fit as the cluster stands: a pod requests 9 nv",
        ),
        ("podgroup g", 0, "podgroup default/g fits: Muster would reserve 2 seats for it now"),
        ("podgroup h", 1, "podgroup default/h waits: it has 1 of 2 members"),
        ("job train", 0, "job default/train fits now: on node n1; muster has"),
    ],
)
def test_the_first_line_is_the_verdict(muster: Muster, file: Path, what: str, code: int, first: str) -> None:
    ended = muster("explain", *what.split(), "--snapshot", file)
    assert (ended.code, ended.err) == (code, "")
    assert ended.out.splitlines()[0].startswith(first)


@pytest.mark.parametrize(
    "what",
    ["pod small", "pod/small", "po small", "pods default/small", "pod/default/small", "POD small -n default"],
)
def test_what_is_asked_about_is_written_as_for_kubectl(muster: Muster, file: Path, what: str) -> None:
    assert muster("explain", *what.split(), "--snapshot", file).out.startswith("pod default/small fits")


def test_another_namespace(muster: Muster, file: Path) -> None:
    for words in (["pod", "away", "-n", "team-a"], ["pod", "team-a/away"]):
        assert muster("explain", *words, "--snapshot", file).out.startswith("pod team-a/away fits")


def test_a_gang_that_was_never_asked_about_is_planned_as_the_scheduler_would(
    muster: Muster, tmp_path: Path
) -> None:
    path = tmp_path / "s.json"
    members = [make_pod(name).gpus(8).gang("g") for name in "ab"]
    path.write_bytes(snapshot(NODE, make_group("g", 2), *members))
    ended = muster("explain", "podgroup", "g", "--snapshot", path)
    assert ended.code == 1
    assert ended.out.startswith("podgroup default/g can never fit as the cluster stands: ")


def test_pods_of_another_scheduler_name_are_planned_when_the_settings_say_so(
    muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(
        snapshot(NODE, make_group("g", 1), make_pod("a").gpus(1).gang("g").scheduler("other").gated())
    )
    monkeypatch.setenv("MUSTER_SCHEDULER_NAME", "other")
    assert "Muster would reserve a seat on node n1" in muster("explain", "pg/g", "--snapshot", path).out


# -- forms


def test_json_and_yaml_are_the_report(muster: Muster, file: Path) -> None:
    found = muster("explain", "pod/busy", "--snapshot", file, "-o", "json")
    report = msgspec.json.decode(found.out, type=Report)
    assert (found.code, report.verdict.code, report.verdict.exit) == (1, Outcome.BUSY, 1)
    again = muster("explain", "pod/busy", "--snapshot", file, "-o", "yaml")
    assert yaml.safe_load(again.out) == orjson.loads(found.out)


def test_wide_has_headers_unless_they_are_not_wanted(muster: Muster, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(snapshot(NODE.allocatable({"nvidia.com/gpu": "6"}), make_pod("w").gpus(1)))
    assert "OBJECT" not in muster("explain", "pod/w", "--snapshot", path).out
    assert "OBJECT" in muster("explain", "pod/w", "--snapshot", path, "-o", "wide").out
    assert "OBJECT" not in muster("explain", "pod/w", "--snapshot", path, "-o", "wide", "--no-headers").out


def test_the_same_file_gives_the_same_answer(muster: Muster, file: Path) -> None:
    first, second = (muster("explain", "podgroup/g", "--snapshot", file, "-o", "json") for _ in range(2))
    assert first == second


# -- what the file does not tell


def test_a_list_of_kubectl_does_not_say_what_it_lacks(muster: Muster, file: Path) -> None:
    out = muster("explain", "pod/small", "--snapshot", file).out
    assert "not read (the snapshot has none and does not say whether there are any): " in " ".join(
        out.split()
    )


def test_a_snapshot_that_says_that_it_is_whole_is_believed(muster: Muster, file: Path) -> None:
    whole = told(file, SnapshotInfo(counts={kind.name: 0 for kind in KINDS}))
    assert "Not seen" not in muster("explain", "pod/small", "--snapshot", whole).out


def test_one_of_some_namespaces_gives_an_upper_bound(muster: Muster, file: Path) -> None:
    part = told(file, SnapshotInfo(namespaces=("default",)))
    out = muster("explain", "pod/small", "--snapshot", part).out
    assert "  pods of the namespaces default alone were read: what is free is an upper bound" in out
    ended = muster("explain", "pod", "x", "-n", "team-b", "--snapshot", part)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "muster: pod team-b/x could not be looked up: namespace team-b was not read\n"


def test_a_kind_that_was_forbidden_is_not_taken_for_absent(muster: Muster, file: Path) -> None:
    part = told(file, SnapshotInfo(unseen=(Unseen("jobs.batch", "not allowed to list it"),)))
    out = muster("explain", "pod/small", "--snapshot", part).out
    assert "  not read (not allowed to list it): Job.batch" in out.splitlines()
    ended = muster("explain", "job/gone", "--snapshot", part)
    assert ended.err == (
        "muster: job default/gone could not be looked up: Job.batch was not read: not allowed to list it\n"
    )


def test_an_object_that_cannot_be_used_is_named_and_the_rest_is_explained(
    muster: Muster, tmp_path: Path
) -> None:
    path = tmp_path / "s.json"
    odd = make_pod("odd").requests({"cpu": "a lot"})
    path.write_bytes(snapshot(NODE, odd, make_pod("w").gpus(1)).replace(b'"items":[', b'"items":[7,'))
    ended = muster("explain", "pod/w", "--snapshot", path, "-o", "wide")
    assert ended.code == 0
    said = " ".join(ended.out.split())
    assert "not read (it is not a Kubernetes object with metadata): items[0]" in said
    assert "Pod default/odd" in said
    ended = muster("explain", "pod/odd", "--snapshot", path)
    assert ended.code == 2
    assert "could not be looked up: Pod default/odd was not read: pod default/odd: " in ended.err


# -- bad input


BAD = {
    "nothing there": ("pod/gone", "there is no pod default/gone; check the name and the namespace (-n)"),
    "a kind that is none": ("node/n1", "node cannot be explained; ask about one of pod, podgroup, job"),
    "no name": ("pod", "pod names nothing; write KIND NAME, such as: pod my-pod"),
    "an empty name": ("pod/", "pod/ names nothing"),
    "too many parts": ("pod/a/b/c", "pod/a/b/c names nothing"),
    "two namespaces": ("pod a/b -n c", "the namespace is a in the name and c in -n"),
    "two sources": ("pod/small --server http://x", "give --server URL alone"),
    "a file and an API": ("pod/small --context x", "give --snapshot FILE alone"),
    "a bundle into nowhere": ("pod/small --bundle /nowhere/b.tar.gz", "cannot write /nowhere/b.tar.gz"),
    "a configuration that is not there": ("pod/small --config /nowhere", "cannot read /nowhere"),
    "a configuration that is none": ("pod/small --config FILE", "holds no KubeSchedulerConfiguration"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_answered_ends_with_2_and_one_line(muster: Muster, file: Path, name: str) -> None:
    words, said = BAD[name]
    ended = muster("explain", *words.replace("FILE", str(file)).split(), "--snapshot", file)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert line.startswith("muster: ")
    assert said in line


FILES = {
    "JSON cut off": (snapshot(NODE)[:-20], "is not JSON"),
    "gzip cut off": (gzip.compress(snapshot(NODE))[:-9], "cannot read"),
    "not a List": (NODE.json(), "is not a v1 List: it has no items; use the output of kubectl get -o json"),
    "YAML": (b"apiVersion: v1\nitems: []\n", "it looks like YAML: use kubectl get -o json"),
    "empty": (b"", "is not JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_none_is_told(muster: Muster, tmp_path: Path, name: str) -> None:
    data, said = FILES[name]
    path = tmp_path / "s"
    path.write_bytes(data)
    ended = muster("explain", "pod/small", "--snapshot", path)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_cluster_that_is_not_there_is_told(muster: Muster, tmp_path: Path) -> None:
    ended = muster("explain", "pod/x", "--kubeconfig", tmp_path / "none")
    assert (ended.code, ended.out) == (2, "")
    assert "no usable Kubernetes credentials" in ended.err


# -- a running Muster


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp("server") / "s.json"
    path.write_bytes(snapshot(*CLUSTER))
    with serving(path) as client:
        yield client


def test_a_running_muster_gives_the_same_report(muster: Muster, file: Path, server: Client) -> None:
    for what in ("podgroup/g", "pod/busy", "pod/large", "podgroup/h"):
        live = muster("explain", what, "--server", server.url, "-o", "json")
        offline = muster("explain", what, "--snapshot", file, "-o", "json")
        alike = live.out.replace(
            "has reserved 2 seats for it; it is planned", "would reserve 2 seats for it now"
        )
        assert (live.code, orjson.loads(alike)["verdict"]) == (
            offline.code,
            orjson.loads(offline.out)["verdict"],
        )


def test_the_variable_names_the_server_and_a_file_wins_over_it(
    muster: Muster, file: Path, server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_SERVER", server.url)
    assert muster("explain", "pod/small").code == 0
    assert (
        "job default/train could not be looked up: Job.batch was not read"
        in muster("explain", "job/train").err
    )
    assert muster("explain", "job/train", "--snapshot", file).code == 0


def test_what_a_running_muster_cannot_say_is_one_line(muster: Muster, server: Client) -> None:
    ended = muster("explain", "pod/gone", "--server", server.url)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "muster: there is no pod default/gone; check the name and the namespace (-n)\n"
    ended = muster("explain", "pod/gone", "--server", f"{server.url}/elsewhere")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    assert "did not answer GET /explain/default/pod/gone with a report (404)" in ended.err
    ended = muster("explain", "pod/gone", "--server", "http://127.0.0.1:1")
    assert (ended.code, len(ended.err.splitlines())) == (2, 1)
    for option in ("--bundle", "--config"):
        ended = muster("explain", "pod/small", "--server", server.url, option, "x")
        assert (ended.code, ended.out) == (2, "")
        assert "a running Muster" in ended.err


HEAVY = ("numpy", "fastapi", "starlette", "pydantic", "kubernetes", "aiohttp", "uvicorn", "asyncio", "yaml")


def test_asking_a_running_muster_imports_nothing_heavy_also_as_a_plugin_of_kubectl(server: Client) -> None:
    """As `kubectl muster explain`: the console script of that name."""
    script = f"""
import sys
sys.argv = ["kubectl-muster", "explain", "podgroup/g", "--server", {server.url!r}]
from app.cli.main import run
try:
    run()
except SystemExit as ended:
    print(ended.code, *(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
"""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("MUSTER_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, env=clean, timeout=SECONDS,
        check=True,
    )  # fmt: skip
    assert done.stdout.startswith("podgroup default/g fits: Muster has reserved 2 seats for it")
    assert done.stderr == "0\n"


def test_the_script_of_kubectls_plugin_runs_it(file: Path) -> None:
    plugin = Path(sys.executable).with_name("kubectl-muster")
    words = [str(plugin), "explain", "pod", "small", "--snapshot", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout.splitlines()[0][:27]) == (0, "pod default/small fits now:")


def test_an_object_that_no_value_can_hold_is_left_out_and_named(muster: Muster, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(
        b'{"kind":"List","items":[%s,{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"odd",'
        b'"namespace":"default"},"spec":{"parallelism":1e400}}]}' % make_pod("p").json()
    )
    ended = muster("explain", "job/odd", "--snapshot", path)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "Job.batch default/odd was not read: Job.batch default/odd cannot be read:" in ended.err
