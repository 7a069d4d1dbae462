from driver import ids, names
from driver.resources.dra import claims
from driver.scheduling.allocator import dra_allocator
from driver.scheduling.allocator.capacity import device_holders
from tests.support import allocation, snapshots
from tests.support.builders import objects
from tests.support.scenarios import occupied_nodes


def name_of(key: ids.Key) -> str:
    return f"taken by {key}"


def said(crowd: occupied_nodes.Crowd, count: int, first: str | None = None) -> str:
    refusal = allocation.refused(
        dra_allocator.allocate(crowd.view, occupied_nodes.gpus(count), snapshots.DECIDING)
    )
    node = ids.NodeName(first) if first is not None else None
    return device_holders.describe(
        device_holders.rejection_holders(crowd.view, refusal, node), name_of
    )


def test_holders_of_a_node_are_named_by_how_much_they_have() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 4})
    crowd.run("p", "node-a", "gpu-0")
    crowd.run("q", "node-a", "gpu-1", "gpu-2")
    assert said(crowd, 2) == (
        "2 GPUs of node-a are taken by default/q-gpu, 1 is taken by default/p-gpu"
    )


def test_the_first_of_many_holders_and_nodes_are_named() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 5, "node-b": 1, "node-c": 1})
    for number in range(5):
        crowd.run(f"p{number}", "node-a", f"gpu-{number}")
    crowd.run("q", "node-b", "gpu-0")
    crowd.run("r", "node-c", "gpu-0")
    text = said(crowd, 1)
    assert "others by 2 more" in text
    assert "node-c" not in text


def test_the_nearest_node_comes_first() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 1, "node-b": 1, "node-c": 1})
    for node in ("node-a", "node-b", "node-c"):
        crowd.run(f"on-{node}", node, "gpu-0")
    assert said(crowd, 1, "node-c").startswith("1 GPU of node-c")


def test_reservations_count_only_on_unused_devices() -> None:
    crowd = occupied_nodes.of_sizes({"node-a": 2})
    crowd.run("p", "node-a", "gpu-0")
    devices = [claims.DeviceId(names.DRIVER, "node-a", name) for name in ("gpu-0", "gpu-1")]
    promised = tuple(claims.Result("gpu", device) for device in devices)
    crowd.view.set_reserved_devices(ids.Key("head:"), claims.Allocation(promised))
    assert said(crowd, 1) == "1 GPU of node-a is taken by head:, 1 is taken by default/p-gpu"


def test_a_fault_is_named_by_its_taint() -> None:
    sick = {"key": "ration.dev/xid", "value": "79", "effect": "NoSchedule"}
    taints = [objects.ALLOCATOR_TAINT, sick]
    view = snapshots.view(objects.a_slice("node-a", [objects.a_device("gpu-0", taints=taints)]))
    refusal = allocation.refused(
        dra_allocator.allocate(view, occupied_nodes.gpus(), snapshots.DECIDING)
    )
    text = device_holders.describe(device_holders.rejection_holders(view, refusal), name_of)
    assert text == "1 GPU of node-a is tainted ration.dev/xid=79"
