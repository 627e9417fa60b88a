# SPDX-License-Identifier: Apache-2.0
"""Whether kube-scheduler asks Muster, for every pod, in time, and at the right place."""

from __future__ import annotations

from typing import Any

import pytest

from app.explain.finding import Evidence
from tests.explain.config.looking import seen, shipped, told, writes

OTHER = {"urlPrefix": "http://share.gpu.svc:9000", "filterVerb": "filter", "httpTimeout": "5s"}


def stanza(at: int, *drop: str, **change: Any) -> Any:
    """The shipped configuration with one stanza changed."""
    raw = shipped()
    raw["extenders"][at].update(change)
    for field in drop:
        del raw["extenders"][at][field]
    return raw


def both(**change: Any) -> Any:
    raw = shipped()
    for one in raw["extenders"]:
        one.update(change)
    return raw


def single(**change: Any) -> Any:
    """Filter and bind in one stanza."""
    raw = shipped()
    raw["extenders"] = [{**raw["extenders"][0], "bindVerb": "bind", "httpTimeout": "10m", **change}]
    return raw


@pytest.mark.parametrize("extenders", [None, [], [OTHER]])
def test_no_extender_is_muster(extenders: Any) -> None:
    assert told({**shipped(), "extenders": extenders}) == [
        "NoExtender blocks: no extender is Muster (port 8888): kube-scheduler places pods one by one and"
        " knows no gangs"
    ]


@pytest.mark.parametrize(
    ("at", "verb", "expected"),
    [
        (0, "filter", "pods are placed without regard to seats, and Muster refuses to bind them"),
        (0, "prioritize", "single pods are spread over GPU nodes and break up what gangs need whole"),
        (0, "preempt", "a pod of higher priority may evict single members of a gang that runs"),
        (1, "bind", "the default binder binds each member at once, alone; there is no barrier"),
    ],
)
def test_each_verb_that_is_missing_has_its_price(at: int, verb: str, expected: str) -> None:
    raw = stanza(at, f"{verb}Verb")
    weight = "blocks" if verb in ("filter", "bind") else "warns"
    assert told(raw) == [f"VerbMissing {weight}: no stanza of Muster has {verb}Verb: {expected}"]
    assert writes(raw) == [f"{verb}Verb: {verb}"]


def test_a_verb_that_muster_does_not_serve() -> None:
    raw = stanza(1, bindVerb="binding")
    assert told(raw) == [
        "VerbUnknown blocks: extenders[1].bindVerb calls http://127.0.0.1:8888/binding, and Muster answers"
        " bind at /bind: every such call fails"
    ]
    assert seen(raw) == [
        Evidence("file", "extenders[1].urlPrefix", "http://127.0.0.1:8888"),
        Evidence("file", "extenders[1].bindVerb", "binding"),
    ]


def test_a_path_before_the_verbs() -> None:
    raw = stanza(1, urlPrefix="http://127.0.0.1:8888/scheduler/")
    assert told(raw) == [
        "VerbUnknown blocks: extenders[1].bindVerb calls http://127.0.0.1:8888/scheduler/bind, and Muster"
        " answers bind at /bind: every such call fails"
    ]
    assert writes(raw) == ["urlPrefix: http://127.0.0.1:8888 and bindVerb: bind"]


def test_a_slash_at_the_end_is_fine() -> None:
    assert told(both(urlPrefix="http://127.0.0.1:8888/")) == []


def test_ignorable_with_bind_breaks_and_with_filter_weakens() -> None:
    bind = "when Muster answers an error, the default binder binds that one member alone"
    away = "while Muster is away, pods take places that are reserved for gangs"
    assert told(stanza(1, ignorable=True)) == [
        f"Ignorable blocks: extenders[1] has bindVerb and is ignorable: {bind}"
    ]
    assert told(stanza(0, ignorable=True)) == [
        f"Ignorable warns: extenders[0] has filterVerb and is ignorable: {away}"
    ]
    assert told(
        single(ignorable=True, httpTimeout="25s", weight=5), gang_seconds=20, most_hold_seconds=20
    ) == [f"Ignorable blocks: extenders[0] has bindVerb and is ignorable: {bind}"]
    assert writes(stanza(1, ignorable=True)) == ["ignorable: false"]


def test_managed_resources_let_members_pass_by() -> None:
    raw = stanza(1, managedResources=[{"name": "nvidia.com/gpu"}, {"name": "amd.com/gpu"}])
    assert told(raw) == [
        "ManagedResources blocks: extenders[1] has managedResources: members that request none of"
        " nvidia.com/gpu, amd.com/gpu pass Muster by and are bound alone"
    ]


def test_full_nodes_cost_and_do_not_matter_for_bind() -> None:
    assert told(stanza(0, nodeCacheCapable=False)) == [
        "FullNodes warns: extenders[0] lacks nodeCacheCapable: true, so every call carries whole Node"
        " objects instead of names"
    ]
    assert told(stanza(0, "nodeCacheCapable")) == told(stanza(0, nodeCacheCapable=False))
    assert told(stanza(1, "nodeCacheCapable")) == []


def test_another_binder() -> None:
    raw = stanza(1, urlPrefix="http://10.0.0.7:9999")
    assert told(raw) == [
        "VerbMissing blocks: no stanza of Muster has bindVerb: the default binder binds each member at"
        " once, alone; there is no barrier",
        "OtherBinder blocks: extenders[1] at http://10.0.0.7:9999 has bindVerb and is not Muster (port"
        " 8888): members are bound there, alone",
    ]


def test_another_extender_is_a_note() -> None:
    raw = shipped()
    raw["extenders"].append(OTHER)
    assert told(raw) == [
        "OtherExtender note: extenders[2] at http://share.gpu.svc:9000 is another extender: a seat that it"
        " refuses is planned again"
    ]


# -- addresses


@pytest.mark.parametrize("prefix", ["127.0.0.1:8888", "muster:8888", "ftp://127.0.0.1:8888"])
def test_an_address_that_leads_nowhere(prefix: str) -> None:
    assert (
        "BadAddress blocks: urlPrefix of extenders[0] is no address with http:// and a host: every call fails"
        in told(both(urlPrefix=prefix))
    )


@pytest.mark.parametrize("prefix", ["", "http://[::1", "http://127.0.0.1:x", "http://"])
def test_an_address_that_cannot_be_read_is_not_muster(prefix: str) -> None:
    assert told(both(urlPrefix=prefix))  # something is told, nothing raises


def test_a_wrong_port() -> None:
    raw = both(urlPrefix="http://127.0.0.1:8889")
    assert told(raw) == [
        f"WrongPort blocks: extenders[{at}] calls port 8889, and Muster listens on 8888: every call fails"
        for at in (0, 1)
    ]
    assert told(raw, port=8889) == []


def test_two_services() -> None:
    raw = stanza(1, urlPrefix="http://10.0.0.7:8888")
    assert told(raw)[0] == (
        "TwoServices blocks: the stanzas of Muster point to 2 addresses: seats given at one are not known"
        " at the other"
    )


def test_plain_http_over_the_network() -> None:
    raw = both(urlPrefix="http://muster.muster-system.svc:8888")
    assert told(raw) == [
        f"PodNetwork warns: extenders[{at}] calls Muster over the network (muster.muster-system.svc), in"
        " the clear: whoever reaches that port can bind pods"
        for at in (0, 1)
    ]


@pytest.mark.parametrize("host", ["localhost", "[::1]", "127.0.0.2"])
def test_a_loopback_that_need_not_be_musters(host: str) -> None:
    shown = host.strip("[]")
    assert told(both(urlPrefix=f"http://{host}:8888")) == [
        f"HostName warns: extenders[{at}] names {shown}, which need not be the 127.0.0.1 that Muster"
        " listens on"
        for at in (0, 1)
    ]


def test_https_to_muster_itself() -> None:
    tls = {"caFile": "/etc/ca.crt"}
    assert told(both(urlPrefix="https://127.0.0.1:8888", enableHTTPS=True, tlsConfig=tls)) == [
        f"HttpsToMuster blocks: extenders[{at}] calls Muster's own port with https, and Muster speaks"
        " plain HTTP there: every call fails"
        for at in (0, 1)
    ]


def test_https_that_checks_nobody() -> None:
    proxy = "https://muster.example"
    expected = [
        f"Unverified warns: extenders[{at}] uses https and checks no certificate: whoever answers at"
        " muster.example can place and bind pods"
        for at in (0, 1)
    ]
    assert told(both(urlPrefix=proxy, enableHTTPS=True)) == expected
    assert told(both(urlPrefix=proxy, tlsConfig={"insecure": True})) == expected
    assert told(both(urlPrefix=proxy, enableHTTPS=True, tlsConfig={"caFile": "/ca.crt"})) == []


def test_https_in_name_alone() -> None:
    text = (
        "extenders[1] has enableHTTPS, but its urlPrefix begins with http://, and that decides: calls are"
        " in the clear"
    )
    assert told(stanza(1, enableHTTPS=True)) == [f"HttpsInName note: {text}"]
    raw = both(urlPrefix="http://muster:8888")
    raw["extenders"][1]["enableHTTPS"] = True
    assert f"HttpsInName warns: {text}" in told(raw)


# -- timeouts


def hold(timeout: str, held: str, why: str) -> str:
    return (
        f"extenders[1] waits {timeout} s for a bind call, and Muster may hold it for {held} s ({why}):"
        " kube-scheduler gives up first, and the gang falls apart"
    )


LONGEST = "the longest scheduleTimeoutSeconds of a PodGroup"


def test_a_bind_call_that_kube_scheduler_gives_up() -> None:
    raw = stanza(1, "httpTimeout")
    assert told(raw) == [f"HoldTooLong blocks: {hold('5', '15', 'hold_seconds')}"]
    assert seen(raw) == [
        Evidence("file", "extenders[1].httpTimeout", "not set; kube-scheduler's default is 5s")
    ]
    assert writes(raw) == ["httpTimeout: 10m, in a stanza of its own for bindVerb"]
    assert told(stanza(1, httpTimeout="15s")) == [f"HoldTooLong blocks: {hold('15', '15', 'hold_seconds')}"]
    assert told(stanza(1, httpTimeout="1m")) == [f"HoldTooLong warns: {hold('60', '300', 'gang_seconds')}"]
    assert told(stanza(1, httpTimeout="9m30s")) == [f"HoldTooLong warns: {hold('570', '570', LONGEST)}"]
    assert told(stanza(1, httpTimeout="9m31s")) == []


def test_other_holds_of_muster_count() -> None:
    assert told(stanza(1, httpTimeout="9m31s"), gang_seconds=580.0) == [
        f"HoldTooLong warns: {hold('571', '580', 'gang_seconds')}"
    ]
    assert told(stanza(1, httpTimeout="30s"), hold_seconds=45.0) == [
        f"HoldTooLong blocks: {hold('30', '45', 'hold_seconds')}"
    ]


def test_a_filter_call_has_neither_milliseconds_nor_minutes() -> None:
    assert told(stanza(0, httpTimeout="100ms")) == [
        "TimeoutTooShort warns: extenders[0] gives Muster 0.1 s to answer: a pause of that length fails"
        " scheduling attempts"
    ]
    assert told(single()) == [
        "TimeoutTooLong warns: extenders[0] waits 600 s for a filter call: one that hangs stops all"
        " scheduling for that long"
    ]
    assert told(stanza(0, httpTimeout="30s")) == told(stanza(0, httpTimeout="1s")) == []
