# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, and for their owner alone: each of them describes a cluster.

What is no file (a pipe, a device) is written to as it is, and never replaced.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """To be written to; it appears under its name at the end, unless that is reached by an error.

    Raises `OSError`."""
    if path.exists() and not path.is_file():
        with path.open("wb") as place:
            yield place
        return
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
