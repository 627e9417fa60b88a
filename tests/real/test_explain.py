# SPDX-License-Identifier: Apache-2.0
"""`muster explain` of a real cluster: read from the API and asked of a running Muster, it says the same."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from app.explain.report import Outcome, Report
from tests.cluster import Cluster
from tests.real.lab import Lab
from tests.real.test_snapshot import _reader as reader_without

pytestmark = pytest.mark.real

COMMAND = [sys.executable, "-m", "app", "explain"]


def explained(*words: str, code: int) -> Report:
    env = {name: text for name, text in os.environ.items() if not name.startswith(("MUSTER_", "KUBE"))}
    done = subprocess.run(
        [*COMMAND, *words, "-o", "json"], capture_output=True, text=True, timeout=120, check=False, env=env
    )
    assert done.returncode == code, done.stderr
    return msgspec.json.decode(done.stdout, type=Report)


def test_a_gang_that_waits_is_explained_alike_from_the_api_and_by_muster(plane: Cluster) -> None:
    with Lab(plane, log_name="explain") as lab:
        lab.nodes(2, gpus=8)
        lab.gang("first", members=2, gpus=8)
        lab.wait(lambda: lab.bound("first") == 2, 60, "the first gang is bound")
        lab.gang("second", members=2, gpus=8)
        lab.wait(lambda: lab.events("second-0"), 60, "Muster has said why the second waits")
        where = ("podgroup", "second", "-n", lab.namespace)
        api = explained(*where, "--kubeconfig", str(plane.admin_kubeconfig), code=1)
        server = ("--server", f"http://127.0.0.1:{lab.rig.port}")
        muster = explained(*where, *server, code=1)
        pod = explained("pod", "first-0", "-n", lab.namespace, *server, code=0)
        lacking = reader_without(plane, without="resourcequotas")
        part = explained(*where, "--kubeconfig", str(lacking), code=1)

    assert api.verdict.code is muster.verdict.code is part.verdict.code is Outcome.BUSY
    assert api.verdict.sentence == muster.verdict.sentence
    assert f"gang {lab.namespace}/first holds 16" in api.verdict.sentence
    assert pod.verdict.code is Outcome.RUNS
    assert api.unseen == muster.unseen == ()
    assert part.unseen == ("not read (not allowed to list it): ResourceQuota",)
