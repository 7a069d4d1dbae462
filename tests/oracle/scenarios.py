"""Small random clusters with a workload to place, each from a seed: the questions of a comparison.

All features of the language are mixed. Objects are such as the API server accepts (admission.py).
What is in use is no draw: `Draft.earlier` names claims for the reference to allocate first, each
on a node, so that what is allocated is legal.
"""

import random  # noqa: TID251 - the same scenario for the same seed
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracle import draw_claims, draw_groups, draw_slices, oracle

Raw = dict[str, Any]
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Cluster as raw objects of resource.k8s.io/v1; `nodes` maps a name to its labels.

    `allocated` are claims with their `status.allocation`.
    """

    nodes: Mapping[str, Labels]
    slices: Sequence[Raw]
    classes: Sequence[Raw]
    rules: Sequence[Raw] = ()
    allocated: Sequence[Raw] = ()
    features: Mapping[str, bool] = field(default_factory=dict)

    def scenario(self, claims: Sequence[Raw], node: str) -> oracle.Scenario:
        """The question whether the claims fit on one node."""
        return oracle.Scenario(
            slices=self.slices,
            classes=self.classes,
            claims=claims,
            node=node,
            labels=self.nodes[node],
            allocated=self.allocated,
            taint_rules=self.rules,
            features=self.features,
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """A cluster in which nothing is in use yet, who comes first and where, and who comes then."""

    seed: int
    cluster: Cluster
    earlier: tuple[tuple[Raw, str], ...]
    claims: tuple[Raw, ...]


@dataclass(frozen=True, slots=True)
class World:
    """A cluster and the claims of one pod to place in it; all on one node or none."""

    cluster: Cluster
    claims: tuple[Raw, ...]


def draft(seed: int) -> Draft:
    """The same for the same seed, always."""
    chance = random.Random(seed)  # noqa: S311 - a seed, no secret
    lists = chance.random() < 0.25
    crowd = chance.random() < 0.01
    nodes = _nodes(chance)
    fleet = draw_slices.fleet(chance, nodes, lists=lists, crowd=crowd)
    asking = draw_claims.Asking(chance, fleet.drivers, lists=lists, crowd=crowd)
    classes = asking.classes()
    earlier = tuple(
        (asking.claim(f"earlier-{number}", plain=True), chance.choice(list(nodes)))
        for number in range(chance.choice((0, 1, 1, 2, 3, 4)))
    )
    claims = tuple(
        asking.claim(f"claim-{number}") for number in range(chance.choice((1, 1, 1, 1, 2, 2, 3)))
    )
    groups = draw_groups.add_groups(seed, fleet.slices)
    cluster = Cluster(
        nodes=nodes,
        slices=fleet.slices,
        classes=classes,
        rules=draw_slices.rules(chance, fleet),
        features={
            **({"DRAListTypeAttributes": True} if lists else {}),
            **({draw_groups.GATE: True} if groups else {}),
        },
    )
    return Draft(seed, cluster, earlier, claims)


def settled(cluster: Cluster, claims: Sequence[Raw], allocations: Sequence[Raw]) -> Cluster:
    """The cluster once these claims are allocated too."""
    more = tuple(
        {**claim, "status": {"allocation": allocation}}
        for claim, allocation in zip(claims, allocations, strict=True)
    )
    return replace(cluster, allocated=(*cluster.allocated, *more))


def _nodes(chance: random.Random) -> dict[str, Labels]:
    count = chance.choice((1, 1, 2, 2, 3, 3, 4, 6))
    return {
        f"node-{letter}": {
            "kubernetes.io/hostname": f"node-{letter}",
            "rack": chance.choice(("r1", "r2")),
            **({"tier": chance.choice(("1", "5", "9"))} if chance.random() < 0.6 else {}),
        }
        for letter in "abcdef"[:count]
    }
