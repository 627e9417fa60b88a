# SPDX-License-Identifier: Apache-2.0
"""Kubernetes I/O against a fake API server, and the same contract against the real one (marker `real`)."""
