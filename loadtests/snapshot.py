# SPDX-License-Identifier: Apache-2.0
"""What a snapshot of a large cluster costs: CPU and memory of `muster snapshot` against a server of pages.

    python -m loadtests.snapshot [--nodes 15000] [--pods 150000]

The server is this process and makes pages of objects as large as real ones are (a pod with its managedFields,
a node with its images); what is measured is the command, in a process of its own. All objects are alike: how
well the file is zipped says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import web

PAGE = 500
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "users": [{"name": "u", "user": {}}],
}


def _fields(depth: int) -> dict[str, Any]:
    return {f"f:field{index}": _fields(depth - 1) if depth else {} for index in range(5)}


def _managed(manager: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": _fields(2)}


def _pod() -> dict[str, Any]:
    env = [{"name": f"VARIABLE_{index}", "value": f"value-{index}" * 4} for index in range(12)]
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "main", "image": "example.com/team/trainer:2026.1", "command": ["python", "train.py"],
        "env": env, "resources": {"limits": amounts, "requests": amounts}, "imagePullPolicy": "IfNotPresent",
        "volumeMounts": [{"name": f"v{index}", "mountPath": f"/mnt/{index}"} for index in range(4)],
    }  # fmt: skip
    return {
        "metadata": {
            "name": "pod-@-#", "namespace": "team", "uid": "@-#", "labels": {"app": "train", "team": "a"},
            "annotations": {"example.com/note": "x" * 200}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [_managed("kube-controller-manager"), _managed("kubelet")],
        },
        "spec": {
            "nodeName": "node-0-1", "schedulerName": "muster", "containers": [container],
            "volumes": [{"name": f"v{index}", "secret": {"secretName": "s"}} for index in range(4)],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [{"name": "main", "ready": True, "imageID": "sha256:" + "0" * 64}],
        },
    }  # fmt: skip


def _node() -> dict[str, Any]:
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    names = [f"example.com/image-{index}@sha256:{'0' * 64}" for index in range(50)]
    return {
        "metadata": {
            "name": "node-@-#", "uid": "@-#",
            "labels": {f"example.com/label-{n}": "value" for n in range(40)},
            "managedFields": [_managed("kubelet")],
        },
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [name], "sizeBytes": 1_000_000} for name in names],
        },
    }  # fmt: skip


def _page(item: dict[str, Any]) -> bytes:
    one = json.dumps(item, separators=(",", ":"))
    return ",".join(one.replace("#", str(index)) for index in range(PAGE)).encode()


async def _measure(nodes: int, pods: int) -> None:
    pages = {"/api/v1/nodes": (nodes, _page(_node())), "/api/v1/pods": (pods, _page(_pod()))}
    sizes = {path: len(page) // PAGE for path, (_, page) in pages.items()}

    async def answer(request: web.Request) -> web.Response:
        if request.path not in pages:
            return web.Response(status=404 if request.path != "/version" else 200, body=b"{}")
        count, page = pages[request.path]
        number = int(request.query.get("continue") or 0)
        more = b'"continue":"%d"' % (number + 1) if (number + 1) * PAGE < count else b""
        items = page.replace(b"@", b"%d" % number)
        return web.Response(body=b'{"metadata":{' + more + b'},"items":[' + items + b"]}")

    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}
        config.write_text(json.dumps({**KUBECONFIG, "clusters": [cluster]}))
        begun, output = time.monotonic(), Path(folder) / "snapshot.json.gz"
        argv = ("-m", "app", "snapshot", "--kubeconfig", str(config), "-o", str(output))
        process = await asyncio.create_subprocess_exec(sys.executable, *argv)
        assert await process.wait() == 0
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{nodes} nodes of {sizes['/api/v1/nodes']} bytes, {pods} pods of {sizes['/api/v1/pods']} bytes"
        )
        print(f"CPU {used.ru_utime + used.ru_stime:.1f} s, {time.monotonic() - begun:.1f} s by the clock")
        print(f"most memory {used.ru_maxrss / 1024:.0f} MiB")
    await runner.cleanup()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=15_000)
    parser.add_argument("--pods", type=int, default=150_000)
    arguments = parser.parse_args()
    asyncio.run(_measure(arguments.nodes, arguments.pods))


if __name__ == "__main__":
    main()
