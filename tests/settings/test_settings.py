# SPDX-License-Identifier: Apache-2.0
"""Settings: flags over environment over file, and an error that names the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import InputError
from app.extender.timing import Timing
from app.settings import load


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the caller's environment says."""
    import os  # noqa: PLC0415

    for name in list(os.environ):
        if name.startswith("MUSTER_"):
            monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "muster.yaml"


def test_the_defaults_are_those_of_the_design() -> None:
    settings = load()
    assert (settings.host, settings.port, settings.ops_port) == ("127.0.0.1", 8888, 8889)
    assert (settings.scheduler_name, settings.lease, settings.active) == ("muster", "muster", "lease")
    assert settings.timing == Timing(), "one place for each default"


def test_flags_win_over_the_environment_and_that_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("port: 1\nhost: file\nhold_seconds: 7\n")
    monkeypatch.setenv("MUSTER_PORT", "2")
    monkeypatch.setenv("MUSTER_HOST", "environment")
    settings = load(file, port=3, host=None)
    assert (settings.port, settings.host, settings.hold_seconds) == (3, "environment", 7.0)


def test_the_file_may_be_named_by_the_environment_and_be_json(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text('{"plan_seconds": 12, "active": "always"}')
    monkeypatch.setenv("MUSTER_CONFIG", str(file))
    assert (load().plan_seconds, load().active) == (12.0, "always")


def test_an_empty_file_says_nothing(file: Path) -> None:
    file.write_text("# all defaults\n")
    assert load(file) == load()


def test_all_times_reach_the_extender(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOLD", "GANG", "PLAN", "BACKOFF", "BACKOFF_MOST", "STARVATION"):
        monkeypatch.setenv(f"MUSTER_{name}_SECONDS", "42")
    monkeypatch.setenv("MUSTER_NOMINATE_FROM_NODES", "3")
    assert load().timing == Timing(
        hold_seconds=42, gang_seconds=42, plan_seconds=42, backoff_seconds=42, backoff_most_seconds=42,
        nominate_from_nodes=3, starvation_seconds=42,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "http"),
        ("port", ""),
        ("port", "65536"),
        ("ops_port", "-1"),
        ("hold_seconds", "0"),
        ("hold_seconds", "15s"),
        ("plan_seconds", "NaN"),
        ("gang_seconds", "600"),
        ("backoff_seconds", "-5"),
        ("starvation_seconds", "-1"),
        ("active", "sometimes"),
        ("log_level", "loud"),
    ],
)
def test_an_unusable_variable_is_named_in_one_line(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MUSTER_{name.upper()}", text)
    with pytest.raises(InputError, match=f"^setting {name}: ") as failure:
        load()
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("colour: red", "setting colour: ", id="a setting that does not exist"),
        pytest.param("port: many", "setting port: ", id="not a number"),
        pytest.param("- port", "must hold a map of names to values", id="a list"),
        pytest.param("port: [", "cannot read settings file", id="broken YAML"),
        pytest.param("1: 2", "must hold a map of names to values", id="a number for a name"),
        pytest.param("port: \x00", "cannot read settings file", id="a character YAML does not allow"),
    ],
)
def test_an_unusable_file_is_told_in_one_line(file: Path, text: str, said: str) -> None:
    file.write_text(text)
    with pytest.raises(InputError, match=said) as failure:
        load(file)
    assert "\n" not in str(failure.value)


def test_a_file_that_is_no_text_or_not_there_is_named(file: Path) -> None:
    with pytest.raises(InputError, match=f"cannot read settings file {file}"):
        load(file)
    file.write_bytes(b"port: \xff\xfe")
    with pytest.raises(InputError, match=f"cannot read settings file {file}"):
        load(file)
