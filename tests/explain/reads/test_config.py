# SPDX-License-Identifier: Apache-2.0
"""Read 3: the checks of the scheduler's configuration, as far as they matter for a pod or a gang."""

from __future__ import annotations

from app.explain.explain import explain
from app.explain.finding import Read, Weight
from app.explain.reads import FINDINGS as ALL
from app.explain.reads.config import FINDINGS
from app.explain.report import Outcome, Subject
from tests.builders import make_node, make_pod
from tests.explain.config.looking import configuration, shipped
from tests.explain.looking import case, facts

POD = make_pod("w0").gpus(1)
NODE = make_node("n1").gpus(8)


def told(what: str, *objects: object, **more: object) -> list[tuple[str, Weight]]:
    one = case(what, *objects, **more)  # type: ignore[arg-type]
    return [(finding.code, finding.weight) for topic in FINDINGS for finding in topic(one)]


def test_what_breaks_the_guarantee_warns_a_pod_and_notes_are_left_out() -> None:
    raw = {**shipped(), "parallelism": 4, "percentageOfNodesToScore": 100}
    raw["extenders"][1]["ignorable"] = True
    assert told("pod/w0", POD, NODE, config=configuration(raw)) == [
        ("Ignorable", Weight.WARNS),
        ("AllNodes", Weight.WARNS),
    ]


def test_nothing_is_told_without_a_configuration_or_to_pods_of_others() -> None:
    raw = {**shipped(), "extenders": []}
    other = make_pod("w1").scheduler("default-scheduler")
    assert told("pod/w0", POD, NODE) == []
    assert told("pod/w1", other, NODE, config=configuration(raw)) == []
    assert told("pod/w0", POD, NODE, config=configuration(raw)) == [("NoExtender", Weight.WARNS)]


def test_a_pod_whose_scheduler_has_no_profile_is_blocked() -> None:
    raw = {**shipped(), "profiles": [{"schedulerName": "gpus"}]}
    report = explain(facts(POD, NODE, config=configuration(raw)), Subject("pod", "default", "w0"))
    assert report.verdict.code is Outcome.BLOCKED
    assert report.verdict.sentence == (
        "pod default/w0 does not start: no profile has schedulerName muster (there is gpus): pods that ask"
        " for it are never tried"
    )
    section = list(Read).index(Read.GROUP)
    assert "NoProfile" in [finding.code for finding in report.sections[section].findings]


def test_every_code_is_used_once_because_it_names_a_page() -> None:
    codes = [topic.code for topic in ALL]
    assert len(codes) == len(set(codes))
