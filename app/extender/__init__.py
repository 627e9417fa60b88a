# SPDX-License-Identifier: Apache-2.0
"""The verbs kube-scheduler calls, the barrier, and the rounds that give gangs their seats."""
