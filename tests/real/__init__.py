# SPDX-License-Identifier: Apache-2.0
"""Muster beside a real kube-scheduler, on a real API server with kwok nodes."""
