"""Our allocator through the adapter of the comparison.

DIFFERENTIAL_SEEDS says on how many random worlds (`make differential` compares more, and shrinks
what it finds).
"""

import os
from typing import Any

import pytest

from tests.oracle import differential, draw_claims, draw_slices, ours, scenarios
from tests.support.builders import objects

Raw = dict[str, Any]
GPU = draw_slices.DRIVERS[0]
SEEDS = int(os.environ.get("DIFFERENTIAL_SEEDS", "2000"))
AGREED = (differential.Kind.AGREE_YES, differential.Kind.AGREE_NO)


def gpus(count: int) -> list[Raw]:
    return [
        {"name": f"gpu-{number}", "attributes": {"index": {"int": number}}}
        for number in range(count)
    ]


def a_claim(name: str, count: int, *texts: str) -> Raw:
    body: Raw = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": count}
    if texts:
        body["selectors"] = [{"cel": {"expression": text}} for text in texts]
    return objects.a_claim(name, {"name": "r0", "exactly": body})


def a_world(*claims: Raw, small: int = 1, large: int = 3) -> scenarios.World:
    published = [
        objects.a_slice("node-a", gpus(small), GPU),
        objects.a_slice("node-b", gpus(large), GPU),
    ]
    nodes: dict[str, scenarios.Labels] = {"node-a": {}, "node-b": {}}
    return scenarios.World(scenarios.Cluster(nodes, published, [draw_claims.a_class(GPU)]), claims)


LAST = f'device.attributes["{GPU}"].index == 2'


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (a_world(a_claim("a", 1)), differential.Kind.AGREE_YES),
        (a_world(a_claim("a", 3)), differential.Kind.AGREE_YES),
        (a_world(a_claim("a", 2), a_claim("b", 1)), differential.Kind.AGREE_YES),
        (a_world(a_claim("a", 1, LAST)), differential.Kind.AGREE_YES),
        (a_world(a_claim("a", 2), a_claim("b", 2)), differential.Kind.AGREE_NO),
        (a_world(a_claim("a", 1, LAST), a_claim("b", 1, LAST)), differential.Kind.AGREE_NO),
        (a_world(a_claim("a", 4)), differential.Kind.AGREE_NO),
    ],
)
def test_plain_gpus_are_given_as_the_reference_gives_them(
    judging: differential.Judges, world: scenarios.World, kind: differential.Kind
) -> None:
    assert differential.again(world, ours.decide, judging).kind is kind


def test_earlier_allocations_are_in_use(judging: differential.Judges) -> None:
    previous = a_world(a_claim("a", 3))
    answer = ours.decide(previous.cluster, previous.claims)
    assert isinstance(answer, tuple)
    held = scenarios.settled(previous.cluster, previous.claims, answer[1])
    for count, kind in (
        (1, differential.Kind.AGREE_YES),
        (2, differential.Kind.AGREE_NO),
    ):
        world = scenarios.World(held, (a_claim("b", count),))
        assert differential.again(world, ours.decide, judging).kind is kind


@pytest.mark.timeout(600)
def test_ours_and_the_reference_agree_on_random_clusters(judging: differential.Judges) -> None:
    tally = differential.run(range(SEEDS), ours.decide, judging)
    assert tally.bad == {}, tally.text()
    assert min(tally.kinds[kind] for kind in AGREED) > SEEDS // 4


@pytest.mark.timeout(600)
def test_the_search_gives_up_on_one_cluster_in_a_thousand_at_most(
    judging: differential.Judges,
) -> None:
    tally = differential.run(range(SEEDS, 2 * SEEDS), ours.within_budget, judging)
    assert tally.bad == {}, tally.text()
    assert tally.kinds[differential.Kind.GAVE_UP] <= SEEDS / 1000
