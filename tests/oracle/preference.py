"""Whether the alternatives of `firstAvailable` that were chosen are the first ones that fit.

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
    """For no request an earlier alternative would do, given what earlier requests chose."""
    claims = copy.deepcopy(list(world.claims))
    for claim, allocation in zip(claims, allocations, strict=True):
        chosen = {one.request["name"]: one.index for one in asked.read(claim, allocation)[0]}
        for request in claim["spec"]["devices"]["requests"]:
            every, index = request.get("firstAvailable", ()), chosen[request["name"]]
            if index > 0:
                request["firstAvailable"] = every[:index]
                one_node = {node: world.cluster.nodes[node]}
                better = scenarios.World(replace(world.cluster, nodes=one_node), tuple(claims))
                if judge.answers(better).fitting:
                    return False
            if every:
                request["firstAvailable"] = [every[index]]
    return True
