# SPDX-License-Identifier: Apache-2.0
"""Effective requests of a pod, as Kubernetes computes them (component-helpers `resource.PodRequests`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import GPU, PodBuilder, make_pod, pod_of

MIB = 1 << 20
MIG = "nvidia.com/mig-1g.10gb"


def requests_of(pod: PodBuilder) -> dict[str, int]:
    return dict(pod_of(pod).template.requests)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod("p"), {"pods": 1}, id="a pod that requests nothing still takes a pod slot"),
        pytest.param(
            make_pod("p").requests({"cpu": "1", GPU: "2"}).container({"cpu": "500m", GPU: "1"}),
            {"cpu": 1500, GPU: 3},
            id="containers add up",
        ),
        pytest.param(make_pod("p").gpus(0).cpu("0"), {}, id="zero is not a request"),
        pytest.param(make_pod("p").limits({GPU: "4"}), {GPU: 4}, id="a limit alone is also the request"),
        pytest.param(
            make_pod("p").limits({"cpu": "4", "memory": "8Mi"}).requests({"cpu": "1"}),
            {"cpu": 1000, "memory": 8 * MIB},
            id="a request wins over its limit, name by name",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "0"}).limits({"cpu": "4"}),
            {},
            id="a request of zero wins over its limit too",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).init({"cpu": "3", GPU: "1"}),
            {"cpu": 3000, GPU: 1},
            id="an init container raises the request where it asks for more",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).init({"cpu": "2"}).init({"cpu": "3"}),
            {"cpu": 3000},
            id="init containers run one by one: the largest counts",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).init({"cpu": "500m"}),
            {"cpu": 1000},
            id="a small init container costs nothing",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).sidecar({"cpu": "2"}),
            {"cpu": 3000},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).sidecar({"cpu": "2"}).init({"cpu": "5"}),
            {"cpu": 7000},
            id="an init container runs beside the sidecars started before it",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).init({"cpu": "5"}).sidecar({"cpu": "2"}),
            {"cpu": 5000},
            id="but not beside those started after it",
        ),
        pytest.param(
            make_pod("p").sidecar({GPU: "1"}).init({GPU: "2"}).sidecar({GPU: "4"}).init({GPU: "1"}),
            {GPU: 6},
            id="order decides: 1, 1+2, 1+4, 1+4+1",
        ),
        pytest.param(
            make_pod("p").init({}, limits={GPU: "2"}), {GPU: 2}, id="limits stand for requests in init too"
        ),
        pytest.param(
            make_pod("p")
            .requests({"cpu": "1"})
            .init({"cpu": "3"})
            .overhead({"cpu": "250m", "memory": "1Mi"}),
            {"cpu": 3250, "memory": MIB},
            id="overhead comes on top of the peak",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1", GPU: "2"}).pod_level({"cpu": "4", "memory": "2Mi"}),
            {"cpu": 4000, "memory": 2 * MIB, GPU: 2},
            id="pod-level requests replace the sum of the containers",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "4"}).pod_level({"cpu": "1"}),
            {"cpu": 1000},
            id="also when they are less",
        ),
        pytest.param(
            make_pod("p").requests({GPU: "2"}).pod_level({GPU: "5"}),
            {GPU: 2},
            id="devices have no pod level",
        ),
        pytest.param(
            make_pod("p").pod_level({"hugepages-2Mi": "4Mi"}),
            {"hugepages-2Mi": 4 * MIB},
            id="huge pages have",
        ),
        pytest.param(
            make_pod("p").pod_level({}, limits={"cpu": "4"}),
            {"cpu": 4000},
            id="a pod-level limit is the request when nobody says otherwise",
        ),
        pytest.param(
            make_pod("p").requests({"cpu": "1"}).pod_level({}, limits={"cpu": "4"}),
            {"cpu": 1000},
            id="but the containers' sum comes before it",
        ),
        pytest.param(
            make_pod("p").pod_level({"cpu": "2"}).overhead({"cpu": "1"}),
            {"cpu": 3000},
            id="overhead comes on top of the pod level too",
        ),
        pytest.param(
            make_pod("p").gpus(1).container({MIG: "2"}).container({"amd.com/gpu": "3"}),
            {GPU: 1, MIG: 2, "amd.com/gpu": 3},
            id="every resource name stands for itself",
        ),
        pytest.param(
            make_pod("p").set("spec.containers", [{"resources": None}, {"resources": {"limits": None}}]),
            {},
            id="null counts as absent",
        ),
    ],
)
def test_effective_requests(pod: PodBuilder, want: dict[str, int]) -> None:
    assert requests_of(pod) == {"pods": 1, **want}


def test_equal_shapes_are_one_template_and_one_gpu_more_is_another() -> None:
    one = pod_of(make_pod("a").gpus(1).cpu("1"))
    same = pod_of(make_pod("b").requests({"cpu": "1000m", GPU: "1"}).limits({GPU: "1"}))
    other = pod_of(make_pod("c").gpus(2).cpu("1"))
    assert one.template == same.template
    assert one.template != other.template


# -- the same, said in another way: what runs at once, moment by moment

Amounts = dict[str, int]
MOST = 5
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(0, MOST), max_size=3)


def _quantities(amounts: Amounts) -> dict[str, str]:
    unit = {"cpu": "m", "memory": "Mi", GPU: ""}
    return {name: f"{amount}{unit[name]}" for name, amount in amounts.items()}


def _at_once(containers: Iterable[Amounts]) -> Counter[str]:
    total: Counter[str] = Counter()
    for amounts in containers:
        total.update(amounts)
    return total


def _stated_anew(
    containers: list[Amounts], inits: list[tuple[bool, Amounts]], level: Amounts, overhead: Amounts
) -> Amounts:
    moments = []
    for index, (_, amounts) in enumerate(inits):
        earlier_sidecars = [other for restartable, other in inits[:index] if restartable]
        moments.append(_at_once([*earlier_sidecars, amounts]))
    moments.append(_at_once([*containers, *(amounts for restartable, amounts in inits if restartable)]))
    names = {name for moment in moments for name in moment} | set(level) | set(overhead)
    peak = {name: max(moment[name] for moment in moments) for name in names}
    peak |= {name: amount for name, amount in level.items() if name != GPU}
    factor = {"memory": MIB}
    return {
        name: total * factor.get(name, 1) for name in names if (total := peak[name] + overhead.get(name, 0))
    }


@settings(deadline=None, max_examples=150, derandomize=True, database=None)
@given(
    containers=st.lists(AMOUNTS, min_size=1, max_size=3),
    inits=st.lists(st.tuples(st.booleans(), AMOUNTS), max_size=5),
    level=AMOUNTS,
    overhead=AMOUNTS,
)
def test_agrees_with_what_runs_at_once(
    containers: list[Amounts], inits: list[tuple[bool, Amounts]], level: Amounts, overhead: Amounts
) -> None:
    pod = make_pod("p").requests(_quantities(containers[0]))
    for amounts in containers[1:]:
        pod = pod.container(_quantities(amounts))
    for restartable, amounts in inits:
        pod = (pod.sidecar if restartable else pod.init)(_quantities(amounts))
    pod = pod.pod_level(_quantities(level)).overhead(_quantities(overhead))
    assert requests_of(pod) == {"pods": 1, **_stated_anew(containers, inits, level, overhead)}
