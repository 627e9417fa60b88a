# SPDX-License-Identifier: Apache-2.0
"""Contenders: which scheduler runs, how it is configured, and how gangs are told to it. Starts nothing.

A contender is a file `contenders/<name>.yaml`. What a file does not say is equal for all, so that only what
it does say is compared: one configuration template, the same sampling of nodes, the same client limits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import yaml
from msgspec import Meta

from app.extender.timing import Timing
from loadtests.shared.strict import Strict
from tests.cluster import render_scheduler_config

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parents[1] / "contenders"

Seconds = Annotated[int, Meta(ge=1)]
Percent = Annotated[int, Meta(ge=0, le=100)]


class Contender(Strict, frozen=True):
    """One way to schedule.

    `scheduler` is the path of another scheduler binary (relative ones start at the repository); empty means
    the kube-scheduler of the tests. `config` is the template of its configuration, `backoff_seconds` the
    first and the longest pause after a failed attempt. `feature_gates` are those of API server and scheduler.
    `groups` is how pods name their gang. `gates` is the namespace's value of `muster.dev/enabled`: with
    `gangs` or `gpus` the admission policy gates pods at creation. `muster_settings` are Muster's, by name.
    With `simulated` nothing runs at all, and of those settings `starvation_seconds` alone counts.
    """

    about: str
    scheduler: str = ""
    config: str = "deploy/scheduler-config.yaml"
    backoff_seconds: tuple[Seconds, Seconds] = (1, 10)
    percentage_of_nodes_to_score: Percent = 0
    feature_gates: dict[str, bool] = msgspec.field(default_factory=dict)
    groups: Literal["none", "native", "label"] = "none"
    gates: Literal["none", "gangs", "gpus"] = "none"
    muster: bool = False
    simulated: bool = False
    muster_settings: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """What cannot be together."""
        if self.gates != "none" and not self.muster:
            raise ValueError("`gates` need `muster: true`: nobody else lifts them")

    @property
    def binary(self) -> Path | None:
        """The scheduler to start; None is the tests' own."""
        return ROOT / self.scheduler if self.scheduler else None

    @property
    def starvation_seconds(self) -> float:
        """How long gangs may be passed over before nodes are kept for them; Muster's default if not said."""
        return float(self.muster_settings.get("starvation_seconds", Timing().starvation_seconds))

    def scheduler_config(self, *, kubeconfig: Path, extender_port: int | None) -> str:
        """The configuration file's text; without a port there are no extenders in it."""
        text = render_scheduler_config(
            ROOT / self.config, kubeconfig=kubeconfig, extender_port=extender_port, leader_elect=False
        )
        config = yaml.safe_load(text)
        config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"] = self.backoff_seconds
        config["percentageOfNodesToScore"] = self.percentage_of_nodes_to_score
        return yaml.safe_dump(config, sort_keys=False)
