# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests: the control plane is built before the first real test, with progress shown."""

from __future__ import annotations

import asyncio

import pytest

pytest_plugins = ["tests.cluster.pytest_plugin"]


@pytest.fixture(scope="session", autouse=True)
def no_stray_event_loop() -> None:
    """Before Python 3.14, pytest-asyncio's look at the current loop creates one that nobody closes."""
    asyncio.set_event_loop(None)
