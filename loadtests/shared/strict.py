# SPDX-License-Identifier: Apache-2.0
"""YAML files as data: strict about every key, and one line that names file and key when one is wrong."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

import msgspec
import yaml

from app.domain.errors import InputError

T = TypeVar("T")


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of everything that is read from a file. A misspelt key is an error, not a default."""


def load(path: Path, kind: type[T]) -> T:
    """The file as a `kind`. Raises InputError."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text()), kind)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise InputError(f"is not YAML: {' '.join(str(error).split())}", field=str(path)) from None
    except (UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(str(error), field=str(path)) from None


def load_named(folder: Path, kind: type[T], names: Collection[str] = ()) -> dict[str, T]:
    """`<name>.yaml` of a folder, by name; without `names` all of them. Raises InputError."""
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    for name in names:
        if name not in known:
            raise InputError(f"there is no {name!r}, only {', '.join(known)}", field=folder.name)
    return {name: load(folder / f"{name}.yaml", kind) for name in names or known}
