"""Invariants of deciding, on random clusters (docs/explanation/invariants.md)."""

from hypothesis import given
from hypothesis import strategies as st

from driver.controller import view as cluster
from driver.controller.allocation import allocate, outcome
from driver.resources import claims
from tests import objects, worlds

sizes = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 4), max_size=4)
demands = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), max_size=8)


def decide(
    view: cluster.ClusterView, number: int, counts: list[int]
) -> outcome.Placement | outcome.NoFit:
    found = tuple(
        objects.claim(f"claim-{number}-{index}", objects.a_request(count=count))
        for index, count in enumerate(counts)
    )
    pod = objects.pod(f"pod-{number}", *(claim.name for claim in found))
    return allocate.allocate(view, outcome.Workload(pod, found), worlds.DECIDING)


def holding(name: str, placement: outcome.Placement) -> list[claims.Claim]:
    by_claim: dict[str, list[str]] = {}
    for pick in placement.picks:
        by_claim.setdefault(f"{name}-{pick.claim}", []).append(pick.device.device)
    return [worlds.holding(claim, placement.node, *found) for claim, found in by_claim.items()]


@given(sizes, demands)
def test_no_device_is_given_twice(fleet: dict[str, int], asked: list[list[int]]) -> None:
    held: list[claims.Claim] = []
    for number, counts in enumerate(asked):
        answer = decide(worlds.fleet(fleet, *held), number, counts)
        if isinstance(answer, outcome.Placement):
            held.extend(holding(f"claim-{number}", answer))
    devices = [r.device for one in held if one.allocation for r in one.allocation.results]
    assert len(devices) == len(set(devices))
    assert all(int(device.device.removeprefix("gpu-")) < fleet[device.pool] for device in devices)


@given(sizes, demands)
def test_a_pod_is_placed_exactly_when_some_node_has_enough_free(
    fleet: dict[str, int], asked: list[list[int]]
) -> None:
    """The brute-force oracle: plain counting, since every GPU is alike here."""
    free = dict(fleet)
    held: list[claims.Claim] = []
    for number, counts in enumerate(asked):
        answer = decide(worlds.fleet(fleet, *held), number, counts)
        fits = any(count >= sum(counts) for count in free.values())
        assert isinstance(answer, outcome.Placement) is fits
        if isinstance(answer, outcome.Placement):
            free[answer.node] -= sum(counts)
            held.extend(holding(f"claim-{number}", answer))


@given(sizes, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.randoms())
def test_equal_views_give_equal_answers(
    fleet: dict[str, int], counts: list[int], order: st.DrawFn
) -> None:
    shuffled = list(fleet.items())
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    first = decide(worlds.fleet(fleet), 0, counts)
    assert decide(worlds.fleet(dict(shuffled)), 0, counts) == first
