"""Tests that the reference's remaining counters equal plain counting and its allocator's answer."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from tests.oracle import amounts, inventory, oracle, reference, scenarios, validity

SEEDS = range(300)


@pytest.fixture(scope="module")
def running(built: Path) -> Iterator[reference.Reference]:
    with reference.Reference(built) as found:
        yield found


@pytest.fixture(scope="module")
def ledger(built: Path) -> Iterator[reference.Ledger]:
    with reference.Ledger(built) as found:
        yield found


def after(seed: int, running: reference.Reference) -> scenarios.Cluster:
    """A world once its claims are allocated too, where they fit."""
    world, told = running.play(scenarios.draft(seed))
    for allocations in told.fitting.values():
        return scenarios.settled(world.cluster, world.claims, allocations)
    return world.cluster


def results(cluster: scenarios.Cluster) -> list[scenarios.Raw]:
    return [
        one
        for claim in cluster.allocated
        for one in claim["status"]["allocation"]["devices"]["results"]
        if not one.get("adminAccess")
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
        for one in results(cluster):
            name = f"{one['driver']}/{one['pool']}/{one['device']}"
            if "shareID" not in one:
                taken.add(name)
                continue
            used = sums.setdefault(name, {})
            for key, text in one.get("consumedCapacity", {}).items():
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
        known = inventory.Inventory(cluster)
        used = {(one["driver"], one["pool"], one["device"]) for one in results(cluster)}
        counted = ledger.remains(cluster).counters
        for pool in known.pools.values():
            if pool.why_not or not pool.sets:
                continue
            ours = validity.counters_left(known, pool, used)
            theirs = counted[f"{pool.driver}/{pool.name}"]
            assert {
                (name, key): amounts.number(text)
                for name, counters in theirs.items()
                for key, text in counters.items()
            } == ours
            full = validity.counters_left(known, pool, set())
            partly += ours != full
    assert partly > 50


def test_the_program_names_what_is_wrong_with_a_question(ledger: reference.Ledger) -> None:
    broken = scenarios.Cluster(nodes={}, slices=[{"spec": {"pools": 1}}], classes=())
    with pytest.raises(oracle.OracleError) as told:
        ledger.remains(broken)
    assert told.value.where == "slices[0]"
