# SPDX-License-Identifier: Apache-2.0
"""Who changed what: the audit policy of the test API server. Requests that only read are left out."""

from __future__ import annotations

from pathlib import Path

import yaml

WRITES = ("create", "update", "patch", "delete", "deletecollection")


def audit_flags(policy: Path, *, log: Path) -> list[str]:
    """Write the policy file; returns the flags that make the API server add one JSON line per write to `log`.

    A line is there before the client has its answer (the log's mode is blocking).
    """
    rules = [{"level": "Metadata", "verbs": list(WRITES)}, {"level": "None"}]
    document = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": rules,
    }
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"]
