# SPDX-License-Identifier: Apache-2.0
"""Which namespace a kubeconfig's context means: where kubectl would look when none is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from kubernetes.aio.config import ConfigException, list_kube_config_contexts

_IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def namespace_of(*, kubeconfig: str | None, context: str | None) -> str | None:
    """The namespace, from where `Api.connect` takes its credentials; None when nothing names one."""
    given = kubeconfig or os.environ.get("KUBECONFIG")
    if given is None and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _IN_CLUSTER.read_text().strip() or None if _IN_CLUSTER.exists() else None
    try:
        contexts, current = _listed(given)
    except (ConfigException, TypeError):
        return None
    named = next((one for one in contexts if one.get("name") == context), None) if context else current
    found = ((named or {}).get("context") or {}).get("namespace")
    return found if isinstance(found, str) and found else None


def _listed(kubeconfig: str | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    # Not annotated in the library, and None there means ~/.kube/config.
    listing: Any = list_kube_config_contexts
    contexts, current = listing(config_file=kubeconfig)
    return contexts, current
