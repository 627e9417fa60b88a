# SPDX-License-Identifier: Apache-2.0
"""The extender stanzas: whether kube-scheduler asks Muster at all, for every pod, and heeds the answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.explain.config.configuration import Configuration, shown
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, maps


@finding(
    "NoExtender",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="no extender is Muster (port {port}): kube-scheduler places pods one by one and knows no gangs",
    meaning=(
        "kube-scheduler calls Muster only through the stanzas under extenders. Without one, gated pods"
        " stay gated and all others are placed as if Muster were not there. A stanza counts as Muster's"
        " when its urlPrefix has Muster's port, or its name as host."
    ),
    decide=("both stanzas of deploy/scheduler-config.yaml under extenders",),
)
def no_extender(config: Configuration) -> Iterable[Hit]:
    """No stanza at Muster's address."""
    if not config.stanzas:
        found = ", ".join(one.prefix or "no urlPrefix" for one in config.extenders) or "none"
        yield hit(config.cite(Evidence("", "extenders", found)), port=config.muster.port)


LACKS: Final = {
    "filter": (
        Weight.BLOCKS,
        "pods are placed without regard to seats, and Muster refuses to bind them",
    ),
    "bind": (
        Weight.BLOCKS,
        "the default binder binds each member at once, alone; there is no barrier",
    ),
    "prioritize": (
        Weight.WARNS,
        "single pods are spread over GPU nodes and break up what gangs need whole",
    ),
    "preempt": (
        Weight.WARNS,
        "a pod of higher priority may evict single members of a gang that runs",
    ),
}
"""Weight and cost of each verb that kube-scheduler does not call."""


@finding(
    "VerbMissing",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="no stanza of Muster has {verb}Verb: {cost}",
    meaning=(
        "Muster's guarantee needs all four verbs. filter keeps members on their seats and others off them;"
        " prioritize packs single pods; preempt protects gangs that run; bind holds members until the"
        " whole gang is there. kube-scheduler leaves out a verb that is not set, without a word."
    ),
    decide=("{verb}Verb: {verb}",),
)
def verb_missing(config: Configuration) -> Iterable[Hit]:
    """Each verb that is in no stanza of Muster's."""
    called = {verb for stanza in config.stanzas for verb in stanza.verbs}
    for verb, (weight, cost) in LACKS.items():
        if config.stanzas and verb not in called:
            seen = (config.cite(one.saw(f"{verb}Verb")) for one in config.stanzas)
            yield hit(*seen, weight=weight, verb=verb, cost=cost)


@finding(
    "VerbUnknown",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} calls {url}, and Muster answers {verb} at /{verb}: every such call fails",
    meaning=(
        "The address of a call is urlPrefix, a slash and the verb. Muster serves /filter, /prioritize,"
        " /preempt and /bind and answers 404 elsewhere. kube-scheduler takes that for an error of the"
        " extender, except for prioritize, which it ignores."
    ),
    decide=("urlPrefix: {base} and {verb}Verb: {verb}",),
)
def verb_unknown(config: Configuration) -> Iterable[Hit]:
    """Each verb that leads to another path than Muster's."""
    for stanza in config.stanzas:
        base = f"{stanza.url.scheme or 'http'}://{stanza.url.netloc}"
        for verb, path in stanza.verbs.items():
            target = f"{stanza.url.path.rstrip('/')}/{path}"
            if target != f"/{verb}":
                seen = (config.cite(stanza.saw(field)) for field in ("urlPrefix", f"{verb}Verb"))
                weight = LACKS[verb][0]
                where = f"{stanza.where}.{verb}Verb"
                yield hit(*seen, weight=weight, where=where, url=base + target, verb=verb, base=base)


IGNORED: Final = {
    "bind": (Weight.BLOCKS, "when Muster answers an error, the default binder binds that one member alone"),
    "filter": (Weight.WARNS, "while Muster is away, pods take places that are reserved for gangs"),
    "preempt": (Weight.WARNS, "while Muster is away, single members of a gang that runs may be evicted"),
}
"""What an ignorable stanza costs, by the verb that matters most in it."""


@finding(
    "Ignorable",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} has {verb}Verb and is ignorable: {cost}",
    meaning=(
        "With ignorable, kube-scheduler goes on as if an extender were not there when it answers an error"
        " or not at all. For bind that undoes the barrier: Muster answers an error to the members of a"
        " gang that did not come together, and the default binder then binds each of them. Without it a"
        " pod waits until Muster is back."
    ),
    decide=("ignorable: false",),
)
def ignorable(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's that kube-scheduler may skip, told by its gravest verb."""
    for stanza in config.stanzas:
        verb = next((verb for verb in IGNORED if verb in stanza.verbs), None)
        if stanza.ignorable and verb is not None:
            weight, cost = IGNORED[verb]
            seen = config.cite(stanza.saw("ignorable"))
            yield hit(seen, weight=weight, where=stanza.where, verb=verb, cost=cost)


@finding(
    "ManagedResources",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence=(
        "{where} has managedResources: members that request none of {names} pass Muster by and are bound"
        " alone"
    ),
    meaning=(
        "With managedResources, kube-scheduler asks an extender only about pods that request one of them"
        " in a container. A launcher that needs cpu alone, or a pod that gets its devices by a resource"
        " claim, is a member of its gang like any other and must come too."
    ),
    decide=("no managedResources in {where}",),
)
def managed_resources(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's that is for some pods alone."""
    for stanza in config.stanzas:
        if maps(stanza.raw, "managedResources"):
            names = shown(dig(stanza.raw, "managedResources"))
            yield hit(config.cite(stanza.saw("managedResources")), where=stanza.where, names=names)


@finding(
    "FullNodes",
    read=Read.GROUP,
    sentence=(
        "{where} lacks nodeCacheCapable: true, so every call carries whole Node objects instead of names"
    ),
    meaning=(
        "Muster follows the nodes by a watch of its own and needs their names only. Without"
        " nodeCacheCapable a call for some thousand nodes is megabytes of JSON that kube-scheduler writes"
        " and Muster reads, and scheduling is as slow as that. The answers are the same."
    ),
    decide=("nodeCacheCapable: true",),
)
def full_nodes(config: Configuration) -> Iterable[Hit]:
    """Each stanza whose calls carry nodes."""
    for stanza in config.calling("filter", "prioritize", "preempt"):
        if stanza.raw.get("nodeCacheCapable") is not True:
            yield hit(config.cite(stanza.saw("nodeCacheCapable", default=False)), where=stanza.where)


@finding(
    "OtherBinder",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} at {url} has bindVerb and is not Muster (port {port}): members are bound there, alone",
    meaning=(
        "kube-scheduler leaves binding to one extender. If that is not Muster, nothing holds the members"
        " of a gang until all are there. Often it is Muster's own stanza with a wrong port."
    ),
    decide=("bindVerb in Muster's stanza alone",),
)
def other_binder(config: Configuration) -> Iterable[Hit]:
    """Each extender besides Muster that binds."""
    for one in config.strangers:
        if "bind" in one.verbs:
            seen = (config.cite(one.saw("urlPrefix")), config.cite(one.saw("bindVerb")))
            yield hit(*seen, where=one.where, url=one.prefix or "no address", port=config.muster.port)


@finding(
    "OtherExtender",
    read=Read.GROUP,
    weight=Weight.NOTE,
    sentence="{where} at {url} is another extender: a seat that it refuses is planned again",
    meaning=(
        "Extenders are asked one after the other, and each may drop nodes. Muster does not know why"
        " another one refuses: when it drops the node of a seat, Muster replans inside what is left, and"
        " if that goes on the gang keeps waiting."
    ),
)
def other_extender(config: Configuration) -> Iterable[Hit]:
    """Each extender besides Muster that filters."""
    for one in config.strangers:
        if config.stanzas and "filter" in one.verbs:
            yield hit(config.cite(one.saw("urlPrefix")), where=one.where, url=one.prefix or "no address")


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (
    no_extender,
    verb_missing,
    verb_unknown,
    ignorable,
    managed_resources,
    full_nodes,
    other_binder,
    other_extender,
)
