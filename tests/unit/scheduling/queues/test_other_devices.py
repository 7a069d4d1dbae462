"""Amounts of managed devices that are no GPUs: NICs in queues."""

import pytest

from driver.resources import queues
from driver.resources.dra import slices
from driver.scheduling.queues import messages, quota
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.builders import objects

NIC = "nic.example.com"
HALF = objects.a_share("nic-0", 1, bandwidth="50G")


def fleet(*others: str) -> cluster_state.ClusterState:
    """A node with two GPUs and two NICs, which several claims may share."""
    bandwidth = {"bandwidth": {"value": "100G"}}
    nics = [
        objects.a_device(f"nic-{i}", capacity=bandwidth, allowMultipleAllocations=True)
        for i in range(2)
    ]
    view = cluster_state.ClusterState(snapshots.DRIVER, other_drivers=frozenset(others))
    for raw in (objects.a_slice("node-a", 2), objects.a_slice("node-a", nics, NIC)):
        parsed = slices.parse(raw)
        view.set_slice(parsed.name, parsed)
    for name, driver in (("gpu", snapshots.DRIVER), ("nic", NIC)):
        view.set_device_class(name, objects.device_class(name, f'device.driver == "{driver}"'))
    return view


def request(name: str, count: int = 1) -> objects.Raw:
    return objects.a_request(name, count, deviceClassName=name)


def test_a_fleet_has_its_nics_by_driver() -> None:
    amounts = queue_resources.capacity(fleet(NIC))
    assert (amounts.gpus, amounts.devices) == (2000, {NIC: 2000})


def test_devices_of_drivers_that_are_not_managed_count_nothing() -> None:
    view = fleet()
    assert queue_resources.capacity(view).devices == {}
    claim = objects.claim("c", request("nic"))
    assert queue_resources.requested_amounts(view, [claim]) == queue_resources.ZERO


def test_a_share_counts_as_its_part_of_the_device() -> None:
    half = {**HALF, "driver": NIC}
    held = snapshots.holding("c", "node-a", half)
    assert held.allocation is not None
    amounts = queue_resources.results_amounts(fleet(NIC), held.allocation.results)
    assert amounts == queue_resources.Amounts(devices={NIC: 500})


def test_a_claim_over_both_requests_both() -> None:
    claim = objects.claim("c", request("gpu", 2), request("nic"))
    amounts = queue_resources.requested_amounts(fleet(NIC), [claim])
    assert (amounts.gpus, amounts.devices) == (2000, {NIC: 1000})


def test_a_limit_of_devices_is_read_and_bounds() -> None:
    spec = {"limit": {"devices": [{"driver": NIC, "count": "1.5"}]}}
    queue = queues.parse({"metadata": {"name": "team"}, "spec": spec})
    (bound,) = quota.bounds(queue.limit)
    assert bound == quota.Bound("devices", NIC, 1500)
    assert quota.bounded_amount(queue_resources.Amounts(devices={NIC: 700}), bound) == 700
    assert messages.format_bound(bound) == f"1.5 devices of {NIC}"


@pytest.mark.parametrize(("count", "fits"), [(1, "fits"), (3, "does not fit")])
def test_amounts_of_devices_are_compared(count: int, fits: str) -> None:
    need = queue_resources.Amounts(devices={NIC: 1000}).times(count)
    free = queue_resources.Amounts(devices={NIC: 2000})
    assert ("fits" if need.fits(free) else "does not fit") == fits
    assert (need + free - free) == need
