# SPDX-License-Identifier: Apache-2.0
"""`muster release` lets every gated pod go, without a running Muster."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli.main import app
from tests.cluster import Cluster, free_port
from tests.real.lab import Lab, gates
from tests.real.workloads import pod, template

pytestmark = pytest.mark.real


def test_gates_of_one_namespace_are_lifted_and_foreign_ones_stay(plane: Cluster) -> None:
    with Lab(plane, log_name="release", start=False) as lab:
        lab.gang("train", members=2, minimum=3)
        lab.create(pod("gangs", "train-quota", template(gang="train", gates=("quota.test/wait",))))
        lab.create(pod("gpus", "other", template()))
        kubeconfig = plane.admin_kubeconfig

        dry = _release(kubeconfig, "-n", "gangs", "--dry-run")
        assert dry.exit_code == 0, dry.output
        assert sorted(dry.stdout.splitlines()) == [
            "3 of 3 gated pods would be released",
            "gangs/train-0 would be released",
            "gangs/train-1 would be released",
            "gangs/train-quota would be released, still gated by quota.test/wait",
        ]
        assert lab.gated("train") == 3

        done = _release(kubeconfig, "-n", "gangs")
        assert done.exit_code == 0, done.output
        assert sorted(done.stdout.splitlines()) == [
            "3 of 3 gated pods released",
            "gangs/train-0 released",
            "gangs/train-1 released",
            "gangs/train-quota released, still gated by quota.test/wait",
        ]
        assert lab.gated("train") == 0
        assert gates(lab.pod("train-quota")) == ["quota.test/wait"]
        assert gates(lab.pod("other", "gpus")), "another namespace is not touched"

        everywhere = _release(kubeconfig, "-A")
        assert everywhere.stdout.splitlines() == ["gpus/other released", "1 of 1 gated pods released"]
        again = _release(kubeconfig, "-A")
        assert (again.exit_code, again.stdout) == (0, "0 of 0 gated pods released\n")


def test_without_an_api_it_says_so_in_one_line(plane: Cluster) -> None:
    nowhere = plane.credentials.write_kubeconfig(
        "nowhere", token="none", server=f"https://127.0.0.1:{free_port()}", ca_file=plane.ca_file
    )
    for kubeconfig in (nowhere, nowhere.with_name("missing")):
        answer = _release_as_a_process(kubeconfig, "-A")
        assert (answer.returncode, answer.stdout) == (2, "")
        assert len(answer.stderr.splitlines()) == 1, answer.stderr


def _release(kubeconfig: Path, *args: str) -> Result:
    """In this process: its imports alone take seconds. In a thread: it runs an event loop of its own."""
    with ThreadPoolExecutor(1) as thread:
        env = {"KUBECONFIG": str(kubeconfig)}
        return thread.submit(CliRunner().invoke, app, ["release", *args], env=env).result()


def _release_as_a_process(kubeconfig: Path, *args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "app", "release", *args]
    env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
