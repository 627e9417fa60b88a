# SPDX-License-Identifier: Apache-2.0
"""Settings: flags over `MUSTER_*` environment variables over a file (`MUSTER_CONFIG`, YAML or JSON)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.domain.errors import InputError
from app.extender.timing import Timing


class Settings(BaseSettings):
    """Everything `muster serve` can be told. Durations in seconds."""

    model_config = SettingsConfigDict(env_prefix="MUSTER_", extra="forbid")

    host: str = "127.0.0.1"
    port: int = Field(8888, ge=0, le=65535)
    ops_host: str = "0.0.0.0"
    ops_port: int = Field(8889, ge=0, le=65535)
    ops_page: bool = False
    """Whether the page is on the ops port as well, for all who reach it."""
    scheduler_name: str = "muster"
    namespace: str = "muster-system"
    lease: str = "muster"
    active: Literal["lease", "always"] = "lease"
    hostname: str = ""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    stale_seconds: float = Field(150.0, gt=0)
    hold_seconds: float = Field(Timing().hold_seconds, gt=0)
    gang_seconds: float = Field(Timing().gang_seconds, gt=0, lt=600)
    plan_seconds: float = Field(Timing().plan_seconds, gt=0)
    backoff_seconds: float = Field(Timing().backoff_seconds, gt=0)
    backoff_most_seconds: float = Field(Timing().backoff_most_seconds, gt=0)
    starvation_seconds: float = Field(Timing().starvation_seconds, ge=0)
    burst_pods_per_second: int = Field(Timing().burst_pods_per_second, ge=0)
    nominate_from_nodes: int = Field(Timing().nominate_from_nodes, ge=0)

    @property
    def timing(self) -> Timing:
        """The part the extender needs."""
        return Timing(
            hold_seconds=self.hold_seconds,
            gang_seconds=self.gang_seconds,
            plan_seconds=self.plan_seconds,
            backoff_seconds=self.backoff_seconds,
            backoff_most_seconds=self.backoff_most_seconds,
            starvation_seconds=self.starvation_seconds,
            burst_pods_per_second=self.burst_pods_per_second,
            nominate_from_nodes=self.nominate_from_nodes,
        )


def load(config: Path | None = None, **flags: Any) -> Settings:
    """Settings from all sources; flags that are None do not count. Raises `InputError` naming the setting."""
    path = config or (Path(env) if (env := os.environ.get("MUSTER_CONFIG")) else None)
    given = {name: value for name, value in flags.items() if value is not None}
    from_file = _read(path) if path else {}
    below = {k: v for k, v in from_file.items() if k not in given and f"MUSTER_{k.upper()}" not in os.environ}
    try:
        return Settings(**below, **given)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(str(first["msg"]), field=f"setting {'.'.join(map(str, first['loc']))}") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())  # YAML's own spans several lines
        raise InputError(f"cannot read settings file {path}: {reason}") from None
    if not isinstance(loaded, dict | None) or not all(isinstance(name, str) for name in loaded or {}):
        raise InputError(f"settings file {path} must hold a map of names to values")
    return loaded or {}
