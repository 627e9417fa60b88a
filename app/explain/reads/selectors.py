# SPDX-License-Identifier: Apache-2.0
"""Read 1, selectors: what the pods select nodes by, and which part of it no node answers to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from app.domain.node import Node
from app.domain.placement import Requirement, Template, Term
from app.explain.case import Case
from app.explain.finding import Evidence, Hit, Read, Topic, Weight, finding, hit
from app.explain.pool import Pool
from app.explain.words import count, listed
from app.matching.nodes import selected


@finding(
    "SelectorMatchesNothing",
    read=Read.DEVICES,
    weight=Weight.BLOCKS,
    sentence="no node with {name} is what the pods select, {what}: {why}",
    meaning=(
        "`nodeSelector` or required node affinity matches no node that has what the pods ask for, whatever is"
        " free. Mostly a value is misspelled, a product was renamed, or the nodes were never labelled."
    ),
    confirm=("kubectl get nodes -L {key}",),
    decide=("correct the selector or the affinity", "label the nodes, or add nodes of this kind"),
)
def selector_matches_nothing(case: Case) -> Iterable[Hit]:
    """Per resource: no node that has it is selected."""
    for pool in case.pools:
        if selects_none(case, pool):
            there = [node for row in pool.kept if (node := case.inventory.nodes.get(int(row))) is not None]
            unmet = [one for one in _parts(pool.template) if not any(_met(one, node) for node in there)]
            key = _only(unmet[0]).key if unmet and unmet[0].labels else "kubernetes.io/hostname"
            yield hit(
                Evidence(
                    count(len(there), "node"), f".metadata.labels['{key}']", _values(key, there, most=10)
                ),
                name=pool.name,
                what=choice(pool.template),
                why="; ".join(_lacking(one, there) for one in unmet[:2]) or "none answers to all of it",
                key=key,
            )


def selects_none(case: Case, pool: Pool) -> bool:
    """Whether there are nodes with the resource, and none is selected, whatever its taints."""
    why = case.barred[pool.name]
    return bool(why) and not pool.usable.any() and all(one is None for one in why.values())


def choice(template: Template) -> str:
    """What a template selects nodes by, in a few words; the terms of an affinity are alternatives."""
    pairs = [f"{key}={value}" for key, value in template.selector]
    terms = [" and ".join(map(_words, (*t.labels, *t.fields))) for t in template.affinity or ()]
    return " and ".join([*pairs, *([" or ".join(terms[:3])] if terms else [])]) or "an affinity without terms"


def _parts(template: Template) -> list[Term]:
    """All that is asked of a node, each part as a term of its own."""
    pairs = [Term(labels=(Requirement(key, "In", (value,)),)) for key, value in template.selector]
    labels = [Term(labels=(one,)) for term in template.affinity or () for one in term.labels]
    return pairs + labels + [Term(fields=(one,)) for term in template.affinity or () for one in term.fields]


def _only(term: Term) -> Requirement:
    return (*term.labels, *term.fields)[0]


def _met(part: Term, node: Node) -> bool:
    return selected(Template(requests=(), affinity=(part,)), node.name, node.labels)


def _words(one: Requirement) -> str:
    values = "|".join(one.values[:3]) + ("|..." if len(one.values) > 3 else "")
    return f"{one.key}={values}" if one.operator == "In" else f"{one.key} {one.operator} {values}".rstrip()


def _lacking(part: Term, there: Sequence[Node]) -> str:
    """What the nodes have instead."""
    one = _only(part)
    if part.fields:
        return f"none is {_words(one)}"
    if all(one.key not in node.labels for node in there):
        return f"none has the label {one.key}"
    return f"none has {_words(one)}, there it is {_values(one.key, there, most=3)}"


def _values(key: str, there: Sequence[Node], *, most: int) -> str:
    """The values of a label and how many nodes have each."""
    counts = Counter(node.labels.get(key) for node in there)
    counts.pop(None, None)
    found = [
        f"{value} ({count(number, 'node')})"
        for value, number in sorted(counts.items(), key=lambda i: (-i[1], i[0]))
    ]
    return listed(found, most=most) or "absent"


FINDINGS: Final[tuple[Topic[Case], ...]] = (selector_matches_nothing,)
