# SPDX-License-Identifier: Apache-2.0
"""An explanation from all objects of a cluster, without a running Muster.

A service as the running one is shown the objects and takes its first round; what it reserves is what Muster
would do now. Its loop never turns, so that nothing is carried out: no gate is lifted and no pod is bound.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from typing import Final

from app.codec.contents import Contents, Item
from app.codec.objects import seconds
from app.codec.snapshot import JsonObject
from app.domain.errors import InputError
from app.explain.config.configuration import Configuration
from app.explain.explain import explain
from app.explain.facts import Facts, Unseen
from app.explain.report import Report, Subject
from app.explain.sight import near, sight
from app.extender.insight import facts_of
from app.extender.service import Service
from app.extender.timing import Timing
from app.inventory.inventory import Inventory
from app.simulate.cluster import SnapshotCluster

_STAMP: Final = re.compile(
    rb'"(?:creationTimestamp|lastTimestamp|lastTransitionTime|startTime|startedAt|finishedAt|renewTime)"'
    rb'\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)'
)


def explain_contents(
    contents: Contents,
    subject: Subject,
    *,
    scheduler: str,
    timing: Timing,
    config: Configuration | None = None,
) -> Report:
    """The report. Raises `InputError` if the subject is not there."""
    return asyncio.run(_explained(contents, subject, scheduler, timing, config))


async def _explained(
    contents: Contents, subject: Subject, scheduler: str, timing: Timing, config: Configuration | None
) -> Report:
    service = _planned(contents, scheduler, timing)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()  # what the round would have carried out
    return explain(facts_for(service, contents, subject, config), subject)


def _planned(contents: Contents, scheduler: str, timing: Timing) -> Service:
    """A service after its first round. kube-scheduler has asked about every pod that it can see."""
    nobody = SnapshotCluster(())
    service = Service.embedded(nobody, clock=time.monotonic, timing=timing, scheduler=scheduler)
    service.observe(contents.changes)
    for gang in service.inventory.gangs:
        service.roster.standing(gang.key).called = True
    service.rounds.run()
    return service


def facts_for(service: Service, contents: Contents, subject: Subject, config: Configuration | None) -> Facts:
    """The facts of a service that was shown these contents."""
    close = [i for i in contents.items if near(i.kind, i.namespace, namespace=subject.namespace)]
    objects, lost = _objects(close)
    seen = sight(
        objects,
        contents.info,
        kinds={item.kind for item in contents.items},
        unusable=(*(Unseen(one.what, one.why) for one in contents.unusable), *lost),
    )
    taken = seconds(contents.info.taken) if contents.info is not None else 0
    now = taken or _newest(service.inventory, close)
    return facts_of(service, seen, now=now, config=config, supposed=True)


def _objects(items: Iterable[Item]) -> tuple[list[JsonObject], list[Unseen]]:
    """As dicts, and those of which none can be made."""
    objects, lost = [], []
    for item in items:
        try:
            objects.append(item.object())
        except InputError as error:
            lost.append(Unseen(str(item), str(error)))
    return objects, lost


def _newest(inventory: Inventory, items: Iterable[Item]) -> int:
    """When a file was made that does not say so: not before anything that it tells of."""
    made = max((pod.created for pod in inventory.pods.values()), default=0)
    stamps = (stamp for item in items for stamp in _STAMP.findall(memoryview(item.raw)))
    newest = max(stamps, default=b"").decode()
    return max(made, seconds(newest))
