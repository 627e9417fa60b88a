# SPDX-License-Identifier: Apache-2.0
"""Snapshot files: whole, zipped, broken, and with things in them that nobody here knows."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from app.codec.objects import ObjectDecoder
from app.codec.snapshot import ListText, SnapshotInfo, Unseen, info_of, items_of, read, value_of
from app.domain.errors import InputError
from app.domain.gang import PodGroup
from app.domain.node import Node
from app.domain.pod import Pod
from tests.builders import Json, make_group, make_node, make_pod, snapshot

LIST = snapshot(make_node("n1").gpus(8), make_pod("p").gang("g"), make_group("g"), make_group("g").native())


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("name", ["cluster.json", "cluster.json.gz", "noname"])
def test_a_snapshot_is_read_whatever_its_name(tmp_path: Path, packed: bool, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LIST) if packed else LIST)
    assert [item["kind"] for item in read(path)] == ["Node", "Pod", "PodGroup", "PodGroup"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(gzip.compress(LIST)[:-20], "cannot read", id="gzip cut off"),
        pytest.param(gzip.compress(LIST)[:30], "cannot read", id="gzip cut off early"),
        pytest.param(b"\x1f\x8b", "cannot read", id="only the first bytes of a gzip"),
        pytest.param(b"\x1f\x8bgarbage that is no deflate", "cannot read", id="garbage behind them"),
        pytest.param(gzip.compress(LIST)[:-8] + b"\x00" * 8, "cannot read", id="wrong checksum"),
        pytest.param(LIST[:-40], "is not JSON", id="JSON cut off"),
        pytest.param(b"", "is not JSON", id="empty file"),
        pytest.param(b"apiVersion: v1\nitems: []\n", "is not JSON", id="YAML"),
        pytest.param(b"\xff\xfe", "is not JSON", id="UTF-16"),
        pytest.param(b"[" * 5000 + b"]" * 5000, "is not JSON", id="nested without end"),
        pytest.param(b"[]", "is not a v1 List", id="a bare list"),
        pytest.param(b"7", "is not a v1 List", id="a number"),
        pytest.param(make_pod("p").json(), "is not a v1 List", id="one object"),
        pytest.param(b'{"items":null}', "is not a v1 List", id="items null"),
        pytest.param(
            b'{"items":[{"metadata":{}},7]}', r"items\[1\]: is not a Kubernetes object", id="an item"
        ),
        pytest.param(
            b'{"items":[{"metadata":null}]}', r"items\[0\]: is not a Kubernetes object", id="metadata"
        ),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=said) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "none.json")
    with pytest.raises(InputError, match="directory"):
        read(tmp_path)


def test_kinds_that_are_not_followed_are_kept_as_they_are() -> None:
    unknown: Json = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "x": [1, {"y": None}],
    }
    kept = items_of(orjson.dumps({"items": [unknown]}), source="memory")
    assert kept == [unknown]
    assert value_of(ObjectDecoder(), kept[0]) is None


@pytest.mark.parametrize(
    "obj",
    [
        {"kind": "PodGroup", "apiVersion": "other.example.com/v1"},
        {"kind": "Pod", "apiVersion": "example.com/v1"},
        {"kind": "Node", "apiVersion": None},
        {"apiVersion": "v1"},
        {"kind": ["Pod"], "apiVersion": "v1"},
    ],
)
def test_equal_kinds_of_other_groups_are_not_ours(obj: Json) -> None:
    assert value_of(ObjectDecoder(), {"metadata": {"name": "x"}, **obj}) is None


def test_each_followed_kind_has_its_value() -> None:
    values = [value_of(ObjectDecoder(), item) for item in items_of(LIST, source="memory")]
    assert [type(value) for value in values] == [Node, Pod, PodGroup, PodGroup]


def test_an_object_too_deep_to_write_is_an_input_error() -> None:
    deep: object = "x"
    for _ in range(400):
        deep = [deep]
    with pytest.raises(InputError, match="Pod cannot be written"):
        value_of(ObjectDecoder(), make_pod("p").set("spec.deep", deep).build())


def test_kubectl_s_yaml_is_told_apart_from_garbage(tmp_path: Path) -> None:
    for text in (b"apiVersion: v1\nitems: []\n", b"---\nkind: List\n"):
        with pytest.raises(InputError, match="it looks like YAML: use kubectl get -o json"):
            items_of(text, source="memory")
    with pytest.raises(InputError) as caught:
        items_of(b"?", source="memory")
    assert "YAML" not in str(caught.value)


INFO = SnapshotInfo(
    taken="2026-01-01T00:00:00Z",
    server_version="v1.37.2",
    namespaces=("train",),
    redacted=True,
    counts={"nodes": 2, "pods": 0},
    absent=("jobsets.jobset.x-k8s.io",),
    unseen=(Unseen("resourcequotas", "not allowed to list it"),),
    api_gates={"GenericWorkload": True},
    scheduler_gates={"kube-scheduler-a": {"GenericWorkload": False}},
)


def test_a_snapshot_tells_of_itself_in_a_list_that_anybody_can_read() -> None:
    text = ListText()
    nodes = [make_node("n1").json(), make_node("n2").json()]
    data = text.add(nodes) + text.add([]) + text.end(INFO)
    assert data.splitlines()[1] == nodes[0] + b","
    items = items_of(data, source="memory")
    assert [item["kind"] for item in items] == ["Node", "Node", "SnapshotInfo"]
    assert info_of(items) == INFO
    assert value_of(ObjectDecoder(), items[-1]) is None


def test_a_list_with_nothing_in_it_is_one_too() -> None:
    assert info_of(items_of(ListText().end(SnapshotInfo()), source="memory")) == SnapshotInfo()


def test_what_kubectl_wrote_says_nothing_of_itself() -> None:
    assert info_of(items_of(LIST, source="memory")) is None
    other = {"apiVersion": "example.com/v1", "kind": "SnapshotInfo", "metadata": {}}
    assert info_of([other]) is None


def test_an_unusable_word_of_itself_is_an_input_error() -> None:
    with pytest.raises(InputError, match="not a usable SnapshotInfo"):
        info_of([{"apiVersion": "muster.dev/v1", "kind": "SnapshotInfo", "metadata": {}, "counts": 7}])


def test_without_all_nodes_and_pods_it_is_partial() -> None:
    assert not SnapshotInfo(unseen=(Unseen("jobs.batch", "why"),)).partial
    assert SnapshotInfo(unseen=(Unseen("pods", "why"),)).partial
    assert SnapshotInfo(unseen=(Unseen("nodes", "why"),)).partial
    assert SnapshotInfo(namespaces=("train",)).partial
