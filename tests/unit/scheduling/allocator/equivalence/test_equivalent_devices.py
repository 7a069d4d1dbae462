from collections import Counter

import pytest

from driver import ids
from driver.reasons import Reason
from driver.scheduling.allocator import candidates
from driver.scheduling.allocator.equivalence import equivalent_devices, node_signature
from driver.scheduling.snapshot import cluster_state
from tests.support import snapshots
from tests.support.allocation import NODE, OURS, wants
from tests.support.builders import objects

SHARE = objects.a_share_device("ts-0")
IDLE_NODE = {
    0: Reason.SELECTOR_MISMATCH,
    1: Reason.SELECTOR_MISMATCH,
    2: Reason.DEVICE_TAINTED,
}
FAILING = 'device.attributes["gpu.ration.dev"].nope == "x"'


def cluster() -> cluster_state.ClusterState:
    """A node with whole GPUs and a share, of which one each is in use."""
    devices = [SHARE, *map(objects.a_device, ("gpu-0", "gpu-1", "gpu-2"))]
    held = [snapshots.holding("x", NODE, "gpu-1"), snapshots.holding("y", NODE, SHARE["name"])]
    return snapshots.view(objects.a_slice(NODE, devices), taken=held)


def devices_of(view: cluster_state.ClusterState) -> equivalent_devices.EquivalentDevices:
    shares = view.reachable_pools(ids.NodeName(NODE))
    signature = node_signature.node_signature(view, shares)
    assert signature is not None
    return equivalent_devices.devices_in_use(view, shares, signature)


def test_devices_are_those_of_the_node_one_by_one() -> None:
    view = cluster()
    devices = devices_of(view)
    assert [*devices] == [*candidates.node_devices(view, view.nodes[ids.NodeName(NODE)])]
    assert [*devices[1:3]] == [devices[1], devices[2]]
    assert len(devices) == 4
    assert not any(device.holders for device in devices.idle())
    with pytest.raises(IndexError):
        devices[4]


@pytest.mark.parametrize("mode", [{}, {"allocationMode": "All"}, {"adminAccess": True}])
@pytest.mark.parametrize("selectors", [(), (FAILING,)])
def test_candidates_of_idle_devices_become_those_of_the_node(
    mode: objects.Raw, selectors: tuple[str, ...]
) -> None:
    view = cluster()
    node = view.nodes[ids.NodeName(NODE)]
    shares = view.reachable_pools(node.name)
    mode = {"deviceClassName": snapshots.ANY, **mode}
    request = objects.a_request("gpu", 1, *selectors, **mode)
    (want,) = wants(view, objects.claim("c", request))
    devices = devices_of(view)
    idle = candidates.find_candidates(want.subrequests[0], devices.idle(), shares, OURS)
    equivalent = equivalent_devices.EquivalentCandidates(idle)
    assert equivalent.find(devices, OURS) == equivalent.find(devices, OURS)
    derived = equivalent.find(devices, OURS)
    expected = candidates.find_candidates(
        want.subrequests[0], candidates.node_devices(view, node), shares, OURS
    )
    assert derived == expected


def test_devices_in_use_have_reasons_of_their_own_or_none() -> None:
    rejected = equivalent_devices.Rejected(
        IDLE_NODE, {1: "a", 2: "b", 7: "c"}, {7: Reason.DEVICE_IN_USE}
    )
    assert dict(rejected) == {0: Reason.SELECTOR_MISMATCH, 7: Reason.DEVICE_IN_USE}
    assert len(rejected) == 2
    assert 1 not in rejected
    assert Counter(rejected.values()) == {Reason.SELECTOR_MISMATCH: 1, Reason.DEVICE_IN_USE: 1}


def test_without_devices_in_use_all_are_those_of_an_idle_node() -> None:
    rejected = equivalent_devices.Rejected(IDLE_NODE, {}, {})
    assert dict(rejected) == IDLE_NODE
    assert [*rejected.values()] == [*IDLE_NODE.values()]
