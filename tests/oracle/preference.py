"""Check that the chosen alternatives of `firstAvailable` are the first ones that fit.

A valid allocation need not be, so this is told apart from what is wrong (KEP-4816 asks for the
first that can be satisfied). Nor is that of the reference always: it fixes the devices of one
request before it tries the alternatives of the next; other devices might let an earlier one fit.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.oracle import asked, reference, scenarios

Raw = dict[str, Any]


def is_first(
    world: scenarios.World, node: str, allocations: Sequence[Raw], judge: reference.Reference
) -> bool:
    """Return whether no request has an earlier alternative that fits, given earlier choices."""
    claims = copy.deepcopy(list(world.claims))
    one_node = {node: world.cluster.nodes[node]}
    cluster = replace(world.cluster, nodes=one_node)
    for request, index in _choices(claims, allocations):
        every = request["firstAvailable"]
        if index > 0:
            request["firstAvailable"] = every[:index]
            if judge.answers(scenarios.World(cluster, tuple(claims))).fitting:
                return False
        request["firstAvailable"] = [every[index]]
    return True


def _choices(claims: Sequence[Raw], allocations: Sequence[Raw]) -> list[tuple[Raw, int]]:
    """The requests with alternatives, in order, and which one each got."""
    return [
        (chosen.request, chosen.index)
        for claim, allocation in zip(claims, allocations, strict=True)
        for chosen in asked.read(claim, allocation)[0]
        if "firstAvailable" in chosen.request
    ]
