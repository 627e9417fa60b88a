# SPDX-License-Identifier: Apache-2.0
"""The bodies of kube-scheduler's HTTP extender (k8s.io/kube-scheduler `extender/v1`).

Those types carry no JSON tags: the keys out are Go field names, and keys in are matched without regard to
case. Unusable input raises `InputError` naming the field.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
import orjson
from msgspec import Raw, Struct

from app.codec.offer import Offer
from app.codec.wire import NOTHING, UNUSABLE
from app.domain.errors import InputError
from app.domain.ids import PodUid

T = TypeVar("T")


class _Filter(Struct, rename="lower", gc=False):
    pod: Raw = NOTHING
    nodes: Raw = NOTHING
    nodenames: Raw = NOTHING


class _GoFilter(Struct, rename={"pod": "Pod", "nodes": "Nodes", "nodenames": "NodeNames"}, gc=False):
    """The same with Go's own keys, which is what every scheduler of today sends."""

    pod: Raw = NOTHING
    nodes: Raw = NOTHING
    nodenames: Raw = NOTHING


class _Part(Struct, gc=False):
    """Any object."""


class _Uid(Struct, gc=False):
    uid: str = ""


class _PodUid(Struct, gc=False):
    metadata: _Uid
    spec: _Part | None = None
    status: _Part | None = None


class _NodeItems(Struct, gc=False):
    items: list[Raw] | None = None


class _Meta(Struct, gc=False):
    name: str = ""


class _Named(Struct, gc=False):
    metadata: _Meta


class _Bind(Struct, rename="lower", gc=False):
    podname: str = ""
    podnamespace: str = ""
    poduid: str = ""
    node: str = ""


class _Preempt(Struct, rename="lower", gc=False):
    pod: Raw = NOTHING
    nodenametovictims: dict[str, object] | None = None
    nodenametometavictims: dict[str, object] | None = None


class NodesArgs(Struct, frozen=True, gc=False):
    """ExtenderArgs of filter and prioritize. `nodes` are the full objects by name when the scheduler sent
    those instead of names."""

    pod: bytes
    offer: Offer
    nodes: dict[str, bytes] | None = None


class BindArgs(Struct, frozen=True, gc=False):
    """ExtenderBindingArgs."""

    name: str
    namespace: str
    uid: str
    node: str


class PreemptArgs(Struct, frozen=True, gc=False):
    """ExtenderPreemptionArgs: candidate node → (UIDs of its victims, number of PDB violations)."""

    pod: bytes
    victims: dict[str, tuple[list[str], int]]


class FilterAnswer(Struct, gc=False):
    """ExtenderFilterResult before encoding: what is left of the offer, and why the rest is not."""

    left: Offer = msgspec.field(default_factory=lambda: Offer([]))
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


_POD_UID = msgspec.json.Decoder(_PodUid)
_NAMES_LAST = b',"NodeNames":['
_NULL = Raw(b"null")
_GO_FILTER = msgspec.json.Decoder(_GoFilter)


def nodes_args(body: bytes) -> NodesArgs:
    """Body of filter or prioritize."""
    head, offer = _without_names(body)
    args = _filter_body(head, named=offer is not None)
    pod = _required(args.pod, "Pod")
    if offer is not None:
        return NodesArgs(pod, offer)
    if _present(args.nodenames):
        return NodesArgs(pod, Offer.of(bytes(args.nodenames)))
    if not _present(args.nodes):
        raise InputError("neither Nodes nor NodeNames is set", field="NodeNames")
    nodes = _full_nodes(args.nodes)
    return NodesArgs(pod, Offer(list(nodes)), nodes)


def _without_names(body: bytes) -> tuple[bytes, Offer | None]:
    """The body without a long list of names, and that list, if it comes last, as Go writes it.

    Inside of a text its key could not stand with bare quotes; and if what comes before is a whole object once
    it is closed, the key is one of the body's own.
    """
    at = body.find(_NAMES_LAST)
    if at > 0 and body.endswith(b'"]}'):
        offer = Offer.of_many(body[at + len(_NAMES_LAST) - 1 : -1])
        if offer is not None:
            return body[:at] + b"}", offer
    return body, None


def pod_uid(pod: bytes) -> PodUid:
    """UID of the pod that a call is about, all that is needed of one that is known; empty if there is none to
    be read."""
    try:
        return PodUid(_POD_UID.decode(pod).metadata.uid)
    except UNUSABLE:
        return PodUid("")


def bind_args(body: bytes) -> BindArgs:
    """Body of bind."""
    args = _decode(body, _Bind)
    for field, value in (("PodName", args.podname), ("PodUID", args.poduid), ("Node", args.node)):
        if not value:
            raise InputError("is empty", field=field)
    return BindArgs(name=args.podname, namespace=args.podnamespace, uid=args.poduid, node=args.node)


def preempt_args(body: bytes) -> PreemptArgs:
    """Body of preempt, in either form: full victims or their UIDs."""
    args = _decode(body, _Preempt)
    pod = _required(args.pod, "Pod")
    raw = args.nodenametometavictims or args.nodenametovictims or {}
    return PreemptArgs(pod, {node: _victims(node, entry) for node, entry in raw.items()})


def filter_reply(answer: FilterAnswer, args: NodesArgs | None) -> bytes:
    """ExtenderFilterResult in the mode of the request: `NodeNames`, or `Nodes` with full objects."""
    if args is None or args.nodes is None:
        head, names = b'{"Nodes":null,"NodeNames":', answer.left.raw
    else:
        items = b",".join(map(args.nodes.__getitem__, answer.left.names))
        head, names = b'{"Nodes":{"metadata":{},"items":[' + items + b']},"NodeNames":', b"null"
    return b"".join(
        (
            head,
            names,
            b',"FailedNodes":',
            orjson.dumps(answer.failed),
            b',"FailedAndUnresolvableNodes":',
            orjson.dumps(answer.unresolvable),
            b',"Error":',
            orjson.dumps(answer.error),
            b"}",
        )
    )


def bind_reply(error: str) -> bytes:
    """ExtenderBindingResult; an empty error is success."""
    return orjson.dumps({"Error": error})


def preempt_reply(victims: dict[str, tuple[list[str], int]]) -> bytes:
    """ExtenderPreemptionResult."""
    return orjson.dumps(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
                for node, (uids, violations) in victims.items()
            }
        }
    )


def _filter_body(body: bytes, *, named: bool) -> _Filter | _GoFilter:
    try:
        args = _GO_FILTER.decode(body)
        if _present(args.pod) and (named or _present(args.nodenames) or _present(args.nodes)):
            return args
    except UNUSABLE:
        pass  # the slow way says what is wrong
    return _decode(body, _Filter)


def _decode(body: bytes, kind: type[T]) -> T:
    """Keys in any case: Go's are tried by folding the top level once."""
    try:
        top = msgspec.json.decode(body, type=dict[str, Raw])
        folded = {key.lower(): bytes(value) for key, value in top.items()}
        wanted = kind.__struct_encode_fields__  # type: ignore[attr-defined]
        joined = b",".join(b'"%s":%s' % (key.encode(), folded[key]) for key in wanted if key in folded)
        return msgspec.json.decode(b"{" + joined + b"}", type=kind)
    except UNUSABLE as error:
        raise InputError(f"body is not usable: {error}") from None


def _present(raw: Raw) -> bool:
    return raw not in (NOTHING, _NULL)


def _required(raw: Raw, field: str) -> bytes:
    if not _present(raw):
        raise InputError("is missing", field=field)
    return bytes(raw)


def _full_nodes(raw: Raw) -> dict[str, bytes]:
    try:
        items = msgspec.json.decode(raw, type=_NodeItems).items or []
        return {msgspec.json.decode(item, type=_Named).metadata.name: bytes(item) for item in items}
    except UNUSABLE as error:
        raise InputError(str(error), field="Nodes.items") from None


def _victims(node: str, entry: object) -> tuple[list[str], int]:
    folded = _fold(entry)
    uids = [_uid(pod) for pod in _list(folded.get("pods"))]
    violations = folded.get("numpdbviolations")
    if not all(uids):
        raise InputError("a victim has no UID", field=f"victims of {node}")
    return uids, violations if isinstance(violations, int) else 0


def _uid(pod: object) -> str:
    folded = _fold(pod)
    uid = folded.get("uid") or _fold(folded.get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""


def _fold(entry: object) -> dict[str, object]:
    return {str(key).lower(): value for key, value in entry.items()} if isinstance(entry, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
