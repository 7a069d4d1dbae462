import dataclasses

import pytest

from driver import ids, names
from driver.kubeletplugin.publish import handover
from driver.kubeletplugin.publish.handover import AllocatorState, HandoverHistory, StoredAllocators
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.support.builders import published_pools
from tests.support.builders.gpus import NAME, PLAIN

NOTHING = StoredAllocators()
OURS, KUBES = frozenset({"controller"}), frozenset({"scheduler"})
OWNER = slice_builder.Owner(ids.NodeName("node-a"), "uid")


@pytest.mark.parametrize("expected", handover.ALLOCATORS)
def test_a_node_of_which_nothing_is_known_begins_as_it_is_wanted(expected: str) -> None:
    assert handover.decide(NOTHING, expected, HandoverHistory()) == AllocatorState(expected)


def test_nothing_happens_while_the_desired_allocator_is_published() -> None:
    assert handover.decide(
        StoredAllocators(OURS), "controller", HandoverHistory("controller")
    ) == AllocatorState("controller")


@pytest.mark.parametrize("last", ["", "controller"])
def test_another_wanted_than_published_begins_a_handover(last: str) -> None:
    shown = handover.decide(StoredAllocators(OURS), "scheduler", HandoverHistory(last))
    assert shown == AllocatorState("controller", in_handover=True)


@pytest.mark.parametrize(
    ("waited_s", "shown"),
    [
        (None, AllocatorState("controller", in_handover=True)),
        (29.9, AllocatorState("controller", in_handover=True)),
        (30.0, AllocatorState("scheduler")),
    ],
)
def test_a_handover_lasts_its_time(waited_s: float | None, shown: AllocatorState) -> None:
    past = HandoverHistory("controller", waited_s)
    assert handover.decide(StoredAllocators(in_handover=OURS), "scheduler", past) == shown


@pytest.mark.parametrize(
    ("waited_s", "handing"), [(None, True), (0.0, True), (29.9, True), (30.0, False)]
)
def test_back_to_the_former_allocator_it_takes_the_whole_time_too(
    waited_s: float | None, *, handing: bool
) -> None:
    past = HandoverHistory("controller", waited_s)
    shown = handover.decide(StoredAllocators(in_handover=OURS), "controller", past)
    assert shown == AllocatorState("controller", in_handover=handing)


def test_a_device_still_with_the_former_allocator_blocks_the_handover() -> None:
    past = HandoverHistory("controller", 100.0)
    shown = handover.decide(StoredAllocators(OURS, OURS), "scheduler", past)
    assert shown == AllocatorState("controller", in_handover=True)
    assert not handover.is_settled(StoredAllocators(OURS, OURS), "scheduler")


def test_a_new_state_that_is_half_written_is_written_whole() -> None:
    past = HandoverHistory("scheduler", 31.0)
    assert handover.decide(StoredAllocators(KUBES, OURS), "scheduler", past) == AllocatorState(
        "scheduler"
    )


def test_a_new_state_that_is_half_written_is_left_by_a_handover() -> None:
    past = HandoverHistory("scheduler", 31.0)
    shown = handover.decide(StoredAllocators(KUBES, OURS), "controller", past)
    assert shown == AllocatorState("scheduler", in_handover=True)


def test_slices_that_were_wiped_still_count_as_whose_they_were() -> None:
    shown = handover.decide(NOTHING, "scheduler", HandoverHistory("controller"))
    assert shown == AllocatorState("controller", in_handover=True)
    assert handover.decide(NOTHING, "controller", HandoverHistory("controller")) == AllocatorState(
        "controller"
    )


def test_a_handover_goes_on_while_there_is_no_device() -> None:
    assert handover.decide(NOTHING, "scheduler", HandoverHistory("controller", 29.0)).in_handover
    assert handover.decide(
        NOTHING, "scheduler", HandoverHistory("controller", 30.0)
    ) == AllocatorState("scheduler")


def test_a_last_one_that_cannot_be_read_is_a_stranger() -> None:
    shown = handover.decide(NOTHING, "scheduler", HandoverHistory("\ufffd"))
    assert shown == AllocatorState("scheduler", in_handover=True)


def test_a_device_whose_allocator_taint_is_gone_is_kube_schedulers() -> None:
    pool = published_pools.pool(PLAIN)
    (obj,) = [entry for entry in slice_builder.render(pool, OWNER, 1) if _devices(entry)]
    assert handover.stored_allocators([obj]) == StoredAllocators(OURS)
    del _devices(obj)[0]["taints"]
    assert handover.stored_allocators([obj]) == StoredAllocators(OURS | KUBES)


def test_a_handover_alters_nothing_but_taints() -> None:
    pool = published_pools.pool(PLAIN)
    handed = handover.with_allocator(pool, AllocatorState("controller", in_handover=True))
    assert handover.stored_allocators(slice_builder.render(handed, OWNER, 1)) == StoredAllocators(
        in_handover=OURS
    )
    bare = [
        [dataclasses.replace(device, taints=()) for device in each.devices]
        for each in (pool, handed)
    ]
    assert bare[0] == bare[1]
    assert handover.with_allocator(handed, AllocatorState("controller")) == pool


def test_a_monitor_face_takes_no_part() -> None:
    pool = published_pools.pool(PLAIN)
    handed = handover.with_allocator(pool, AllocatorState("scheduler", in_handover=True))
    for item in (pool, handed):
        (monitor,) = [device for device in item.devices if device.name.endswith("-monitor")]
        assert [taint.key for taint in monitor.taints] == [names.MONITOR_TAINT]


def test_withdrawn_devices_in_use_are_handed_over_too() -> None:
    previous = published_pools.pool(PLAIN)
    left = published_pools.kept(published_pools.pool(), previous, NAME)
    (device,) = handover.with_allocator(left, AllocatorState("scheduler", in_handover=True)).devices
    assert [taint.key for taint in device.taints] == [names.HANDOVER_TAINT, names.WITHDRAWN_TAINT]
    assert device.attributes == {**previous.devices[0].attributes, "allocator": "scheduler"}


def test_faults_are_published_during_a_handover() -> None:
    lost = slices.Taint(names.TAINT_LOST, "", "NoExecute")
    pool = published_pools.pool(PLAIN, taints={ids.DeviceName(NAME): (lost,)})
    handed = handover.with_allocator(pool, AllocatorState("controller", in_handover=True))
    assert [taint.key for taint in handed.devices[0].taints] == [
        names.ALLOCATOR_TAINT,
        names.HANDOVER_TAINT,
        names.TAINT_LOST,
    ]


def _devices(obj: slices.Raw) -> list[dict[str, object]]:
    spec = obj["spec"]
    assert isinstance(spec, dict)
    result = spec.get("devices", [])
    assert isinstance(result, list)
    return result
