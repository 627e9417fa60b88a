# SPDX-License-Identifier: Apache-2.0
"""HostPriorityList, the answer to prioritize, for thousands of nodes at once.

Every node's entry is written once, all of one width with a gap for the score. An answer gathers the entries
it needs and fills the gaps: no step goes from node to node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

NO_SCORES = b"[]"

_HEAD = b'{"Score":'
_GAP = slice(len(_HEAD), len(_HEAD) + 2)
_DIGITS = np.array([list(b"%2d" % score) for score in range(100)], np.uint8)


class HostScores:
    """Entries of `names`, which may grow at its end but not change otherwise."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._entries: NDArray[np.uint8] = np.empty((0, _GAP.stop), np.uint8)

    def reply(self, rows: NDArray[np.intp], scores: NDArray[np.int64]) -> bytes:
        """The list that gives each of `rows`, indexes into the names, its score from 0 to 99."""
        if len(self._entries) < len(self._names):
            self._write()
        if not len(rows):
            return NO_SCORES
        text = np.empty(1 + len(rows) * self._entries.shape[1], np.uint8)
        entries = text[1:].reshape(len(rows), -1)
        np.take(self._entries, rows, axis=0, out=entries, mode="clip")  # the one mode that needs no buffer
        entries[:, _GAP] = _DIGITS[scores]
        text[0], text[-1] = b"[]"
        return text.tobytes()

    def _write(self) -> None:
        """White space makes them equally wide: JSON does not mind."""
        entries = [_HEAD + b'  ,"Host":' + orjson.dumps(name) + b"}" for name in self._names]
        width = max(map(len, entries))
        text = b"".join(entry.ljust(width) + b"," for entry in entries)
        self._entries = np.frombuffer(text, np.uint8).reshape(len(entries), width + 1)
