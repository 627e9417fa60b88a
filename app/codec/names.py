# SPDX-License-Identifier: Apache-2.0
"""Finds thousands of names in a JSON list at once, without making one of them text.

A hash table whose keys are the names' own bytes, eight to a word, probed for all names together: each step is
one over arrays. Decoding the names and looking each up in a dict costs half as much again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""Shape (width, names): the bytes of each name, padded with zeros."""

Rows = NDArray[np.intp]

_QUOTE: Final = ord('"')
_MASKS: Final = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_FACTORS: Final = np.random.default_rng(0).integers(1, 1 << 63, 256, np.uint64) * np.uint64(2) + np.uint64(1)
_ROOM: Final = 4
"""Slots per name, at least: most names are found where they are looked for first."""


class NameIndex:
    """Positions in `names`, which may grow at its end but not change otherwise."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._known = 0
        self._keys: Words = np.empty((1, 0), np.uint64)
        self._slots: Rows = np.full(1, -1, np.intp)

    def rows(self, plain: bytes) -> Rows | None:
        """Position of each name of a list, -1 for one that is not there; None if it must be decoded.

        `plain` is a list that nests nothing and escapes nothing, and JSON as far as anybody has looked.
        """
        if self._known < len(self._names):
            self._learn()
        if not self._known:
            return None
        quotes = _quotes(plain)
        if len(quotes) % 2:
            return None
        starts = quotes[::2] + 1
        lengths = quotes[1::2] - starts
        if len(plain) != int(lengths.sum()) + 3 * len(starts) + 1:
            return None  # white space, or anything else than strings
        rows = self._find(_words(plain, starts, lengths, len(self._keys)))
        rows[lengths > 8 * len(self._keys)] = -1
        return rows

    def _find(self, words: Words) -> Rows:
        rows = np.full(words.shape[1], -1, np.intp)
        asked, slots = np.arange(words.shape[1]), self._first(words)
        while len(asked):
            there = self._slots.take(slots)
            same = there >= 0
            for key, word in zip(self._keys, words, strict=True):
                same &= key.take(there) == word
            rows[asked[same]] = there[same]
            on = ~same & (there >= 0)
            asked, words, slots = asked[on], words[:, on], (slots[on] + 1) % len(self._slots)
        return rows

    def _learn(self) -> None:
        """Enter the names that are new; all of them again only when they are longer or many more."""
        texts = [name.encode() for name in self._names[self._known :]]
        count, width = self._known + len(texts), max(1, -(-max(map(len, texts)) // 8))
        if self._known and (width > len(self._keys) or len(self._slots) < _ROOM * count):
            self._known, self._keys = 0, np.empty((1, 0), np.uint64)
            self._learn()
            return
        if not self._known:
            self._slots = np.full(1 << (_ROOM * count).bit_length(), -1, np.intp)
            self._keys = np.empty((width, 0), np.uint64)
        lengths = np.array(list(map(len, texts)))
        starts = np.cumsum(lengths) - lengths
        new = _words(b"".join(texts), starts, lengths, len(self._keys))
        self._enter(new, np.arange(self._known, count))
        self._keys, self._known = np.concatenate([self._keys, new], axis=1), count

    def _enter(self, words: Words, rows: Rows) -> None:
        slots = self._first(words)
        while len(rows):
            free = self._slots[slots] < 0
            self._slots[slots[free]] = rows[free]  # of several for one slot, one wins
            on = self._slots[slots] != rows
            rows, slots = rows[on], (slots[on] + 1) % len(self._slots)

    def _first(self, words: Words) -> Rows:
        """The slot where each name is looked for first."""
        mixed = (words * _FACTORS[: len(words), None]).sum(axis=0, dtype=np.uint64)
        mixed ^= mixed >> np.uint64(32)
        mixed *= _FACTORS[-1]
        first: Rows = (mixed >> np.uint64(65 - len(self._slots).bit_length())).astype(np.intp)
        return first


def thinned(plain: bytes, kept: NDArray[np.bool_]) -> bytes:
    """What is left of a list of which `NameIndex.rows` has told the rows."""
    begins = _quotes(plain)[::2]
    lengths = np.diff(begins, append=len(plain))  # each with the comma or bracket behind it
    left = np.frombuffer(plain, np.uint8)[1:][np.repeat(kept, lengths)].tobytes()
    return b"[" + left[:-1] + b"]"


def _quotes(plain: bytes) -> Rows:
    return np.flatnonzero(np.frombuffer(plain, np.uint8) == _QUOTE)


def _words(text: bytes, starts: Rows, lengths: Rows, width: int) -> Words:
    at_every_byte: Words = np.ndarray(
        (len(text) + 8 * width - 7,), "<u8", buffer=text + bytes(8 * width), strides=(1,)
    )
    return np.array(
        [at_every_byte[starts + at] & _MASKS.take(lengths - at, mode="clip") for at in range(0, 8 * width, 8)]
    )
