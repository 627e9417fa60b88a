# SPDX-License-Identifier: Apache-2.0
"""Read 3, the scheduler's configuration: what in it breaks or weakens the guarantee for pods of Muster.

The checks are those of `muster check-config`. Silent where no configuration is known, and for pods of others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from app.explain.case import Case
from app.explain.config import CHECKS
from app.explain.config.configuration import Configuration
from app.explain.config.profiles import no_profile
from app.explain.finding import Hit, Topic, Weight


def _for_a_case(check: Topic[Configuration]) -> Topic[Case]:
    """The same topic, looked for in the configuration that is known."""

    def look(case: Case) -> Iterable[Hit]:
        config = case.facts.config
        if config is None or config.muster.scheduler not in case.schedulers:
            return
        for found in check.look(config):
            weight = found.weight or check.weight
            if weight in (Weight.BLOCKS, Weight.WARNS):
                yield msgspec.structs.replace(found, weight=_weight(check, weight))

    return Topic(
        check.code,
        check.read,
        check.weight,
        check.sentence,
        check.meaning,
        check.confirm,
        check.decide,
        look,
    )


def _weight(check: Topic[Configuration], weight: Weight) -> Weight:
    """What breaks the guarantee need not keep these pods from starting; what is served by nobody does."""
    return weight if check.code == no_profile.code else Weight.WARNS


FINDINGS: Final[tuple[Topic[Case], ...]] = tuple(map(_for_a_case, CHECKS))
