# SPDX-License-Identifier: Apache-2.0
"""Configurations for tests of their checks: the shipped one, with something changed in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from app.explain.config import CHECKS
from app.explain.config.configuration import Configuration, Muster
from app.explain.finding import Evidence, Finding

SHIPPED = Path(__file__).resolve().parents[3] / "deploy" / "scheduler-config.yaml"
MUSTER: dict[str, Any] = {
    "scheduler": "muster",
    "port": 8888,
    "namespace": "muster-system",
    "lease": "muster",
    "elects": True,
    "hold_seconds": 15.0,
    "gang_seconds": 300.0,
    "most_hold_seconds": 570.0,
    "nominate_from_nodes": 100,
}


def shipped() -> Any:
    """The raw object, to be changed."""
    return yaml.safe_load(SHIPPED.read_text())


def configuration(raw: Any, *, replicas: int | None = None, **muster: Any) -> Configuration:
    return Configuration(raw, Muster(**{**MUSTER, **muster}), "file", replicas)


def found(raw: Any, **more: Any) -> list[Finding]:
    """All that all checks find."""
    config = configuration(raw, **more)
    return [finding for check in CHECKS for finding in check(config)]


def told(raw: Any, **more: Any) -> list[str]:
    """`Code weight: sentence` of all that is found."""
    return [f"{one.code} {one.weight}: {one.text}" for one in found(raw, **more)]


def writes(raw: Any, **more: Any) -> list[str]:
    """What to write instead, of all that is found."""
    return [step.text for one in found(raw, **more) for step in one.steps if step.decision]


def seen(raw: Any, **more: Any) -> list[Evidence]:
    return [evidence for one in found(raw, **more) for evidence in one.evidence]
