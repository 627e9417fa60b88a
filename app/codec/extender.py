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

from app.codec.wire import UNUSABLE
from app.domain.errors import InputError

T = TypeVar("T")


class _Filter(Struct, rename="lower", gc=False):
    pod: Raw = Raw(b"")
    nodes: Raw = Raw(b"")
    nodenames: Raw = Raw(b"")


class _GoFilter(Struct, rename={"pod": "Pod", "nodes": "Nodes", "nodenames": "NodeNames"}, gc=False):
    """The same with Go's own keys, which is what every scheduler of today sends."""

    pod: Raw = Raw(b"")
    nodes: Raw = Raw(b"")
    nodenames: Raw = Raw(b"")


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
    pod: Raw = Raw(b"")
    nodenametovictims: dict[str, object] | None = None
    nodenametometavictims: dict[str, object] | None = None


class NodesArgs(Struct, frozen=True, gc=False):
    """ExtenderArgs of filter and prioritize. `names` is what was offered, once each.

    `raw_names` are the bytes of `NodeNames` (to send back unchanged when nothing was a duplicate);
    `nodes` are the full objects by name when the scheduler sent those instead.
    """

    pod: bytes
    names: list[str]
    raw_names: bytes | None
    nodes: dict[str, bytes] | None


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
    """ExtenderFilterResult before encoding. `names` None means: everything that was offered."""

    names: list[str] | None = msgspec.field(default_factory=list)
    failed: dict[str, str] = msgspec.field(default_factory=dict)
    unresolvable: dict[str, str] = msgspec.field(default_factory=dict)
    error: str = ""


_GO_FILTER = msgspec.json.Decoder(_GoFilter)
_NAMES = msgspec.json.Decoder(list[str])


def nodes_args(body: bytes) -> NodesArgs:
    """Body of filter or prioritize."""
    args = _filter_body(body)
    pod = _required(args.pod, "Pod")
    if _present(args.nodenames):
        names = _strings(args.nodenames)
        if len(set(names)) < len(names):
            return NodesArgs(pod, list(dict.fromkeys(names)), None, None)
        return NodesArgs(pod, names, bytes(args.nodenames), None)
    if not _present(args.nodes):
        raise InputError("neither Nodes nor NodeNames is set", field="NodeNames")
    nodes = _full_nodes(args.nodes)
    return NodesArgs(pod, list(nodes), None, nodes)


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
    head = b'{"Nodes":null,"NodeNames":'
    names = _names_bytes(answer, args)
    if args is not None and args.nodes is not None:
        kept = args.names if answer.names is None else answer.names
        items = b",".join(args.nodes[name] for name in kept)
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


def prioritize_reply(scores: dict[str, int]) -> bytes:
    """HostPriorityList: a bare list, scores 0 to 10."""
    return orjson.dumps([{"Host": host, "Score": score} for host, score in scores.items()])


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


def _names_bytes(answer: FilterAnswer, args: NodesArgs | None) -> bytes:
    if answer.names is None and args is not None:
        return args.raw_names if args.raw_names is not None else orjson.dumps(args.names)
    return orjson.dumps(answer.names or [])


def _filter_body(body: bytes) -> _Filter | _GoFilter:
    try:
        args = _GO_FILTER.decode(body)
        if _present(args.pod) and (_present(args.nodenames) or _present(args.nodes)):
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
    return bytes(raw) not in (b"", b"null")


def _required(raw: Raw, field: str) -> bytes:
    if not _present(raw):
        raise InputError("is missing", field=field)
    return bytes(raw)


def _strings(raw: Raw) -> list[str]:
    try:
        return _NAMES.decode(raw)
    except UNUSABLE as error:
        raise InputError(str(error), field="NodeNames") from None


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
