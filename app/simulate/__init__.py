# SPDX-License-Identifier: Apache-2.0
"""The embedded cluster: a snapshot served in place of the Kubernetes API, through the same ports."""
