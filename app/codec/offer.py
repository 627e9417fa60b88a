# SPDX-License-Identifier: Apache-2.0
"""The node names of one call: a long list becomes text only when a question cannot be answered without.

Whether a node is among five thousand, which is the first of them, and sending them all back: none of these
needs the names as text, and making them text costs more than any decision about them.
"""

from __future__ import annotations

import msgspec
import orjson

from app.codec.wire import UNUSABLE
from app.domain.errors import InputError

FEW = 100
"""Up to this many names are read at once."""

_NAMES = msgspec.json.Decoder(list[str])


class Offer:
    """Names of nodes in the order of the call. Few ones are each there once; whoever is about to repeat many
    one by one asks for that.

    Raises `InputError` for what is no list of names: for a long one not before it is read.
    """

    __slots__ = ("_names", "_raw")

    def __init__(self, names: list[str] | None, *, raw: bytes = b"") -> None:
        """`raw` is JSON of the names, or in their place of a long list."""
        self._names = names
        self._raw = raw

    @classmethod
    def of(cls, raw: bytes) -> Offer:
        """Of any JSON value."""
        return cls.of_many(raw) or cls._of_few(raw)

    @classmethod
    def _of_few(cls, raw: bytes) -> Offer:
        names = _read(raw)
        distinct = list(dict.fromkeys(names))
        return cls(distinct, raw=raw if len(distinct) == len(names) else b"")

    @classmethod
    def of_many(cls, raw: bytes) -> Offer | None:
        """Unread; None unless it is a list of more than `FEW` that begins with a name, escapes no quote and
        nests nothing. Whether it is JSON otherwise is not looked at."""
        plain = raw[:2] == b'["' and raw.find(b"[", 1) < 0 and b"{" not in raw and b"\\" not in raw
        ends = plain and raw.find(b"]") == len(raw) - 1
        return cls(None, raw=raw) if ends and len(raw.split(b'","', FEW)) > FEW else None

    @property
    def names(self) -> list[str]:
        """As text."""
        if self._names is None:
            self._names, self._raw = _read(self._raw), b""
        return self._names

    @property
    def raw(self) -> bytes:
        """As JSON: what came, byte by byte, unless something was left out or many were read."""
        if not self._raw:
            self._raw = orjson.dumps(self.names)
        return self._raw

    @property
    def unread(self) -> bytes:
        """`raw` of a long list that nobody has read yet, else nothing: there is no escape in it, and nothing
        is nested."""
        return self._raw if self._names is None else b""

    def once(self) -> None:
        """Leave out what is named again."""
        self._names, self._raw = list(dict.fromkeys(self.names)), b""

    def few(self) -> list[str]:
        """All names if they are at most `FEW`, else the first alone."""
        if self._names is None:
            return _read(self._raw[: self._raw.index(b'",', 2) + 1] + b"]")
        return self._names if len(self._names) <= FEW else self._names[:1]

    def __contains__(self, node: str) -> bool:
        """Whether the node is offered."""
        if self._names is None and "," not in node and orjson.dumps(node) in self._raw:
            return True  # in a long list, there is one whole name or a comma from one quote to the next
        return node in self.names


def _read(raw: bytes) -> list[str]:
    try:
        return _NAMES.decode(raw)
    except UNUSABLE as error:
        raise InputError(str(error), field="NodeNames") from None
