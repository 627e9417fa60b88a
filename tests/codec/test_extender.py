# SPDX-License-Identifier: Apache-2.0
"""Bodies of the verbs: both modes, any case of the keys, and everything a broken caller may send."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

from app.codec.extender import (
    FilterAnswer,
    bind_args,
    bind_reply,
    filter_reply,
    nodes_args,
    preempt_args,
    preempt_reply,
)
from app.codec.objects import ObjectDecoder
from app.codec.offer import Offer
from app.domain.errors import InputError
from tests.builders import (
    Json,
    bind_body,
    filter_body,
    full_filter_body,
    make_node,
    make_pod,
    preempt_body,
)

POD = make_pod("p").gpus(1)
DEEP = b"[" * 50_000 + b"]" * 50_000


def lower(body: bytes) -> bytes:
    """The top-level keys as a caller with JSON tags would write them."""
    top: Json = orjson.loads(body)
    return orjson.dumps({key[0].lower() + key[1:]: value for key, value in top.items()})


def upper(body: bytes) -> bytes:
    top: Json = orjson.loads(body)
    return orjson.dumps({key.upper(): value for key, value in top.items()})


CASES = pytest.mark.parametrize("spelled", [pytest.param(lambda body: body, id="Go names"), lower, upper])
Spelling = Callable[[bytes], bytes]


@CASES
def test_names(spelled: Spelling) -> None:
    args = nodes_args(spelled(filter_body(POD, ["n1", "n2"])))
    assert args.offer.names == ["n1", "n2"]
    assert args.nodes is None
    assert ObjectDecoder().pod(args.pod).uid == "uid-p"


@CASES
def test_full_nodes(spelled: Spelling) -> None:
    args = nodes_args(spelled(full_filter_body(POD, [make_node("n1").gpus(8), make_node("n2")])))
    assert args.offer.names == ["n1", "n2"]
    assert args.nodes is not None
    assert ObjectDecoder().node(args.nodes["n1"]).allocatable["nvidia.com/gpu"] == 8


def test_a_node_offered_twice_is_offered_once() -> None:
    args = nodes_args(filter_body(POD, ["n2", "n1", "n2"]))
    assert args.offer.names == ["n2", "n1"]
    assert orjson.loads(filter_reply(FilterAnswer(left=args.offer), args))["NodeNames"] == ["n2", "n1"]


def test_an_empty_offer_is_an_offer() -> None:
    assert nodes_args(filter_body(POD, [])).offer.names == []
    assert nodes_args(full_filter_body(POD, [])).offer.names == []
    assert nodes_args(b'{"Pod":{},"Nodes":{"items":null}}').offer.names == []


def test_names_win_over_nodes_as_the_scheduler_sets_only_one() -> None:
    body = b'{"Pod":{},"NodeNames":["a"],"Nodes":{"items":[{"metadata":{"name":"b"}}]}}'
    assert nodes_args(body).offer.names == ["a"]


def test_five_megabytes_of_annotations_are_passed_over() -> None:
    pod = POD.set("metadata.annotations", {"notes": "x" * 5_000_000})
    args = nodes_args(filter_body(pod, ["n1"]))
    assert ObjectDecoder().pod(args.pod).template == ObjectDecoder().pod(POD.json()).template


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"", "body is not usable", id="nothing"),
        pytest.param(b"GET / HTTP/1.1", "body is not usable", id="no JSON"),
        pytest.param(b"[]", "body is not usable: Expected `object`", id="a list"),
        pytest.param(b"null", "body is not usable", id="null"),
        pytest.param(b'"x"', "body is not usable", id="text"),
        pytest.param(b'{"Pod":{}', "body is not usable", id="cut off"),
        pytest.param(b'{"Pod":{}} trailing', "body is not usable", id="something after it"),
        pytest.param(b'{"P\xff":{}}', "body is not usable", id="a key that is no text"),
        pytest.param(b"{}", "^Pod: is missing", id="empty object"),
        pytest.param(b'{"Pod":null,"NodeNames":[]}', "^Pod: is missing", id="null pod"),
        pytest.param(b'{"NodeNames":["a"]}', "^Pod: is missing", id="no pod"),
        pytest.param(b'{"Pod":{}}', "^NodeNames: neither", id="no nodes at all"),
        pytest.param(b'{"Pod":{},"Nodes":null,"NodeNames":null}', "^NodeNames: neither", id="both null"),
        pytest.param(b'{"Pod":{},"NodeNames":"a"}', "^NodeNames: Expected `array`", id="names as text"),
        pytest.param(b'{"Pod":{},"NodeNames":[1]}', "^NodeNames: Expected `str`", id="a number for a name"),
        pytest.param(b'{"Pod":{},"NodeNames":[null]}', "^NodeNames: Expected `str`", id="null for a name"),
        pytest.param(b'{"Pod":{},"NodeNames":["\xff"]}', "^NodeNames: Invalid UTF-8", id="bytes for a name"),
        pytest.param(b'{"Pod":{},"Nodes":[]}', r"^Nodes\.items: Expected `object`", id="nodes as a list"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[null]}}', r"^Nodes\.items", id="a node that is null"),
        pytest.param(b'{"Pod":{},"Nodes":{"items":[{}]}}', r"^Nodes\.items", id="a node without metadata"),
        pytest.param(b'{"Pod":' + DEEP + b"}", "body is not usable", id="nested without end"),
    ],
)
def test_an_unusable_filter_body_says_what_is_wrong_with_it(body: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        nodes_args(body)


MANY = [f"n{index}" for index in range(150)]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(filter_body(POD, MANY), id="last, as Go writes it"),
        pytest.param(b'{"NodeNames":%s,"Pod":%s}' % (orjson.dumps(MANY), POD.json()), id="first"),
        pytest.param(b'{"Pod":%s,"NODENAMES":%s}' % (POD.json(), orjson.dumps(MANY)), id="in capitals"),
        pytest.param(b'{"pod":%s,"NodeNames":%s}' % (POD.json(), orjson.dumps(MANY)), id="pod in lower case"),
        pytest.param(b'{"Pod":%s,"NodeNames":%s }' % (POD.json(), orjson.dumps(MANY)), id="space behind"),
        pytest.param(
            filter_body(POD.set("metadata.annotations", {"a": ',"NodeNames":["x"]}'}), MANY),
            id="its key in a text",
        ),
        pytest.param(
            filter_body(POD.set("metadata.x", {"a": 1, "NodeNames": ["x"] * 200}), MANY),
            id="its key in the pod",
        ),
    ],
)
def test_many_names_wherever_they_stand(body: bytes) -> None:
    args = nodes_args(body)
    assert args.offer.names == MANY
    assert ObjectDecoder().pod(args.pod).uid == "uid-p"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"Pod":{"a":"x,"NodeNames":%s}', "^body is not usable"),
        (b'{"Pod":{"a":0,"NodeNames":%s}', "^body is not usable"),
        (b'{"Pod":{"a":0,"NodeNames":%s}}', "^NodeNames: neither"),
        (b'{"Pod":[{},"NodeNames":%s}', "^body is not usable"),
        (b'{"Pod":null,"NodeNames":%s}', "^Pod: is missing"),
        (b'{"Nodes":null,"NodeNames":%s}', "^Pod: is missing"),
        (b',"NodeNames":%s}', "^body is not usable"),
    ],
)
def test_many_names_make_no_body_usable_that_is_not(body: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        nodes_args(body % orjson.dumps(MANY))


# -- answers


def test_everything_offered_goes_back_byte_by_byte() -> None:
    many = orjson.dumps(names := [f"n{index}" for index in range(101)])[:-1] + b" ]"
    body = b'{"Pod":{},"NodeNames":' + many + b"}"
    args = nodes_args(body)
    reply = filter_reply(FilterAnswer(left=args.offer), args)
    assert many in reply
    assert orjson.loads(reply) == {
        "Nodes": None,
        "NodeNames": names,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": {},
        "Error": "",
    }


def test_an_answer_in_name_mode() -> None:
    answer = FilterAnswer(left=Offer(["n2"]), failed={"n1": "full"}, unresolvable={"n3": 'quote " it'})
    assert orjson.loads(filter_reply(answer, nodes_args(filter_body(POD, ["n1", "n2", "n3"])))) == {
        "Nodes": None,
        "NodeNames": ["n2"],
        "FailedNodes": {"n1": "full"},
        "FailedAndUnresolvableNodes": {"n3": 'quote " it'},
        "Error": "",
    }


@pytest.mark.parametrize(("names", "kept"), [(["n2"], ["n2"]), (None, ["n1", "n2"]), ([], [])])
def test_an_answer_in_full_node_mode_returns_the_objects_it_was_given(
    names: list[str] | None, kept: list[str]
) -> None:
    nodes = {name: make_node(name).gpus(8) for name in ("n1", "n2")}
    args = nodes_args(full_filter_body(POD, nodes.values()))
    left = args.offer if names is None else Offer(names)
    reply = orjson.loads(filter_reply(FilterAnswer(left=left), args))
    assert reply["NodeNames"] is None
    assert reply["Nodes"]["items"] == [nodes[name].build() for name in kept]


def test_an_error_is_answered_even_when_the_body_could_not_be_read() -> None:
    reply = orjson.loads(filter_reply(FilterAnswer(error="no"), None))
    assert (reply["Error"], reply["NodeNames"]) == ("no", [])


def test_the_other_answers() -> None:
    assert orjson.loads(bind_reply("")) == {"Error": ""}
    assert orjson.loads(bind_reply("too late")) == {"Error": "too late"}
    assert orjson.loads(preempt_reply({"n1": (["u1", "u2"], 1)})) == {
        "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u1"}, {"UID": "u2"}], "NumPDBViolations": 1}}
    }
    assert orjson.loads(preempt_reply({})) == {"NodeNameToMetaVictims": {}}


# -- bind


@CASES
def test_bind(spelled: Spelling) -> None:
    args = bind_args(spelled(bind_body(POD, "n1")))
    assert (args.name, args.namespace, args.uid, args.node) == ("p", "default", "uid-p", "n1")


@pytest.mark.parametrize("field", ["PodName", "PodUID", "Node"])
@pytest.mark.parametrize("how", ["absent", "empty"])
def test_a_bind_without_one_of_its_names_says_which(field: str, how: str) -> None:
    body: Json = orjson.loads(bind_body(POD, "n1"))
    body |= {field: ""}
    if how == "absent":
        del body[field]
    with pytest.raises(InputError, match=f"^{field}: is empty"):
        bind_args(orjson.dumps(body))


def test_a_bind_with_a_number_for_a_name_says_where() -> None:
    with pytest.raises(InputError, match=r"\$\.poduid"):
        bind_args(b'{"PodName":"p","PodUID":7,"Node":"n"}')


# -- preempt


@CASES
def test_preempt_by_uid(spelled: Spelling) -> None:
    body = preempt_body(POD, {"n1": [make_pod("v1"), make_pod("v2")], "n2": []})
    assert preempt_args(spelled(body)).victims == {"n1": (["uid-v1", "uid-v2"], 0), "n2": ([], 0)}


def test_preempt_with_full_victims() -> None:
    victims = {"n1": {"Pods": [make_pod("v1").build()], "NumPDBViolations": 2}}
    body = orjson.dumps({"Pod": POD.build(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None})
    assert preempt_args(body).victims == {"n1": (["uid-v1"], 2)}


@pytest.mark.parametrize("entry", [None, {}, {"Pods": None}])
def test_a_node_without_victims(entry: object) -> None:
    body = orjson.dumps({"Pod": {}, "NodeNameToMetaVictims": {"n1": entry}})
    assert preempt_args(body).victims == {"n1": ([], 0)}


def test_no_candidates_at_all() -> None:
    assert preempt_args(b'{"Pod":{}}').victims == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{}", "^Pod: is missing"),
        (b'{"Pod":{},"NodeNameToMetaVictims":[]}', r"\$\.nodenametometavictims"),
        (b'{"Pod":{},"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}}}', "^victims of n1: a victim has no UID"),
        (b'{"Pod":{},"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":5}]}}}', "^victims of n1"),
        (b'{"Pod":{},"NodeNameToVictims":{"n1":{"Pods":[{"metadata":null}]}}}', "^victims of n1"),
    ],
)
def test_an_unusable_preempt_body_says_what_is_wrong_with_it(body: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        preempt_args(body)
