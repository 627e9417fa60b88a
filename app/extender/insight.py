# SPDX-License-Identifier: Apache-2.0
"""What a Muster knows, as the facts of an explanation. Changes nothing but the age of a diagnosis."""

from __future__ import annotations

from app.explain.config.configuration import Configuration
from app.explain.facts import Facts
from app.explain.objects import Objects
from app.explain.sight import Sight
from app.extender.service import Service
from app.extender.states import state_of


def facts_of(
    service: Service,
    sight: Sight,
    *,
    now: int,
    config: Configuration | None = None,
    supposed: bool = False,
) -> Facts:
    """The facts as of `now`, in Unix seconds. `config` is a KubeSchedulerConfiguration, if one is known.
    `supposed`: the service was made for the question, and nothing that it decides is carried out."""
    return Facts(
        inventory=service.inventory,
        objects=Objects(sight.objects),
        state=lambda gang: state_of(gang, service.inventory),
        refusal=service.roster.refusal,
        now=now,
        unseen=sight.unseen,
        namespaces=sight.namespaces,
        gates=sight.gates,
        config=config,
        supposed=supposed,
    )
