# SPDX-License-Identifier: Apache-2.0
"""`muster snapshot` of a real cluster: what is in it, what is not, and what is made of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.codec.kinds import KINDS
from app.codec.objects import ObjectDecoder
from app.codec.snapshot import SnapshotInfo, Unseen, info_of, read, value_of
from tests.cluster import Cluster, Process, free_port, wait_for
from tests.real.lab import Lab
from tests.real.muster import NAMESPACE, ROOT
from tests.real.workloads import Object

pytestmark = pytest.mark.real

SECRET = "s3cr3t-value"
COMMAND = [sys.executable, "-m", "app"]
ROLE = "snapshot-reader"


def snapshot(*args: str, code: int = 0) -> str:
    """Runs it; what it said on stderr."""
    done = subprocess.run(
        [*COMMAND, "snapshot", *args], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def taken(path: Path) -> tuple[list[dict[str, Any]], SnapshotInfo]:
    items = read(path)
    info = info_of(items)
    assert info is not None
    return items, info


def fill(lab: Lab) -> None:
    """Two nodes, a gang that waits for a third, a Job held up by a quota, secrets where people put them."""
    lab.nodes(2, gpus=8)
    lab.gang("train", members=3, gpus=8)
    quota = {"hard": {"pods": "0"}}
    lab.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "none", "namespace": "plain"},
            "spec": quota,
        }
    )
    container = {
        "name": "c",
        "image": "none",
        "command": ["run", SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    meta = {"name": "held", "namespace": "plain", "annotations": {"example.com/token": SECRET}}
    lab.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}})
    lab.wait(lambda: _quota_events(lab), 30, "the Job's pods are refused")


def _quota_events(lab: Lab) -> bool:
    events = lab.cluster.get("/api/v1/namespaces/plain/events")["items"]
    return any("exceeded quota" in (event.get("message") or "") for event in events)


def test_all_that_matters_is_in_one_file_and_the_file_can_be_served(plane: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json.gz"
    with Lab(plane, log_name="snapshot") as lab:
        fill(lab)
        said = snapshot("--kubeconfig", str(plane.admin_kubeconfig), "-o", str(path))
        live = tmp_path / "live.json"
        snapshot("--server", f"http://127.0.0.1:{lab.rig.port}", "-o", str(live))
        kept = tmp_path / "kept.json"
        snapshot("--kubeconfig", str(plane.admin_kubeconfig), "--keep-env", "-n", "plain", "-o", str(kept))
        whole: list[Object] = plane.get("/api/v1/pods")["items"]

    items, info = taken(path)
    assert info.unseen == ()
    assert (info.redacted, info.namespaces, info.server_version[:2]) == (True, None, "v1")
    assert info.api_gates is not None
    assert info.api_gates["GenericWorkload"] is True
    assert {*info.counts, *info.absent} == {kind.name for kind in KINDS}
    assert info.counts["nodes"] == 2
    assert info.counts["resourcequotas"] == 1
    assert any("exceeded quota" in str(item.get("message")) for item in items if item["kind"] == "Event")
    assert SECRET not in json.dumps(items)
    assert "nodes " in said

    pods = {item["metadata"]["uid"]: item for item in items if item["kind"] == "Pod"}
    assert len(pods) == 3
    decoder = ObjectDecoder()
    for pod in whole:
        unlisted = {"apiVersion": "v1", "kind": "Pod", **pod}
        assert value_of(decoder, pods[pod["metadata"]["uid"]]) == value_of(decoder, unlisted)

    _, of_server = taken(live)
    assert of_server.unseen == ()
    assert {**of_server.counts, "events": 0} == {**info.counts, "events": 0}
    assert SECRET not in live.read_text()
    assert kept.read_text().count(SECRET) == 2, "command and env, not the annotation"
    assert taken(kept)[1].namespaces == ("plain",)

    again = tmp_path / "again.json"
    _serve_and_snapshot(path, again)
    items_again, info_again = taken(again)
    assert info_again.server_version == info.server_version
    assert {item["metadata"].get("uid") for item in items_again} >= set(pods)


def _serve_and_snapshot(path: Path, into: Path) -> None:
    port = free_port()
    argv = [*COMMAND, "serve", "--snapshot", str(path), "--port", str(port)]
    process = Process("served-snapshot", argv, log=into.with_suffix(".log"))
    process.start()
    try:
        wait_for(lambda: "serving" in process.log.read_text(), seconds=30, what="the snapshot is served")
        snapshot("--server", f"http://127.0.0.1:{port}", "-o", str(into))
    finally:
        process.stop()


def test_a_kind_without_rights_is_named_and_without_nodes_nothing_is_judged(
    plane: Cluster, tmp_path: Path
) -> None:
    """What a role lacks is in the file, and not what the cluster does not serve anyway."""
    path = tmp_path / "f.json"
    with Lab(plane, log_name="snapshot-rights", start=False) as lab:
        lab.nodes(1, gpus=8)
        lacking = _reader(plane, without="resourcequotas")
        said = snapshot("--kubeconfig", str(lacking), "-o", str(path))
        _, info = taken(path)
        assert info.unseen == (Unseen("resourcequotas", "not allowed to list it"),)
        assert "resourcequotas not allowed to list it" in " ".join(said.split())
        assert "jobsets.jobset.x-k8s.io" in info.absent

        blind = _reader(plane, without="nodes")
        said = snapshot("--kubeconfig", str(blind), "-o", str(path), code=2)
        assert "upper bound" in said
        assert [gap.kind for gap in taken(path)[1].unseen] == ["nodes"]


def _reader(plane: Cluster, *, without: str) -> Path:
    """A ServiceAccount that may list what a snapshot is made of, but for one kind."""
    rules = [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["list"]}
        for kind in KINDS
        if kind.plural not in (without, "jobsets")
    ]
    name = f"{ROLE}-{without}"
    account = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    rbac = "rbac.authorization.k8s.io"
    plane.apply([
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name}, "subjects": [account],
        },
    ])  # fmt: skip
    return plane.kubeconfig_for_service_account(NAMESPACE, name)


def test_the_shipped_rights_are_all_that_a_snapshot_needs(plane: Cluster, tmp_path: Path) -> None:
    """deploy/explain.yaml beside deploy/extender.yaml, and nothing of system:kube-scheduler's."""
    kinds = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
    for name in ("extender.yaml", "explain.yaml"):
        documents = list(yaml.safe_load_all((ROOT / "deploy" / name).read_text()))
        ours = [one for one in documents if one["kind"] in kinds and ":" not in one["metadata"]["name"]]
        for one in ours:
            for place in (one["metadata"], *one.get("subjects", ())):
                if place.get("namespace") and place["name"] == "muster":
                    place["name"] = "muster-explainer"
            if one["kind"] == "ClusterRoleBinding":
                one["metadata"]["name"] += "-alone"
        plane.apply(ours)
    kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, "muster-explainer")
    path = tmp_path / "f.json.gz"
    snapshot("--kubeconfig", str(kubeconfig), "-o", str(path))
    _, info = taken(path)
    assert info.unseen == ()
    assert info.api_gates is not None
