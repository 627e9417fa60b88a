# SPDX-License-Identifier: Apache-2.0
"""The prioritize verb for pods that have no seat: pack devices, keep empty 8-GPU nodes whole, steer pods
without devices off device nodes, and put a node that keeps failing pods at admission last.

Only scores; never refuses. kube-scheduler reads a missing node as 0, so only higher scores are returned.
"""

from __future__ import annotations

import numpy as np

from app.codec.offer import Offer
from app.codec.scores import HostScores
from app.domain.pod import Pod
from app.domain.resources import WHOLE_GPU_NODE, is_device
from app.extender.offers import Offers
from app.inventory.columns import Matrix, Rows
from app.inventory.inventory import Inventory

BEST = 10
BAD_STARTS = 3
"""From this many pods that failed at admission a node is taken for broken."""


class Prioritize:
    """Answers prioritize calls from memory."""

    def __init__(self, inventory: Inventory, offers: Offers) -> None:
        self._inventory = inventory
        self._offers = offers
        self._hosts = HostScores(inventory.names)

    def __call__(self, pod: Pod, offer: Offer) -> bytes:
        """HostPriorityList of the offered nodes that score at all, 1 to 10."""
        rows = self._offers.rows(offer)
        rows = rows[rows >= 0]
        scores = self._scores(pod, rows)
        scored = scores > 0
        return self._hosts.reply(rows[scored], scores[scored])

    def _scores(self, pod: Pod, rows: Rows) -> Matrix:
        inventory = self._inventory
        devices = [name for name, _ in pod.template.requests if is_device(name)]
        scores = _pack(inventory, rows, devices) if devices else _steer(inventory, rows)
        for name, failed in inventory.bad_starts.items():
            if failed >= BAD_STARTS:
                scores[rows == inventory.columns.row_of[name]] = 0
        return scores


def _pack(inventory: Inventory, rows: Rows, devices: list[str]) -> Matrix:
    """9 for the node with least left, down to 2; 1 for a large node that is still whole."""
    columns = inventory.columns
    total = np.zeros(len(rows), np.int64)
    free = np.zeros(len(rows), np.int64)
    for name in devices:
        allocatable = columns.allocatable(name)[rows]
        total += allocatable
        free += allocatable - columns.used(name)[rows] - columns.reserved(name)[rows]
    used = 1 - np.maximum(free, 0) / np.maximum(total, 1)
    scores = 2 + np.rint(7 * used).astype(np.int64)
    scores[(total >= WHOLE_GPU_NODE) & (free >= total)] = 1
    return scores


def _steer(inventory: Inventory, rows: Rows) -> Matrix:
    """10 for a node without any device, 0 for the others."""
    columns = inventory.columns
    scores = np.full(len(rows), BEST, np.int64)
    for name in columns.column_of:
        if is_device(name):
            scores[columns.allocatable(name)[rows] > 0] = 0
    return scores
