# SPDX-License-Identifier: Apache-2.0
"""A file is there whole or not at all; what is no file is not replaced by one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from app.cli.whole import whole


def test_it_replaces_an_older_one_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("older")
    path.chmod(0o644)
    with whole(path) as file:
        file.write(b"newer")
        assert path.read_text() == "older"
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"newer", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("older")
    with pytest.raises(KeyboardInterrupt), whole(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "older"
    assert list(tmp_path.iterdir()) == [path]


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    path = tmp_path / "null"
    path.symlink_to("/dev/null")
    with whole(path) as file:
        file.write(b"gone")
    assert path.is_symlink() and list(tmp_path.iterdir()) == [path]


def test_a_pipe_gets_it_as_it_comes(tmp_path: Path) -> None:
    path, came = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: came.append(path.read_bytes()))
    reader.start()
    with whole(path) as file:
        file.write(b"through")
    reader.join()
    assert (came, path.is_fifo()) == ([b"through"], True)
