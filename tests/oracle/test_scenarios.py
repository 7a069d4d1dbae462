"""The drawn worlds are legal, always the same, and have every feature in them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle import admission, oracle, reference, scenarios

SEEDS = range(400)
WORDS = (
    '"allocationMode": "All"',
    "firstAvailable",
    "matchAttribute",
    "distinctAttribute",
    '"requests": ["r0/s0"]',
    "adminAccess",
    "allowMultipleAllocations",
    "validValues",
    '"step"',
    '"max"',
    "consumesCounters",
    "sharedCounters",
    "bindingConditions",
    "bindsToNode",
    "perDeviceNodeSelection",
    '"allNodes": true',
    "matchFields",
    "matchExpressions",
    '"operator": "Exists"}',
    "tolerationSeconds",
    "NoExecute",
    '"effect": "None"',
    "DeviceTaintRule",
    '"ints"',
    '"opaque"',
    '"old-0"',
    "wings",
    '"shareID"',
    '"consumedCapacity"',
)


@pytest.fixture(scope="module")
def running(built: Path) -> Iterator[reference.Reference]:
    with reference.Reference(built) as result:
        yield result


def test_a_seed_gives_the_same_world_every_time(running: reference.Reference) -> None:
    for seed in range(50):
        first, _ = running.play(scenarios.draft(seed))
        second, _ = running.play(scenarios.draft(seed))
        assert first == second


def test_drawn_objects_are_valid_for_the_api_server(running: reference.Reference) -> None:
    for seed in SEEDS:
        world, _ = running.play(scenarios.draft(seed))
        assert admission.problems(world) == [], seed


def test_about_half_of_the_worlds_fit(running: reference.Reference) -> None:
    fitting = sum(bool(running.play(scenarios.draft(seed))[1].fitting) for seed in SEEDS)
    assert 0.4 < fitting / len(SEEDS) < 0.6


def test_every_feature_is_drawn(running: reference.Reference) -> None:
    drawn: Counter[str] = Counter()
    for seed in SEEDS:
        world, _ = running.play(scenarios.draft(seed))
        cluster = world.cluster
        text = json.dumps([cluster.slices, cluster.rules, cluster.allocated, world.claims])
        drawn.update(word for word in WORDS if word in text)


def test_a_cluster_asked_at_once_answers_as_its_nodes_do_one_by_one(
    running: reference.Reference, running_oracle: oracle.Oracle
) -> None:
    for seed in range(60):
        world, answers = running.play(scenarios.draft(seed))
        for node, answer in answers.nodes.items():
            if isinstance(answer, oracle.OracleError):
                continue
            alone = running_oracle.allocate(world.cluster.scenario(world.claims, node))
            assert type(alone) is type(answer), seed


def the_pools(cluster: scenarios.Cluster) -> dict[tuple[str, str], list[Any]]:
    result: dict[tuple[str, str], list[Any]] = {}
    for slice_ in cluster.slices:
        key = (slice_["spec"]["driver"], slice_["spec"]["pool"]["name"])
        result.setdefault(key, []).append(slice_["spec"])
    return result


def test_some_pools_share_their_name_and_some_are_not_usable() -> None:
    named, short, stale = 0, 0, 0
    for seed in SEEDS:
        pools = the_pools(scenarios.draft(seed).cluster)
        named += len({name for _, name in pools}) < len(pools)
        for parts in pools.values():
            newest = max(part["pool"]["generation"] for part in parts)
            retained = [part for part in parts if part["pool"]["generation"] == newest]
            stale += len(retained) < len(parts)
            short += len(retained) != retained[0]["pool"]["resourceSliceCount"]
    assert min(named, short, stale) > 5
