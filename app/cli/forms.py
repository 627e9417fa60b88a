# SPDX-License-Identifier: Apache-2.0
"""Values as JSON and as YAML, for people and scripts. Light to import; knows nothing of what is in them."""

from __future__ import annotations

import msgspec


def as_json(value: msgspec.Struct) -> str:
    """Indented, without a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_yaml(value: msgspec.Struct, *, width: int = 80) -> str:
    """In the order of the fields, without a newline at the end; texts are folded at `width`."""
    import yaml  # noqa: PLC0415 - not needed for the usual answer

    plain = msgspec.to_builtins(value)
    dumped: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=width)
    return dumped.rstrip()
