# SPDX-License-Identifier: Apache-2.0
"""What a Muster knows, as the facts of an explanation. Changes nothing but the age of a diagnosis."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.domain.ids import GangKey
from app.domain.reasons import Refusal
from app.explain.config.configuration import Configuration
from app.explain.explain import explain
from app.explain.facts import Facts
from app.explain.objects import Objects
from app.explain.report import Report, Subject
from app.explain.sight import Sight
from app.extender.roster import Roster
from app.extender.service import Service
from app.extender.states import state_of
from app.inventory.inventory import Inventory


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
    return _facts(service.inventory, service.roster.refusal, sight, now=now, config=config, supposed=supposed)


async def explained(service: Service, sight: Sight, subject: Subject, *, now: int) -> Report:
    """The report on facts as of `now`, made in a thread: the loop that answers kube-scheduler goes on.

    It is about the inventory as it was when this began. Why a gang waits is asked of the loop, which alone
    may diagnose. Raises `InputError` if the subject is not there.
    """
    loop, inventory = asyncio.get_running_loop(), service.inventory.copy()

    def refusal(key: GangKey) -> Refusal:
        return asyncio.run_coroutine_threadsafe(_refusal(service.roster, key), loop).result()

    return await asyncio.to_thread(lambda: explain(_facts(inventory, refusal, sight, now=now), subject))


async def _refusal(roster: Roster, key: GangKey) -> Refusal:
    return roster.refusal(key)


def _facts(
    inventory: Inventory,
    refusal: Callable[[GangKey], Refusal],
    sight: Sight,
    *,
    now: int,
    config: Configuration | None = None,
    supposed: bool = False,
) -> Facts:
    return Facts(
        inventory=inventory,
        objects=Objects(sight.objects),
        state=lambda gang: state_of(gang, inventory),
        refusal=refusal,
        now=now,
        unseen=sight.unseen,
        namespaces=sight.namespaces,
        gates=sight.gates,
        config=config,
        supposed=supposed,
    )
