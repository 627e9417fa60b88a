# SPDX-License-Identifier: Apache-2.0
"""An independent judge of plans: whether one is allowed, and what could be seated by trying everything."""

from __future__ import annotations

from collections import Counter
from functools import cache

from app.domain.node import Node
from app.domain.plan import Demand, Plan
from app.inventory.inventory import Inventory
from app.matching.nodes import admits
from tests.builders import NodeBuilder, PodBuilder, inventory_of, node_of, pod_of

Free = dict[str, dict[str, int]]


class Cluster:
    """Nodes and the pods bound to them, with free amounts counted in plain Python."""

    def __init__(self, nodes: list[NodeBuilder], pods: list[PodBuilder] | None = None) -> None:
        self.builders = [*nodes, *(pods or [])]
        self.nodes: dict[str, Node] = {node.name: node for node in map(node_of, nodes)}
        self.free: Free = {name: dict(node.allocatable) for name, node in self.nodes.items()}
        for pod in map(pod_of, pods or []):
            assert pod.node is not None
            for name, amount in pod.template.requests:
                free = self.free[pod.node]
                free[name] = free.get(name, 0) - amount

    def inventory(self) -> Inventory:
        """The same cluster as Muster sees it."""
        return inventory_of(*self.builders)

    def room(self, demand: Demand, node: str) -> int:
        """How many of the first member fit on a node (all members being alike)."""
        template = demand.members[0].template
        if not admits(template, self.nodes[node]):
            return 0
        return max(0, min(self.free[node].get(name, 0) // amount for name, amount in template.requests))

    def check(self, demand: Demand, plan: Plan) -> None:
        """Fails unless the plan is one that could be carried out."""
        members = {member.uid: member.template for member in demand.members}
        assert plan.gang == demand.gang
        assert len(plan.seats) >= demand.need
        assert len({seat.uid for seat in plan.seats}) == len(plan.seats), "one seat each"
        taken: Counter[tuple[str, str]] = Counter()
        for seat in plan.seats:
            assert seat.template == members[seat.uid]
            assert admits(seat.template, self.nodes[seat.node]), f"{seat.node} does not admit {seat.uid}"
            taken.update({(seat.node, name): amount for name, amount in seat.template.requests})
        for (node, name), amount in taken.items():
            assert amount <= self.free[node].get(name, 0), f"{node} has too little {name}"

    def most(self, demand: Demand) -> int:
        """The largest number of members that can be seated together, by trying everything."""
        nodes = list(self.nodes)
        names = sorted({name for member in demand.members for name, _ in member.template.requests})
        asks = [tuple(dict(m.template.requests).get(name, 0) for name in names) for m in demand.members]
        may = [[admits(m.template, self.nodes[node]) for node in nodes] for m in demand.members]
        start = tuple(tuple(self.free[node].get(name, 0) for name in names) for node in nodes)

        @cache
        def best(index: int, free: tuple[tuple[int, ...], ...]) -> int:
            if index == len(asks):
                return 0
            found = best(index + 1, free)
            for row, here in enumerate(free):
                left = tuple(have - ask for have, ask in zip(here, asks[index], strict=True))
                if may[index][row] and all(
                    rest >= 0 or not ask for rest, ask in zip(left, asks[index], strict=True)
                ):
                    found = max(found, 1 + best(index + 1, (*free[:row], left, *free[row + 1 :])))
            return found

        return best(0, start)
