# SPDX-License-Identifier: Apache-2.0
"""What the real kube-scheduler sends to an extender, recorded, and what it accepts as an answer."""
