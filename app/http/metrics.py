# SPDX-License-Identifier: Apache-2.0
"""Every metric Muster exports, in one place. No label ever carries a pod, node or gang name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.extender.service import Service
from app.extender.states import Tally
from app.http.stalls import Stalls

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0)


class _State(Collector):
    """Read from the inventory at scrape time: nothing is counted twice, nothing can drift."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._gangs = Tally(service.inventory)

    def collect(self) -> Iterable[Metric]:
        service = self._service
        inventory = service.inventory
        gangs = GaugeMetricFamily("muster_gangs", "Gangs by state.", labels=["state"])
        for state, count in sorted(self._gangs.count().items()):
            gangs.add_metric([str(state)], count)
        yield gangs
        yield GaugeMetricFamily(
            "muster_ready", "1 when the cache is complete and fresh.", value=service.ready
        )
        yield GaugeMetricFamily(
            "muster_active", "1 when this replica plans and writes.", value=service.active
        )
        if service.burst is not None:
            yield GaugeMetricFamily(
                "muster_burst",
                "1 while new members are created without the gate.",
                value=bool(service.burst.told),
            )
        yield GaugeMetricFamily("muster_reserved_seats", "Seats set aside.", value=len(inventory.book))
        yield GaugeMetricFamily(
            "muster_held_binds", "Bind calls at the barrier.", value=len(service.bind.barrier)
        )
        yield GaugeMetricFamily("muster_pods", "Pods in the cache.", value=len(inventory.pods))
        yield GaugeMetricFamily("muster_nodes", "Node names in the cache.", value=len(inventory.names))


class _Counts(Collector):
    """A counter by one label, kept elsewhere."""

    def __init__(self, name: str, text: str, label: str, read: Callable[[], Mapping[str, int]]) -> None:
        self._name, self._text, self._label, self._read = name, text, label, read

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._text, labels=[self._label])
        for value, count in sorted(self._read().items()):
            family.add_metric([value], count)
        yield family


class Metrics:
    """The registry and what the routes observe."""

    def __init__(self, service: Service) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_State(service))
        self.stalls = Stalls(self.registry)
        self._verbs = Histogram(
            "muster_verb_duration_seconds",
            "Time to answer a call of kube-scheduler; bind includes the time at the barrier.",
            ["verb"],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def live(
        self, *, writes: Callable[[], Mapping[str, int]], events: Callable[[], Mapping[str, int]]
    ) -> None:
        """Export what only a service on a real API has: its writes by kind, and watch events by resource."""
        for name, text, label, read in (
            ("muster_api_writes", "Writes sent to the Kubernetes API.", "kind", writes),
            ("muster_watch_events", "Watch events applied.", "resource", events),
        ):
            self.registry.register(_Counts(name, text, label, read))

    def verb(self, name: str) -> Callable[[float], None]:
        """Takes the seconds of each call of one verb."""
        observe: Callable[[float], None] = self._verbs.labels(name).observe
        return observe

    def render(self) -> bytes:
        """Prometheus text format."""
        return generate_latest(self.registry)
