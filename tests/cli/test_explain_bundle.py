# SPDX-License-Identifier: Apache-2.0
"""`muster explain --bundle`: what is handed over, what is not, and that it can be used."""

from __future__ import annotations

import gzip
import stat
import sys
import tarfile
from pathlib import Path

import orjson
import pytest

from app.cli.main import run
from app.codec.snapshot import info_of, items_of
from tests.builders import Builder, Json, make_group, make_node, make_pod, snapshot

SECRET = {"name": "TOKEN", "value": "hunter2"}
QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "quota", "namespace": "default"},
    "spec": {},
}
ELSEWHERE: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "theirs", "namespace": "team-a"},
    "spec": {},
}
CONFIG: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}


def member(name: str) -> Builder:
    pod = make_pod(name).gpus(8).gang("g").gated()
    return pod.set(
        "spec.containers", [{**pod.get("spec.containers")[0], "env": [SECRET], "args": ["hunter2"]}]
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The last node is unhealthy, and its pod belongs to somebody else."""
    nodes = [make_node(f"n{number:03}").gpus(4) for number in range(220)]
    sick = make_node("sick").gpus(8).allocatable({"nvidia.com/gpu": "6"})
    pods = [make_pod("held", "team-a").gpus(1).on("sick"), make_pod("far", "team-a").gpus(1).on("n210")]
    objects = [*nodes, sick, *pods, make_group("g", 2), member("g0"), member("g1")]
    items = orjson.loads(snapshot(*objects))["items"]
    path = tmp_path / "cluster.json"
    path.write_bytes(orjson.dumps({"kind": "List", "items": [*items, QUOTA, ELSEWHERE, CONFIG]}))
    return path


def explain(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["muster", "explain", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        run()
    return int(ended.value.code or 0)


def unpacked(bundle: Path, into: Path) -> Path:
    with tarfile.open(bundle) as tar:
        tar.extractall(into, filter="data")
    return into / "muster-explain"


def test_a_bundle_is_the_report_its_objects_and_versions(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "b.tar.gz"
    assert explain(monkeypatch, "podgroup/g", "--snapshot", file, "--bundle", bundle, "-o", "wide") == 1
    said = capsys.readouterr().out
    assert stat.S_IMODE(bundle.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    folder = unpacked(bundle, tmp_path / "out")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["README", "objects.json.gz", "report.json", "report.txt", "versions.txt"]
    assert (folder / "report.txt").read_text() == said
    report = orjson.loads((folder / "report.json").read_bytes())
    assert report["verdict"]["sentence"] == said.splitlines()[0]
    assert "muster explain podgroup default/g --snapshot objects.json.gz" in (folder / "README").read_text()
    assert "API server not known" in (folder / "versions.txt").read_text()


def test_it_holds_what_the_report_rests_on_and_nothing_secret(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "b.tar.gz"
    explain(monkeypatch, "podgroup/g", "--snapshot", file, "--bundle", bundle)
    data = gzip.decompress((unpacked(bundle, tmp_path / "out") / "objects.json.gz").read_bytes())
    assert b"hunter2" not in data
    items = items_of(data, source="objects")
    there = {(item["kind"], item["metadata"]["name"]) for item in items}
    assert {("Pod", "g0"), ("PodGroup", "g"), ("ResourceQuota", "quota"), ("Node", "n000")} <= there
    assert {("Node", "sick"), ("Pod", "held"), ("Node", "n210"), ("Pod", "far")} <= there, "what is free"
    assert not {("ConfigMap", "c"), ("ResourceQuota", "theirs")} & there
    info = info_of(items)
    assert info is not None
    assert info.redacted


def test_it_can_be_explained_again_and_says_the_same(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "b.tar.gz"
    explain(monkeypatch, "podgroup/g", "--snapshot", file, "--bundle", bundle)
    objects = unpacked(bundle, tmp_path / "out") / "objects.json.gz"
    before = capsys.readouterr().out
    assert explain(monkeypatch, "podgroup", "default/g", "--snapshot", objects) == 1
    assert capsys.readouterr().out.partition("Not seen:")[0] == before.partition("Not seen:")[0]


def test_the_same_question_gives_the_same_bytes(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles = [tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"]
    for bundle in bundles:
        explain(monkeypatch, "podgroup/g", "--snapshot", file, "--bundle", bundle)
    assert bundles[0].read_bytes() == bundles[1].read_bytes()
