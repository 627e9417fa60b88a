# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests: the control plane is built before the first real test, with progress shown."""

pytest_plugins = ["tests.cluster.pytest_plugin"]
