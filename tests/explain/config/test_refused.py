# SPDX-License-Identifier: Apache-2.0
"""What kube-scheduler would not start with. That it does not is seen in tests/real/test_check_config.py."""

from __future__ import annotations

from typing import Any

import pytest

from app.explain.config.duration import seconds
from app.explain.finding import Evidence
from tests.explain.config.looking import seen, shipped, told, writes

NOT_STARTED = "so kube-scheduler does not start"


def test_the_shipped_configuration_is_clean() -> None:
    assert told(shipped()) == []


def test_a_misspelled_field_is_told_with_the_one_it_stands_for() -> None:
    raw = shipped()
    raw["extenders"][1]["Ignorable"] = raw["extenders"][1].pop("ignorable")
    assert told(raw) == [
        "UnknownField blocks: extenders[1].Ignorable is no field that kube-scheduler knows, so it does not"
        " start; it may stand for ignorable"
    ]
    assert seen(raw) == [Evidence("file", "extenders[1].Ignorable", "false")]
    assert writes(raw) == ["ignorable: false"]


def test_a_field_like_no_other_is_to_be_taken_out() -> None:
    raw = shipped()
    raw["profiles"][0]["plugins"] = {"filter": {"enabled": [{"name": "NodeName", "zzz": {}}]}}
    assert told(raw) == [
        "UnknownField blocks: profiles[0].plugins.filter.enabled[0].zzz is no field that kube-scheduler"
        " knows, so it does not start; no known field is like it"
    ]
    assert writes(raw) == ["nothing: take profiles[0].plugins.filter.enabled[0].zzz out"]


def test_arguments_of_plugins_are_not_looked_into() -> None:
    raw = shipped()
    raw["profiles"][0]["pluginConfig"] = [{"name": "Mine", "args": {"zzz": 1}}]
    assert told(raw) == []


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("ignorable", "false", "boolean"),
        ("weight", 5.5, "integer"),
        ("weight", True, "integer"),
        ("httpTimeout", 5, "duration"),
        ("httpTimeout", "5 s", "duration"),
        ("tlsConfig", [], "map"),
        ("managedResources", {}, "list"),
        ("urlPrefix", 8888, "string"),
    ],
)
def test_a_value_of_another_type_is_told(field: str, value: Any, wanted: str) -> None:
    raw = shipped()
    raw["extenders"][0][field] = value
    assert told(raw)[0] == f"WrongType blocks: extenders[0].{field} is not of type {wanted}, {NOT_STARTED}"


def test_a_value_that_is_null_counts_as_not_set() -> None:
    raw = shipped()
    raw["parallelism"] = None
    assert told(raw) == []


@pytest.mark.parametrize(
    "odd", [{"extenders": 1}, {"extenders": [1]}, {"profiles": "x"}, {"leaderElection": []}]
)
def test_odd_values_never_raise(odd: dict[str, Any]) -> None:
    assert told({**shipped(), **odd})[0].startswith("WrongType blocks: ")


@pytest.mark.parametrize(
    ("change", "where_and_rule"),
    [
        ({"parallelism": 0}, "parallelism must be above 0"),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds must be above 0"),
        (
            {"podInitialBackoffSeconds": 2},
            "podMaxBackoffSeconds must not be below podInitialBackoffSeconds, which is 2",
        ),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore must be from 0 to 100"),
        ({"clientConnection": {"qps": 500, "burst": -1}}, "clientConnection.burst must not be negative"),
    ],
)
def test_numbers_out_of_range(change: dict[str, Any], where_and_rule: str) -> None:
    assert told({**shipped(), **change}) == [f"ValueRefused blocks: {where_and_rule}, {NOT_STARTED}"]


def test_a_share_of_nodes_of_a_profile_out_of_range() -> None:
    raw = shipped()
    raw["profiles"][0]["percentageOfNodesToScore"] = -1
    rule = "profiles[0].percentageOfNodesToScore must be from 0 to 100"
    assert told(raw) == [f"ValueRefused blocks: {rule}, {NOT_STARTED}"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"resourceLock": "endpoints"}, "resourceLock must be leases"),
        ({"leaseDuration": "10s"}, "leaseDuration must be above renewDeadline, which is 10 s"),
        ({"renewDeadline": "1m"}, "leaseDuration must be above renewDeadline, which is 60 s"),
    ],
)
def test_leader_election_that_is_refused(change: dict[str, Any], rule: str) -> None:
    raw = shipped()
    raw["leaderElection"].update(change)
    assert told(raw) == [f"ValueRefused blocks: leaderElection.{rule}, {NOT_STARTED}"]


def test_leader_election_that_is_off_is_not_validated() -> None:
    raw = shipped()
    raw["leaderElection"] = {"leaderElect": False, "leaseDuration": "1s"}
    assert told(raw, elects=False, replicas=1) == []


def test_profiles_without_a_name_and_of_one_name() -> None:
    raw = shipped()
    raw["profiles"] += [{}, {"schedulerName": "muster"}]
    assert told(raw) == [
        "ValueRefused blocks: profiles[1].schedulerName must be set where there are several profiles,"
        f" {NOT_STARTED}",
        "ValueRefused blocks: profiles[2].schedulerName must differ from that of every other profile,"
        f" {NOT_STARTED}",
    ]


def test_a_prioritize_verb_needs_a_weight() -> None:
    raw = shipped()
    del raw["extenders"][0]["weight"]
    assert told(raw) == [
        f"ValueRefused blocks: extenders[0].weight must be above 0 beside a prioritizeVerb, {NOT_STARTED}"
    ]
    assert writes(raw) == ["weight: 5"]


def test_two_binders() -> None:
    raw = shipped()
    raw["extenders"].append({**raw["extenders"][1]})
    assert told(raw) == [
        f"ValueRefused blocks: extenders must hold one bindVerb, in all stanzas together, {NOT_STARTED}"
    ]
    assert seen(raw) == [Evidence("file", "extenders", "bindVerb in extenders[1] and extenders[2]")]


def test_a_managed_resource_that_is_there_twice() -> None:
    raw = shipped()
    for stanza in raw["extenders"]:
        stanza["managedResources"] = [{"name": "nvidia.com/gpu"}]
    assert (
        "ValueRefused blocks: extenders must not name nvidia.com/gpu twice in managedResources,"
        f" {NOT_STARTED}" in told(raw)
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5s", 5), ("1m30s", 90), ("1.5h", 5400), ("-1s", -1), ("250ms", 0.25), ("0", 0), (".5m", 30)],
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5d", "1m 5s", 5, None, "٥s"])
def test_what_is_no_duration(text: object) -> None:
    assert seconds(text) is None
