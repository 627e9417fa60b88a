# SPDX-License-Identifier: Apache-2.0
"""Record what the real kube-scheduler sends to an extender, for tests/contract/test_recorded.py.

    .venv/bin/python -m tests.contract.record      # a minute; overwrites tests/contract/recorded/*.json

Starts a control plane with two small nodes and the shipped scheduler-config.yaml, once as it is (node names)
and once with `nodeCacheCapable: false` (whole nodes). The extender it calls is the small server below: it
keeps the first body of each verb as it came, and answers so that scheduling goes on. Nothing is left out of
a body; only the file's layout is ours (indented JSON, so that a change of Kubernetes can be read in a diff).
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.cluster import Cluster
from tests.real.muster import CONFIG
from tests.real.workloads import pod, template

Object = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded"
VERBS = ("filter", "prioritize", "bind", "preempt")


class Recorder(ThreadingHTTPServer):
    """An extender that agrees with everything."""

    daemon_threads = True

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: dict[str, Object] = {}
        self._cluster = cluster

    def answer(self, verb: str, body: Object) -> Any:
        """Keep the first of each verb; then what lets scheduling go on."""
        self.bodies.setdefault(verb, body)
        if verb == "filter":
            return {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"]}
        if verb == "prioritize":
            return []
        if verb == "preempt":
            return {"NodeNameToMetaVictims": {}}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": body["PodName"], "namespace": body["PodNamespace"], "uid": body["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": body["Node"]},
        }
        path = f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        self._cluster.post(path, binding)
        return {"Error": ""}


class _Handler(BaseHTTPRequestHandler):
    server: Recorder
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self.server.answer(self.path.strip("/"), body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def record(cluster: Cluster, *, mode: str) -> dict[str, Object]:
    """The bodies of one mode: a pod that is placed, then one of high priority that finds the nodes full."""
    recorder = Recorder(cluster)
    threading.Thread(target=recorder.serve_forever, daemon=True).start()
    config = cluster.render_scheduler_config(
        CONFIG, extender_port=recorder.server_address[1], leader_elect=False
    )
    if mode == "nodes":
        config.write_text(config.read_text().replace("nodeCacheCapable: true", "nodeCacheCapable: false"))
    scheduler = cluster.start_scheduler(config, f"recorded-{mode}")
    names = [f"{mode}-small-{index}" for index in range(2)]
    cluster.create_many(pod("default", name, template(gpus=1, scheduler="muster")) for name in names)
    cluster.wait_for(lambda: all(_bound(cluster, name) for name in names), 60, "both nodes are full")
    large = template(gpus=1, scheduler="muster", priority_class="high")
    cluster.create_many([pod("default", f"{mode}-large", large)])
    cluster.wait_for(lambda: set(recorder.bodies) == set(VERBS), 60, "every verb was called")
    scheduler.stop()
    recorder.shutdown()
    recorder.server_close()
    cluster.delete("/api/v1/namespaces/default/pods")
    cluster.wait_for(lambda: not cluster.api.items("/api/v1/namespaces/default/pods"), 60, "pods are gone")
    return recorder.bodies


def _bound(cluster: Cluster, name: str) -> bool:
    return bool(cluster.get(f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName"))


def main() -> None:
    """Both modes, one control plane."""
    RECORDED.mkdir(exist_ok=True)
    with Cluster() as cluster:
        cluster.add_nodes(2, gpus=1)
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        cluster.apply([{**high, "value": 1000}])
        for mode in ("names", "nodes"):
            for verb, body in record(cluster, mode=mode).items():
                path = RECORDED / f"{verb}-{mode}.json"
                path.write_text(json.dumps(body, indent=1) + "\n")
                print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
