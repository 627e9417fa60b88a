# SPDX-License-Identifier: Apache-2.0
"""How long things may take. All in seconds; every default can be set (`app.settings`)."""

from __future__ import annotations

import msgspec


class Timing(msgspec.Struct, frozen=True):
    """`gang_seconds` must stay below the bind stanza's httpTimeout in deploy/scheduler-config.yaml."""

    hold_seconds: float = 15.0
    """Members at the barrier are sent back when none has arrived, or was on its way, for this long."""

    gang_seconds: float = 300.0
    """Longest hold of a gang whose PodGroup sets no scheduleTimeoutSeconds."""

    plan_seconds: float = 30.0
    """A plan lapses when none of its members has moved for this long."""

    wake_seconds: float = 1.0
    """Wait this long for the outcome of a refused attempt before nominating the pod."""

    seen_seconds: float = 0.2
    """A call about a pod that the watch has not shown yet waits this long for it."""

    backoff_seconds: float = 5.0
    """Pause after a gang's plan failed, doubled with each failure in a row."""

    backoff_most_seconds: float = 60.0
    """Longest such pause."""

    starvation_seconds: float = 900.0
    """A gang that is passed over for longer than this has nodes kept for it; 0 turns that off."""

    burst_pods_per_second: int = 50
    """So many new members a second, and none that waits for room, come without the gate; 0: never."""

    nominate_from_nodes: int = 100
    """From this many nodes on kube-scheduler samples, and a nomination makes it look at the seat first."""
