# SPDX-License-Identifier: Apache-2.0
"""Quantities: the whole grammar of Kubernetes, and nothing else."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from app.domain.errors import InputError, QuantityError
from app.domain.quantity import LIMIT, to_count, to_milli, to_units
from app.domain.resources import is_device, parse_amount, parse_amounts
from tests.builders import GPU, make_node, make_pod, node_of, pod_of

SETTINGS = settings(deadline=None, max_examples=150, derandomize=True, database=None)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("8", 8, id="plain"),
        pytest.param("+8", 8, id="explicit plus"),
        pytest.param("-3", -3, id="negative"),
        pytest.param("0", 0, id="zero"),
        pytest.param("00012", 12, id="leading zeros"),
        pytest.param("5.", 5, id="point without a fraction"),
        pytest.param(".5", 1, id="fraction alone rounds up"),
        pytest.param("-.5", -1, id="and away from zero"),
        pytest.param("1.0", 1, id="whole number written as a fraction"),
        pytest.param("1Ki", 1 << 10, id="Ki"),
        pytest.param("1.5Gi", 3 << 29, id="fraction of a binary unit"),
        pytest.param("2Ei", LIMIT, id="Ei is clamped to the limit"),
        pytest.param("1k", 1000, id="k"),
        pytest.param("1M", 10**6, id="M"),
        pytest.param("0.001E", 10**15, id="E is exa"),
        pytest.param("1E2", 100, id="unless digits follow"),
        pytest.param("1e3", 1000, id="exponent"),
        pytest.param("25e-1", 3, id="negative exponent rounds up"),
        pytest.param("1n", 1, id="a billionth still counts"),
        pytest.param("1500m", 2, id="milli rounds up"),
        pytest.param("128974848000m", 128974848, id="memory in milli, as some controllers write it"),
        pytest.param("1e9999", LIMIT, id="absurdly large is clamped"),
        pytest.param("-1e9999", -LIMIT, id="absurdly small too"),
        pytest.param("1e-9999", 1, id="absurdly close to zero"),
        pytest.param("0e9999", 0, id="zero stays zero"),
        pytest.param(3, 3, id="bare integer of a manifest"),
        pytest.param(2.5, 3, id="bare float of a manifest"),
    ],
)
def test_units(text: object, want: int) -> None:
    assert to_units(text) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1", 1000, id="a core"),
        pytest.param("100m", 100, id="milli"),
        pytest.param("0.1", 100, id="a tenth"),
        pytest.param("1u", 1, id="below a milli rounds up"),
        pytest.param("-1u", -1, id="away from zero"),
        pytest.param("1k", 10**6, id="a thousand"),
    ],
)
def test_milli(text: str, want: int) -> None:
    assert to_milli(text) == want


JUNK = [
    "", " ", "+", "-", ".", "+.", "NaN", "nan", "Infinity", "-Infinity",
    "inf", "1_000", "1 Gi", " 1", "1 ", "1\n", "1e", "1e+", "1e1.5", "e3",
    "Gi", "1gi", "1ki", "1KI", "1mi", "1K", "1Kib", "1Gii", "1e3Ki", "1e3m",
    "0x10", "1,5", "--1", "+-1", "1..2", "1.2.3", "٣", "１", "1٣", "½",
    "1e٣", "8\x00", "1" * 65,
]  # fmt: skip


@pytest.mark.parametrize("text", JUNK)
@pytest.mark.parametrize("convert", [to_units, to_milli, to_count])
def test_junk_is_refused(text: str, convert: object) -> None:
    with pytest.raises(QuantityError, match="is not a Kubernetes quantity"):
        convert(text)  # type: ignore[operator]


@pytest.mark.parametrize("thing", [None, True, [], {}, float("nan"), float("inf")])
def test_what_is_no_text_is_refused(thing: object) -> None:
    with pytest.raises(QuantityError):
        to_units(thing)


@pytest.mark.parametrize("text", ["0.5", "1.5", "1500m", "1n", ".1", "1e-1"])
def test_devices_cannot_be_split(text: str) -> None:
    with pytest.raises(QuantityError, match="whole number"):
        to_count(text)


@pytest.mark.parametrize(("text", "want"), [("8", 8), ("8.0", 8), ("2000m", 2), ("1k", 1000), ("80e-1", 8)])
def test_whole_devices_in_any_spelling(text: str, want: int) -> None:
    assert to_count(text) == want


NUMBERS = st.from_regex(r"[+-]?([0-9]{1,12}(\.[0-9]{0,9})?|\.[0-9]{1,9})", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-4", "e+2"]
)


def _official(text: str) -> Decimal:
    return Decimal(parse_quantity(text))  # type: ignore[no-untyped-call]


@SETTINGS
@given(NUMBERS, SUFFIXES, st.sampled_from([0, 3]))
def test_agrees_with_the_official_client_inside_the_grammar(number: str, suffix: str, power: int) -> None:
    text = number + suffix
    with localcontext() as context:
        context.prec = 100
        exact = _official(text) * 10**power
        want = int(exact.to_integral_value(rounding=ROUND_UP))
    convert = to_milli if power else to_units
    assert convert(text) == max(-LIMIT, min(LIMIT, want))


@SETTINGS
@given(st.text(alphabet="0123456789.+-eEinumkKMGTP _N", max_size=8))
def test_any_text_is_a_number_or_an_error_and_never_more_than_the_limit(text: str) -> None:
    try:
        amount = to_units(text)
    except QuantityError:
        return
    assert -LIMIT <= amount <= LIMIT
    with localcontext() as context:
        context.prec = 100
        _official(text)  # what we take, the official client takes


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("amd.com/gpu", True),
        ("cpu", False),
        ("memory", False),
        ("hugepages-2Mi", False),
        ("ephemeral-storage", False),
        ("requests.nvidia.com/gpu", False),
        ("kubernetes.io/batch-cpu", False),
        ("node.kubernetes.io/thing", False),
    ],
)
def test_which_names_are_devices(name: str, want: bool) -> None:
    assert is_device(name) is want


def test_each_name_has_its_unit() -> None:
    given = {"cpu": "1500m", "memory": "1Ki", "pods": "110", GPU: "8", "nvidia.com/mig-1g.10gb": "7"}
    want = {"cpu": 1500, "memory": 1024, "pods": 110, GPU: 8, "nvidia.com/mig-1g.10gb": 7}
    assert parse_amounts(given, field="x") == want
    assert parse_amounts(None, field="x") == {}
    assert parse_amount("cpu", "0.1") == 100


@pytest.mark.parametrize("junk", ["NaN", "1_000", "0.5", "1 Gi", "", "Infinity", "+", "1e", "٣", None, True])
def test_a_node_with_a_junk_quantity_names_node_and_field(junk: object) -> None:
    with pytest.raises(InputError, match=r"node n1: status\.allocatable\[nvidia\.com/gpu\]"):
        node_of(make_node("n1").allocatable({GPU: junk}))


def test_capacity_is_checked_too() -> None:
    with pytest.raises(InputError, match=r"node n1: status\.capacity\[cpu\]"):
        node_of(make_node("n1").set("status.capacity", {"cpu": "many"}))


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        pytest.param(
            make_pod("p").requests({GPU: "0.5"}),
            r"spec\.containers\[0\]\.resources\.requests\[nvidia\.com/gpu\]",
            id="half a device requested",
        ),
        pytest.param(
            make_pod("p").limits({"memory": "1 Gi"}),
            r"spec\.containers\[0\]\.resources\.limits\[memory\]",
            id="blank in a limit",
        ),
        pytest.param(
            make_pod("p").container({}).container({"cpu": "NaN"}),
            r"spec\.containers\[2\]\.resources\.requests\[cpu\]",
            id="third container",
        ),
        pytest.param(
            make_pod("p").init({"cpu": "1_000"}),
            r"spec\.initContainers\[0\]\.resources\.requests\[cpu\]",
            id="init container",
        ),
        pytest.param(make_pod("p").overhead({"cpu": "+"}), r"spec\.overhead\[cpu\]", id="overhead"),
        pytest.param(
            make_pod("p").pod_level({"memory": "1e"}), r"spec\.resources\.requests\[memory\]", id="pod level"
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "-1"}),
            r"spec\.containers\[0\]\.resources\.requests\[cpu\]: must not be negative",
            id="negative request",
        ),
        pytest.param(
            make_pod("p").set("spec.containers", [{"resources": {"requests": ["cpu"]}}]),
            r"spec\.containers\[0\]\.resources",
            id="requests that are a list",
        ),
    ],
)
def test_a_pod_with_a_junk_quantity_names_pod_and_field(pod: object, field: str) -> None:
    with pytest.raises(InputError, match=rf"pod default/p: {field}"):
        pod_of(pod)  # type: ignore[arg-type]
