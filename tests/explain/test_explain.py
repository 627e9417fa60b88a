# SPDX-License-Identifier: Apache-2.0
"""From objects to a verdict: one sentence, its code, its exit."""

from __future__ import annotations

import pytest

from app.domain.errors import InputError
from app.explain.explain import explain
from app.explain.facts import Unseen
from app.explain.report import Outcome, Report, Subject
from tests.builders import Builder, make_group, make_node, make_pod
from tests.explain.looking import facts

NODE = make_node("n1").gpus(8)
OTHERS = make_pod("w0").gpus(4).set("spec.schedulerName", "default-scheduler")


def report(what: str, *objects: Builder) -> Report:
    kind, _, name = what.partition("/")
    return explain(facts(*objects), Subject(kind, "default", name))


@pytest.mark.parametrize(
    ("objects", "what", "code", "sentence"),
    [
        (
            (NODE, OTHERS),
            "pod/w0",
            Outcome.FITS,
            "pod default/w0 fits now: seats for 1 of 1 waiting pods on 1 nodes;"
            " default-scheduler has not placed it yet",
        ),
        (
            (NODE, OTHERS, OTHERS.named("x").gpus(6).on("n1")),
            "pod/w0",
            Outcome.BUSY,
            "pod default/w0 waits: 2 of 8 nvidia.com/gpu free; pod default/x holds 6",
        ),
        (
            (NODE, OTHERS.gpus(16)),
            "pod/w0",
            Outcome.NEVER_FITS,
            "pod default/w0 waits: a member requests 16 and the largest node has 8",
        ),
        (
            (NODE, OTHERS.on("n1")),
            "pod/w0",
            Outcome.RUNS,
            "pod default/w0 is on node n1; its phase is Running",
        ),
        (
            (NODE, make_group("g", 2)),
            "podgroup/g",
            Outcome.BLOCKED,
            "podgroup default/g has no pods",
        ),
    ],
)
def test_verdict(objects: tuple[Builder, ...], what: str, code: Outcome, sentence: str) -> None:
    found = report(what, *objects).verdict
    assert (found.code, found.sentence) == (code, sentence)


def test_what_is_not_there_is_an_error_that_says_whether_it_was_looked_for() -> None:
    with pytest.raises(InputError, match="there is no pod default/gone; check the name"):
        report("pod/gone", NODE)
    with pytest.raises(InputError, match="namespace default was not read"):
        explain(facts(NODE, namespaces=("a",)), Subject("pod", "default", "gone"))
    with pytest.raises(InputError, match=r"Job\.batch was not read: forbidden"):
        explain(facts(NODE, unseen=(Unseen("Job.batch", "forbidden"),)), Subject("job", "default", "j"))


def test_what_was_not_read_limits_the_verdict() -> None:
    limited = explain(facts(NODE, OTHERS, namespaces=("default",)), Subject("pod", "default", "w0"))
    assert limited.unseen == (
        "pods of the namespaces default alone were read: what is free is an upper bound",
    )
