import copy
import dataclasses

import pytest

from driver import ids, names
from driver.kubeletplugin.publish import handover, slice_plan
from driver.resources import quantities
from driver.resources.dra import capacities, slices
from driver.resources.publish import slice_builder

OWNER = slice_builder.Owner(ids.NodeName("node-a"), "node-uid")
TAINT = slices.Taint(names.ALLOCATOR_TAINT, "controller", "NoSchedule")


def pool(
    count: int = 8, *, brand: str = "NVIDIA", taints: tuple[slices.Taint, ...] = ()
) -> slice_builder.Pool:
    devices = tuple(
        slices.Device(
            ids.DeviceName(f"gpu-{index:04d}"),
            {"type": "gpu", "brand": brand},
            {"memory": capacities.Capacity(quantities.parse("80Gi"))},
            taints,
        )
        for index in range(count)
    )
    groups = (slice_builder.Group(device.name, (device,), {}) for device in devices)
    return slice_builder.Pool("gpu.ration.dev", "node-a", tuple(groups))


class Server:
    """Slices as an API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[str, slice_plan.Object] = {}
        self.version = 0

    def apply(self, writes: slice_plan.Writes) -> slice_plan.Writes:
        for deleted in writes.deletes:
            del self.objects[deleted["metadata"]["name"]]
        for deleted in writes.updates:
            obj = self.objects[deleted["metadata"]["name"]]
            assert deleted["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
            self.put(deleted)
        for deleted in writes.creates:
            assert deleted["metadata"]["name"] not in self.objects
            self.put(deleted)
        return writes

    def put(self, obj: slice_plan.Object) -> None:
        copied = copy.deepcopy(obj)
        self.version += 1
        copied["metadata"] |= {"uid": "u", "resourceVersion": str(self.version)}
        if not copied["spec"]["devices"]:
            del copied["spec"]["devices"]
        for device in copied["spec"].get("devices", []):
            for amount in device["capacity"].values():
                amount["value"] = "81920Mi"  # the same amount, written otherwise
            for taint in device.get("taints", []):
                taint.setdefault("timeAdded", "2026-11-21T09:00:00Z")
        self.objects[copied["metadata"]["name"]] = copied

    def plan(
        self, expected: slice_builder.Pool, memory: slice_plan.WriteHistory | None = None
    ) -> slice_plan.Writes:
        return slice_plan.plan_writes(expected, OWNER, self.objects.values(), memory)

    def generations(self) -> list[int]:
        return [obj["spec"]["pool"]["generation"] for obj in self.objects.values()]


def _allocated(group: slice_builder.Group) -> slice_builder.Group:
    """Return devices as if allocated."""
    devices = tuple(
        dataclasses.replace(
            device, attributes={**device.attributes, names.ATTR_ALLOCATOR: "controller"}
        )
        for device in group.devices
    )
    return dataclasses.replace(group, devices=devices)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize("count", [0, 1, 64, 65, 130])
def test_just_written_slices_need_no_write(server: Server, count: int) -> None:
    expected = pool(count, taints=(TAINT,))
    first = server.apply(server.plan(expected))
    assert len(first.creates) == max(1, -(-count // 64))
    assert set(server.generations()) == {1}
    assert len(server.plan(expected)) == 0


def test_a_change_of_one_slice_keeps_the_generation(server: Server) -> None:
    server.apply(server.plan(pool(8)))
    writes = server.apply(server.plan(pool(8, brand="Other")))
    assert (len(writes.updates), len(writes)) == (1, 1)
    assert server.generations() == [1]
    assert len(server.plan(pool(8, brand="Other"))) == 0


def test_another_allocator_is_another_generation_even_in_one_slice(server: Server) -> None:
    plain = slice_builder.Pool("gpu.ration.dev", "node-a", tuple(map(_allocated, pool(8).groups)))
    for allocator in handover.ALLOCATORS:
        server.apply(
            server.plan(handover.with_allocator(plain, handover.AllocatorState(allocator)))
        )
    assert server.generations() == [2]


def test_a_change_of_several_slices_rewrites_all_with_the_next_generation(server: Server) -> None:
    server.apply(server.plan(pool(65)))
    writes = server.apply(server.plan(pool(65, brand="Other")))
    assert (len(writes.updates), len(writes)) == (2, 2)
    assert server.generations() == [2, 2]


def test_another_number_of_slices_is_another_generation(server: Server) -> None:
    server.apply(server.plan(pool(65)))
    fewer = server.apply(server.plan(pool(8)))
    assert (len(fewer.deletes), len(fewer.updates), len(fewer.creates)) == (1, 1, 0)
    assert server.generations() == [2]
    more = server.apply(server.plan(pool(65)))
    assert (len(more.deletes), len(more.updates), len(more.creates)) == (0, 1, 1)
    assert server.generations() == [3, 3]


def test_a_half_written_generation_is_not_taken_for_whole(server: Server) -> None:
    server.apply(server.plan(pool(130)))
    writes = server.plan(pool(130, brand="Other"))
    server.apply(slice_plan.Writes(updates=writes.updates[:1]))
    server.apply(server.plan(pool(130, brand="Other")))
    assert server.generations() == [3, 3, 3]
    assert len(server.plan(pool(130, brand="Other"))) == 0


def test_wiped_slices_come_back_with_a_generation_above_the_last(server: Server) -> None:
    writes = server.plan(pool(8), slice_plan.WriteHistory(generation=4))
    assert [created["spec"]["pool"]["generation"] for created in writes.creates] == [5]


def test_left_overs_of_other_names_go_and_nothing_else_is_written(server: Server) -> None:
    server.apply(server.plan(pool(8)))
    old = copy.deepcopy(next(iter(server.objects.values())))
    old["metadata"]["name"] = "00000-gpu.ration.dev-node-a-x7k2p"
    server.objects[old["metadata"]["name"]] = old
    writes = server.apply(server.plan(pool(8)))
    assert (len(writes.deletes), len(writes)) == (1, 1)
    assert len(server.plan(pool(8))) == 0


def test_another_node_uid_is_written(server: Server) -> None:
    server.apply(server.plan(pool(8)))
    owner = slice_builder.Owner(ids.NodeName("node-a"), "another-uid")
    writes = slice_plan.plan_writes(pool(8), owner, server.objects.values())
    assert [updated["metadata"]["ownerReferences"][0]["uid"] for updated in writes.updates] == [
        "another-uid"
    ]


def test_a_taint_that_stays_keeps_its_time(server: Server) -> None:
    server.apply(server.plan(pool(1, taints=(TAINT,))))
    sick = slices.Taint("ration.dev/sick", "", "NoSchedule")
    writes = server.plan(pool(1, taints=(TAINT, sick)))
    taints = writes.updates[0]["spec"]["devices"][0]["taints"]
    assert [taint.get("timeAdded") for taint in taints] == ["2026-11-21T09:00:00Z", None]


def test_a_taint_that_goes_is_written(server: Server) -> None:
    server.apply(server.plan(pool(1, taints=(TAINT,))))
    assert len(server.plan(pool(1))) == 1


def test_fields_dropped_by_the_server_are_named_and_not_rewritten(server: Server) -> None:
    expected = pool(2, taints=(TAINT,))
    created = server.plan(expected).creates[0]
    copied = copy.deepcopy(created)
    for device in copied["spec"]["devices"]:
        del device["taints"]
    server.put(copied)
    assert slice_plan.dropped_fields(created, copied) == (
        "spec.devices[0].taints",
        "spec.devices[1].taints",
    )
    name = created["metadata"]["name"]
    version = server.objects[name]["metadata"]["resourceVersion"]
    memory = slice_plan.WriteHistory(1, {name: slice_plan.WrittenSlice(created, version)})
    assert len(server.plan(expected)) == 1
    assert len(server.plan(expected, memory)) == 0
    assert len(server.plan(pool(2, brand="Other", taints=(TAINT,)), memory)) == 1


def test_several_unhealthy_gpus_are_one_write_per_slice_without_a_new_generation(
    server: Server,
) -> None:
    server.apply(server.plan(pool(130, taints=(TAINT,))))
    sick = slices.Taint("ration.dev/sick", "", "NoSchedule")
    writes = server.apply(server.plan(pool(130, taints=(TAINT, sick))))
    assert len(writes.updates) == 3
    assert set(server.generations()) == {1}


def test_published_slices_are_cached_until_another_writes_them(server: Server) -> None:
    expected = pool(2, taints=(TAINT,))
    server.apply(server.plan(expected))
    memory = slice_plan.WriteHistory(1, server.plan(expected).unchanged)
    (name,) = server.objects
    obj = server.objects[name]
    assert memory.intended(obj) == server.plan(expected).intended[name]
    server.put(obj)
    assert memory.intended(server.objects[name]) is None
