"""Device selectors that the configuration requests, from published pools and nodes. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from driver import errors, ids
from driver.api import managed_drivers
from driver.resources.core import label_selectors, nodes
from driver.resources.dra import slices
from driver.scheduling.device_ownership import rule_plan

PoolKey = tuple[str, str]
"""Driver and pool."""
PoolNodes = Mapping[PoolKey, ids.NodeName | None]
"""Node of each pool; None: the pool is not local to one node."""


@dataclass(frozen=True, slots=True)
class ManagedDriver:
    """A managed driver; without `nodes` and `pools` all its devices are managed."""

    name: str
    nodes: label_selectors.LabelSelector | None = None
    pools: tuple[str, ...] | None = None


def parse_drivers(
    document: managed_drivers.ManagedDrivers, own_driver: str, path: str
) -> tuple[ManagedDriver, ...]:
    """Return the drivers of a document.

    Raises:
        BadInput: the own driver's name, or an invalid selector, with its path under `path`.
    """
    return tuple(
        _parse_driver(entry, own_driver, f"{path}.drivers.{index}")
        for index, entry in enumerate(document.drivers)
    )


def _parse_driver(
    entry: managed_drivers.ManagedDriver, own_driver: str, path: str
) -> ManagedDriver:
    if entry.name == own_driver:
        problem = f"{own_driver} is Ration's own driver, whose kubelet plugin publishes the taint"
        raise errors.BadInput(f"{path}.name", problem, "the name of another driver")
    selector = (
        None
        if entry.nodeSelector is None
        else label_selectors.parse_text(entry.nodeSelector, f"{path}.nodeSelector")
    )
    return ManagedDriver(entry.name, selector, entry.pools)


def pool_nodes(published: Iterable[slices.Slice], drivers: Iterable[ManagedDriver]) -> PoolNodes:
    """Return the pools of the drivers, each with its node: that of all its slices."""
    managed = {driver.name for driver in drivers}
    result: dict[PoolKey, ids.NodeName | None] = {}
    for resource_slice in published:
        if resource_slice.driver in managed:
            key = resource_slice.driver, resource_slice.pool
            node = resource_slice.node
            result[key] = node if result.get(key, node) == node else None
    return result


def desired_selectors(
    drivers: Iterable[ManagedDriver], pools: PoolNodes, live: Mapping[ids.NodeName, nodes.Node]
) -> frozenset[rule_plan.DeviceSelector]:
    """Return the selectors to have rules for; none covers another."""
    return frozenset(
        selector for driver in drivers for selector in _driver_selectors(driver, pools, live)
    )


def _driver_selectors(
    driver: ManagedDriver, pools: PoolNodes, live: Mapping[ids.NodeName, nodes.Node]
) -> Iterator[rule_plan.DeviceSelector]:
    if driver.nodes is None:
        # Named pools have their rule before they are published, so that they are never untainted.
        for name in (None,) if driver.pools is None else driver.pools:
            yield rule_plan.DeviceSelector(driver.name, name)
        return
    for (name, pool), node in pools.items():
        if name == driver.name and (driver.pools is None or pool in driver.pools):
            entry = None if node is None else live.get(node)
            if entry is not None and driver.nodes.matches(entry.labels):
                yield rule_plan.DeviceSelector(name, pool)
