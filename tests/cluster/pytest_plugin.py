# SPDX-License-Identifier: Apache-2.0
"""Build the control plane before the first real test, where no test's timeout runs and progress can be seen.

Loaded by `pytest_plugins = ["tests.cluster.pytest_plugin"]` in the root conftest. Without a collected test
that is marked `real` it does nothing.
"""

from __future__ import annotations

import pytest

from tests.cluster.binaries import ensure_binaries


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any(item.get_closest_marker("real") for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        ensure_binaries()
        return
    with capture.global_and_fixture_disabled():
        ensure_binaries()
