from collections.abc import Mapping
from typing import Any

import pytest

from driver import errors, ids, names
from driver.api import managed_drivers
from driver.resources.core import nodes
from driver.resources.dra import slices
from driver.scheduling.device_ownership import desired, rule_plan
from tests.support.builders import objects

DRIVER = "gpu.example.com"
PUBLISHED = (("node-a", "pool-a"), ("node-b", "pool-b"), ("node-b", "pool-c"))


def parse(**entry: Any) -> tuple[desired.ManagedDriver, ...]:
    document = managed_drivers.read({"drivers": [{"name": DRIVER, **entry}]}, "managed.yaml")
    return desired.parse_drivers(document, names.DRIVER, "managed.yaml")


def a_slice(node: str, pool: str, driver: str = DRIVER, **spec: Any) -> slices.Slice:
    raw = objects.a_slice(node, 1, driver, name=pool)
    return slices.parse({**raw, "spec": {**raw["spec"], **spec}})


def node_map(**teams: str) -> Mapping[ids.NodeName, nodes.Node]:
    result = {}
    for team, name in teams.items():
        raw = objects.a_node(name)
        raw["metadata"]["labels"] = {"team": team}
        result[ids.NodeName(name)] = nodes.parse(raw)
    return result


def pools(*published: slices.Slice, **entry: Any) -> set[str | None]:
    """Return the pools of the desired selectors, with node-a of team a and node-b of team b."""
    drivers = parse(**entry)
    selectors = desired.desired_selectors(
        drivers, desired.pool_nodes(published, drivers), node_map(a="node-a", b="node-b")
    )
    assert {selector.driver for selector in selectors} <= {DRIVER}
    return {selector.pool for selector in selectors}


ALL = tuple(a_slice(node, pool) for node, pool in PUBLISHED)


def test_a_driver_without_a_selection_has_one_rule_for_all_its_pools() -> None:
    drivers = parse()
    selectors = desired.desired_selectors(drivers, {}, {})
    assert selectors == {rule_plan.DeviceSelector(DRIVER)}


def test_named_pools_have_rules_before_they_are_published() -> None:
    assert pools(pools=["pool-a", "pool-x"]) == {"pool-a", "pool-x"}


def test_pools_of_matching_nodes_have_rules() -> None:
    assert pools(*ALL, nodeSelector="team=b") == {"pool-b", "pool-c"}
    assert pools(*ALL, nodeSelector="team=c") == set()


def test_with_both_selections_both_must_hold() -> None:
    assert pools(*ALL, nodeSelector="team=b", pools=["pool-a", "pool-b"]) == {"pool-b"}


def test_a_pool_of_no_single_node_matches_no_node_selector() -> None:
    network = a_slice("node-a", "network", nodeName=None, allNodes=True)
    mixed = a_slice("node-a", "mixed"), a_slice("node-b", "mixed")
    assert pools(network, *mixed, nodeSelector="team") == set()


def test_pools_of_other_drivers_are_not_managed() -> None:
    other = a_slice("node-a", "pool-a", "nic.example.com")
    assert pools(other, nodeSelector="team") == set()


def test_the_own_drivers_name_is_refused() -> None:
    with pytest.raises(errors.BadInput, match=r"managed\.yaml\.drivers\.0\.name: gpu\.ration\.dev"):
        parse(name=names.DRIVER)


def test_a_selector_that_is_none_is_refused() -> None:
    with pytest.raises(errors.BadInput, match=r"drivers\.0\.nodeSelector: 'team = a b'"):
        parse(nodeSelector="team = a b")
