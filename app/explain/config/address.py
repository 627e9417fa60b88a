# SPDX-License-Identifier: Apache-2.0
"""Where the stanzas point: the calls must reach one Muster, and nobody else may make or hear them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from app.explain.config.configuration import Configuration
from app.explain.finding import Hit, Read, Topic, Weight, finding, hit
from app.explain.objects import dig, text


@finding(
    "BadAddress",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="urlPrefix of {where} is no address with http:// and a host: every call fails",
    meaning=(
        "kube-scheduler does not look at urlPrefix when it starts. Each call then fails, and no pod is"
        " placed."
    ),
    decide=("urlPrefix: http://127.0.0.1:{port}",),
)
def bad_address(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's whose calls go nowhere."""
    for stanza in config.stanzas:
        if stanza.url.scheme not in ("http", "https") or not stanza.host or stanza.port is None:
            yield hit(config.cite(stanza.saw("urlPrefix")), where=stanza.where, port=config.muster.port)


@finding(
    "WrongPort",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence="{where} calls port {port}, and Muster listens on {right}: every call fails",
    meaning=(
        "Muster serves the verbs on the port of its setting port (8888 unless set); the ops port (8889)"
        " has metrics and probes alone."
    ),
    decide=("port {right} in urlPrefix, or `--port {port}` for Muster and for this command",),
)
def wrong_port(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's at another port on loopback; a Service or a proxy may have its own."""
    for stanza in config.stanzas:
        if stanza.loopback and stanza.port not in (None, config.muster.port):
            seen = config.cite(stanza.saw("urlPrefix"))
            yield hit(seen, where=stanza.where, port=stanza.port, right=config.muster.port)


@finding(
    "TwoServices",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence=(
        "the stanzas of Muster point to {count} addresses: seats given at one are not known at the other"
    ),
    meaning=(
        "Seats, the barrier and reservations are in the memory of one process: the Muster beside the"
        " scheduler that holds the Lease. A bind call that reaches another one is refused or, worse, held"
        " for members that never come."
    ),
    decide=("the same urlPrefix in every stanza of Muster",),
)
def two_services(config: Configuration) -> Iterable[Hit]:
    """Stanzas of Muster's that differ in host or port."""
    places = {("loopback" if one.loopback else one.host, one.port) for one in config.stanzas}
    if len(places) > 1:
        yield hit(*(config.cite(one.saw("urlPrefix")) for one in config.stanzas), count=len(places))


@finding(
    "PodNetwork",
    read=Read.GROUP,
    sentence=(
        "{where} calls Muster over the network ({host}), in the clear: whoever reaches that port can bind"
        " pods"
    ),
    meaning=(
        "The verbs do not ask who calls. kube-scheduler and Muster belong into one Pod and talk over its"
        " loopback; then kube-scheduler's leader election decides which Muster acts as well. Over the pod"
        " network any pod can call bind or read what is scheduled, and a call may reach a passive Muster."
    ),
    decide=("kube-scheduler and Muster in one Pod, and urlPrefix: http://127.0.0.1:{port}",),
)
def pod_network(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's with plain HTTP to another address than loopback."""
    for stanza in config.stanzas:
        if stanza.url.scheme == "http" and stanza.host and not stanza.loopback:
            seen = config.cite(stanza.saw("urlPrefix"))
            yield hit(seen, where=stanza.where, host=stanza.host, port=config.muster.port)


@finding(
    "HostName",
    read=Read.GROUP,
    sentence="{where} names {host}, which need not be the 127.0.0.1 that Muster listens on",
    meaning=(
        "localhost may be looked up as ::1 first, where nothing listens, and a file of host names may be"
        " absent from the image. 127.0.0.1 needs no look-up."
    ),
    decide=("urlPrefix: http://127.0.0.1:{port}",),
)
def host_name(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's with a loopback that is not 127.0.0.1."""
    for stanza in config.stanzas:
        if stanza.loopback and stanza.host != "127.0.0.1":
            seen = config.cite(stanza.saw("urlPrefix"))
            yield hit(seen, where=stanza.where, host=stanza.host, port=config.muster.port)


@finding(
    "HttpsToMuster",
    read=Read.GROUP,
    weight=Weight.BLOCKS,
    sentence=(
        "{where} calls Muster's own port with https, and Muster speaks plain HTTP there: every call fails"
    ),
    meaning=(
        "Muster has no certificate: it is meant to be called over loopback, where nobody listens in. https"
        " works only with a proxy in front of it, which then has a port of its own."
    ),
    decide=("urlPrefix: http://127.0.0.1:{port}",),
)
def https_to_muster(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's with https to the port of Muster itself, on loopback."""
    for stanza in config.stanzas:
        if stanza.url.scheme == "https" and stanza.loopback and stanza.port == config.muster.port:
            yield hit(config.cite(stanza.saw("urlPrefix")), where=stanza.where, port=config.muster.port)


@finding(
    "Unverified",
    read=Read.GROUP,
    sentence=(
        "{where} uses https and checks no certificate: whoever answers at {host} can place and bind pods"
    ),
    meaning=(
        "With enableHTTPS and no certificate authority in tlsConfig, and with tlsConfig.insecure,"
        " kube-scheduler accepts any certificate."
    ),
    decide=("tlsConfig.caFile (or caData) and no insecure: true; or one Pod and loopback",),
)
def unverified(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's with https to anybody."""
    for stanza in config.stanzas:
        tls = dig(stanza.raw, "tlsConfig")
        authority = text(tls, "caFile") or text(tls, "caData")
        anybody = stanza.raw.get("enableHTTPS") is True and not authority
        if stanza.url.scheme == "https" and (anybody or dig(tls, "insecure") is True):
            seen = (config.cite(stanza.saw(field)) for field in ("urlPrefix", "tlsConfig"))
            yield hit(*seen, where=stanza.where, host=stanza.host)


@finding(
    "HttpsInName",
    read=Read.GROUP,
    sentence=(
        "{where} has enableHTTPS, but its urlPrefix begins with http://, and that decides: calls are in"
        " the clear"
    ),
    meaning="enableHTTPS only tells how certificates are checked. What is spoken is the scheme of urlPrefix.",
    decide=("enableHTTPS: false on loopback; https:// in urlPrefix elsewhere",),
)
def https_in_name(config: Configuration) -> Iterable[Hit]:
    """Each stanza of Muster's that says it uses https and does not. Harmless on loopback."""
    for stanza in config.stanzas:
        if stanza.raw.get("enableHTTPS") is True and stanza.url.scheme == "http":
            seen = (config.cite(stanza.saw(field)) for field in ("urlPrefix", "enableHTTPS"))
            weight = Weight.NOTE if stanza.loopback else Weight.WARNS
            yield hit(*seen, weight=weight, where=stanza.where)


FINDINGS: Final[tuple[Topic[Configuration], ...]] = (
    bad_address,
    wrong_port,
    two_services,
    pod_network,
    host_name,
    https_to_muster,
    unverified,
    https_in_name,
)
