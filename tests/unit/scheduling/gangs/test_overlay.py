import pytest

from driver import ids, names
from driver.resources.dra import claims
from driver.scheduling.allocator import allocation_result, dra_allocator
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.gangs import overlay
from driver.scheduling.snapshot import snapshot
from tests.properties import drawing
from tests.support import allocation, snapshots
from tests.support.builders import gangs, objects

A = ids.NodeName("node-a")


def taken(
    view: snapshot.Snapshot, workload: allocator_types.Workload
) -> tuple[overlay.DecisionOverlay, snapshot.InFlight]:
    """A layer on which a workload has what the allocator gives it."""
    placement = allocation.placed(dra_allocator.allocate(view, workload, snapshots.DECIDING))
    allocations = allocation_result.build_allocations(view, workload, placement, "")
    decision = snapshot.InFlight(workload.pod, placement.node, allocations)
    layer = overlay.DecisionOverlay(view)
    layer.apply(decision)
    return layer, decision


def test_a_decision_counts_as_one_in_flight_does() -> None:
    parts = [objects.drawing(f"part-{index}", "gpu-0", slots="2") for index in range(2)]
    view = snapshots.view(
        *objects.counting({"gpu-0": {"slots": "4"}}, parts),
        taken=[snapshots.holding("there", "node-a", "part-0")],
    )
    layer, decision = taken(view, gangs.member("one"))
    shown = drawing.shown(layer)
    assert shown != drawing.shown(view)
    view.set_pod(decision.pod.key, decision.pod)
    view.begin_write(decision)
    assert drawing.shown(view) == shown


def test_a_rolled_back_placement_leaves_no_trace() -> None:
    view = gangs.racks([[[2]]], snapshots.holding("there", "node-0-0-0", "gpu-0"))
    layer, _ = taken(view, gangs.member("one"))
    layer.undo(1)
    assert drawing.shown(layer) == drawing.shown(view)


def test_the_node_of_a_decision_is_told_as_changed() -> None:
    view = gangs.racks([[[2, 2]]])
    layer, decision = taken(view, gangs.member("one"))
    assert overlay.DecisionOverlay(view).revision == 0
    assert layer.changed_since(0) == (1, [decision.node])


def test_a_device_that_other_nodes_reach_changes_all_of_them() -> None:
    view = snapshots.view(objects.a_far_slice(2), more_nodes=[objects.node("node-a")])
    layer, _ = taken(view, gangs.member("one"))
    assert layer.changed_since(0) is None


@pytest.mark.parametrize("admin", [True, False])
def test_administrative_access_holds_nothing(*, admin: bool) -> None:
    claim = objects.claim("one", objects.a_request(adminAccess=admin))
    view = snapshots.view(objects.a_slice("node-a", 1))
    layer, _ = taken(view, allocator_types.Workload(objects.pod("one", "one"), (claim,)))
    device = claims.DeviceId(names.DRIVER, "node-a", "gpu-0")
    assert bool(layer.holders(device)) is not admin
    assert layer.usage[A].pod_count == 1


def test_tentative_members_count_among_the_nodes_pods() -> None:
    view = gangs.racks([[[2]]])
    pod = objects.pod("there", nodeName="node-0-0-0")
    view.set_pod(pod.key, pod)
    layer, decision = taken(view, gangs.member("one"))
    assert [*layer.pods_on(decision.node)] == ["default/there", "default/one"]
    assert [*view.pods_on(decision.node)] == ["default/there"]
