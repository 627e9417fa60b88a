# SPDX-License-Identifier: Apache-2.0
"""Profiles: whose pods come to Muster, and plugins that are missing or that work against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.domain.resources import is_device
from app.explain.config.configuration import DEFAULT_SCHEDULER, Configuration
from app.explain.config.schema import POINTS
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, maps, text


@finding(
    "NoProfile",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="no profile has schedulerName {wanted} (there is {found}): pods that ask for it are never tried",
    meaning=(
        "A pod names its scheduler in spec.schedulerName, and kube-scheduler takes those that one of its"
        " profiles names. Pods of a name that nobody serves stay Pending, without an event."
    ),
    decide=("schedulerName: {wanted} in a profile",),
)
def no_profile(config: Configuration) -> Iterable[Hit]:
    """Muster's scheduler name is not served."""
    if config.ours is None:
        found = ", ".join(one.name or "one without a name" for one in config.profiles)
        seen = config.cite(Evidence("", "profiles[*].schedulerName", found))
        yield hit(seen, wanted=config.muster.scheduler, found=found)


@finding(
    "DefaultProfile",
    read=Read.GROUP,
    sentence="{where} serves default-scheduler: every pod of the cluster then needs an answer of Muster",
    meaning=(
        "Extenders are asked for the pods of all profiles. With the default scheduler's name here, system"
        " pods too wait for Muster when it is down, and if the cluster's own scheduler runs as well, two"
        " schedulers place the same pods."
    ),
    decide=("schedulerName: {wanted} alone",),
)
def default_profile(config: Configuration) -> Iterable[Hit]:
    """A profile by the name that pods have when they name none."""
    for one in config.profiles:
        if one.name == DEFAULT_SCHEDULER != config.muster.scheduler:
            seen = config.cite(Evidence("", f"{one.where}.schedulerName", one.name))
            yield hit(seen, where=one.where, wanted=config.muster.scheduler)


@finding(
    "MoreProfiles",
    read=Read.GROUP,
    sentence="{where} serves {name} through the same extenders: Muster plans no gangs for its pods",
    meaning=(
        "Muster plans for pods of one scheduler name. Pods of the other profiles are kept off seats that"
        " are reserved and are bound through Muster, but a gang among them is placed one pod at a time."
    ),
    decide=("another kube-scheduler for {name}, or schedulerName: {wanted} in its pods",),
)
def more_profiles(config: Configuration) -> Iterable[Hit]:
    """Profiles beside Muster's, the default one apart."""
    for one in config.profiles:
        if config.ours is not None and one.name not in ("", config.muster.scheduler, DEFAULT_SCHEDULER):
            seen = config.cite(Evidence("", f"{one.where}.schedulerName", one.name))
            yield hit(seen, where=one.where, name=one.name, wanted=config.muster.scheduler)


NEEDED: Final = {
    "SchedulingGates": (
        "preEnqueue",
        "pods that wait behind a gate are tried again and again, and the API server refuses to bind them",
    ),
    "DefaultPreemption": ("postFilter", "a pod of high priority evicts nobody and waits like any other"),
    "NodeResourcesFit": ("filter", "kube-scheduler offers nodes that are full, and single pods fail there"),
    "TaintToleration": ("filter", "single pods go to nodes whose taints they do not tolerate"),
    "NodeAffinity": ("filter", "single pods go to nodes that their selectors exclude"),
    "VolumeBinding": ("preBind", "members are bound before their volumes exist, and cannot start"),
    "DynamicResources": (
        "preBind",
        "members with a resource claim are bound without devices and cannot start",
    ),
}
"""Default plugins that Muster relies on: the extension point that matters, and what is lost without it."""


@finding(
    "PluginOff",
    read=Read.GROUP,
    sentence="{where} switches {plugin} off: {cost}",
    meaning=(
        "Muster adds to what kube-scheduler's own plugins do and replaces none of them. With one of these"
        " off, a gang may be placed where it cannot start, or waiting pods cost scheduling attempts."
    ),
    decide=('no {plugin} (and no "*") under disabled',),
)
def plugin_off(config: Configuration) -> Iterable[Hit]:
    """Each plugin that Muster relies on and that its profile does not run."""
    if (ours := config.ours) is None:
        return
    for plugin, (point, cost) in NEEDED.items():
        if ours.off(plugin, point):
            places = [
                where for where in (point, "multiPoint") if ours.names(where, "disabled") & {plugin, "*"}
            ]
            field = f"{ours.where}.plugins.{places[0]}.disabled"
            names = ", ".join(sorted(ours.names(places[0], "disabled")))
            seen = config.cite(Evidence("", field, names))
            yield hit(seen, where=ours.where, plugin=plugin, cost=cost)


@finding(
    "TwoGangPlugins",
    read=Read.GROUP,
    sentence="{where} enables {plugin}: two gang implementations hold and reject the same members",
    meaning=(
        "The coscheduling plugin holds members in kube-scheduler (Permit) until its own minimum is there,"
        " and rejects the whole group when one fails; Muster holds them at bind. Members that the plugin"
        " keeps never reach the barrier, and nominations that it leaves behind take devices that nobody"
        " uses."
    ),
    decide=("no {plugin} in this profile",),
)
def two_gang_plugins(config: Configuration) -> Iterable[Hit]:
    """Coscheduling in Muster's profile."""
    if (ours := config.ours) is None:
        return
    for point in POINTS:
        if "Coscheduling" in ours.names(point, "enabled"):
            seen = config.cite(Evidence("", f"{ours.where}.plugins.{point}.enabled", "Coscheduling"))
            yield hit(seen, where=ours.where, plugin="Coscheduling")
            return


@finding(
    "QueueOrder",
    read=Read.GROUP,
    sentence=(
        "{where} sorts the queue with {plugin}: pods without a gate come in another order than Muster plans"
    ),
    meaning=(
        "Muster plans by priority, then by age, as the default plugin PrioritySort does. Gated members"
        " come to the queue with their seats and do not mind the order; other pods do."
    ),
    decide=("PrioritySort, the default",),
)
def queue_order(config: Configuration) -> Iterable[Hit]:
    """Another queue sort plugin."""
    if (ours := config.ours) is None:
        return
    for plugin in sorted(ours.names("queueSort", "enabled") - {"PrioritySort"}):
        seen = config.cite(Evidence("", f"{ours.where}.plugins.queueSort.enabled", plugin))
        yield hit(seen, where=ours.where, plugin=plugin)


@finding(
    "Spreads",
    read=Read.GROUP,
    sentence="{where} scores {names} by LeastAllocated: single pods spread over nodes that gangs need whole",
    meaning=(
        "LeastAllocated prefers the node with the most left of the named resources. For devices that is"
        " the opposite of packing: one-GPU pods end on empty eight-GPU nodes, and a gang that asks for"
        " whole nodes finds none. The default counts cpu and memory only, which Muster's own score"
        " outweighs."
    ),
    decide=("scoringStrategy.type: MostAllocated for {names}, or no pluginConfig for NodeResourcesFit",),
)
def spreads(config: Configuration) -> Iterable[Hit]:
    """LeastAllocated, named or by default, over devices."""
    if (ours := config.ours) is None:
        return
    for at, plugin in enumerate(maps(ours.raw, "pluginConfig")):
        strategy = dig(plugin, "args", "scoringStrategy")
        names = [text(item, "name") for item in maps(strategy, "resources")]
        devices = ", ".join(name for name in names if is_device(name))
        least = text(strategy, "type") in ("", "LeastAllocated")
        if text(plugin, "name") == "NodeResourcesFit" and devices and least:
            field = f"{ours.where}.pluginConfig[{at}].args.scoringStrategy"
            seen = config.cite(Evidence("", field, f"LeastAllocated of {', '.join(names)}"))
            yield hit(seen, where=ours.where, names=devices)


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (
    no_profile,
    default_profile,
    more_profiles,
    plugin_off,
    two_gang_plugins,
    queue_order,
    spreads,
)
