# SPDX-License-Identifier: Apache-2.0
"""Who may talk to the test API server: static tokens, and kubeconfig files for them.

All secrets are random, live in the cluster's runtime folder with mode 0600 and end with the cluster.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

ADMIN = "admin"


class Credentials:
    """Tokens by user name. `admin` is in system:masters; others are in the groups given and nothing more."""

    def __init__(self, folder: Path, users: Mapping[str, Sequence[str]]) -> None:
        self.token_file = folder / "tokens.csv"
        self._folder = folder
        self._groups = {ADMIN: ("system:masters",), **{user: tuple(groups) for user, groups in users.items()}}
        self._tokens = {user: secrets.token_hex(16) for user in self._groups}
        lines = [
            f'{self._tokens[user]},{user},{user},"{",".join(groups)}"'
            for user, groups in self._groups.items()
        ]
        write_secret(self.token_file, "\n".join(lines) + "\n")

    def token(self, user: str) -> str:
        return self._tokens[user]

    def write_kubeconfig(self, name: str, *, token: str, server: str, ca_file: Path) -> Path:
        ca = base64.b64encode(ca_file.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        path = self._folder / f"{name.replace(':', '-').replace('/', '-')}.kubeconfig"
        write_secret(path, yaml.safe_dump(config, sort_keys=False))
        return path


def write_secret(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)
