"""Tests that the reference's remaining counters equal plain counting and its allocator's answer."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.oracle import amounts, draw_groups, inventory, oracle, reference, scenarios, validity

SEEDS = range(300)


@pytest.fixture(scope="module")
def running(built: Path) -> Iterator[reference.Reference]:
    with reference.Reference(built) as result:
        yield result


@pytest.fixture(scope="module")
def ledger(built: Path) -> Iterator[reference.Ledger]:
    with reference.Ledger(built) as result:
        yield result


def after(seed: int, running: reference.Reference) -> scenarios.Cluster:
    """A world once its claims are allocated too, where they fit.

    Without compatibility groups: the device that tries what is left has none.
    """
    draft = scenarios.draft(seed)
    for use in draw_groups.counter_uses(draft.cluster.slices):
        use.pop("compatibilityGroups", None)
    world, answers = running.play(draft)
    for allocations in answers.fitting.values():
        return scenarios.settled(world.cluster, world.claims, allocations)
    return world.cluster


def results(cluster: scenarios.Cluster) -> list[scenarios.Raw]:
    return [
        result
        for claim in cluster.allocated
        for result in claim["status"]["allocation"]["devices"]["results"]
        if not result.get("adminAccess")
    ]


def test_devices_and_shares_in_use_are_those_of_the_allocations(
    running: reference.Reference, ledger: reference.Ledger
) -> None:
    shares = 0
    for seed in SEEDS:
        cluster = after(seed, running)
        left = ledger.remains(cluster)
        taken: set[str] = set()
        sums: dict[str, dict[str, Fraction]] = {}
        for result in results(cluster):
            name = f"{result['driver']}/{result['pool']}/{result['device']}"
            if "shareID" not in result:
                taken.add(name)
                continue
            used = sums.setdefault(name, {})
            for key, text in result.get("consumedCapacity", {}).items():
                used[key] = used.get(key, Fraction(0)) + amounts.number(text)
        assert left.taken == taken
        assert {
            name: {key: amounts.number(text) for key, text in used.items()}
            for name, used in left.consumed.items()
        } == sums
        shares += len(sums)
    assert shares > 50


def test_counters_left_are_confirmed_by_the_allocator(
    running: reference.Reference, ledger: reference.Ledger
) -> None:
    partly = 0
    for seed in SEEDS:
        cluster = after(seed, running)
        existing = inventory.Inventory(cluster)
        used = {(result["driver"], result["pool"], result["device"]) for result in results(cluster)}
        counted = ledger.remains(cluster).counters
        for pool in existing.pools.values():
            if pool.why_not or not pool.sets:
                continue
            ours = validity.counters_left(existing, pool, used)
            theirs = counted[f"{pool.driver}/{pool.name}"]
            assert {
                (name, key): amounts.number(text)
                for name, counters in theirs.items()
                for key, text in counters.items()
            } == ours
            full = validity.counters_left(existing, pool, set())
            partly += ours != full
    assert partly > 50


def test_the_program_names_what_is_wrong_with_a_question(ledger: reference.Ledger) -> None:
    broken = scenarios.Cluster(nodes={}, slices=[{"spec": {"pools": 1}}], classes=())
    with pytest.raises(oracle.OracleError) as raised:
        ledger.remains(broken)
    assert raised.value.where == "slices[0]"
