# SPDX-License-Identifier: Apache-2.0
"""Where kubectl would look when no namespace is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.kube.context import namespace_of

CONFIG = """\
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts:
- {name: one, context: {cluster: c, user: u, namespace: team-a}}
- {name: two, context: {cluster: c, user: u}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return str(path)


def test_the_namespace_of_the_context(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert namespace_of(kubeconfig=file, context=None) == "team-a"
    assert namespace_of(kubeconfig=file, context="one") == "team-a"
    assert namespace_of(kubeconfig=file, context="two") is None
    assert namespace_of(kubeconfig=file, context="three") is None
    monkeypatch.setenv("KUBECONFIG", file)
    assert namespace_of(kubeconfig=None, context=None) == "team-a"


def test_no_kubeconfig_names_none(tmp_path: Path, file: str) -> None:
    assert namespace_of(kubeconfig=str(tmp_path / "gone"), context=None) is None
