from collections.abc import Sequence

from driver import ids
from driver.resources.dra import claims, pools, slices
from driver.scheduling.snapshot import allocated_devices
from tests.support import snapshots
from tests.support.builders import objects

ONE, TWO = ids.Key("default/one"), ids.Key("default/two")


def device(name: str) -> claims.DeviceId:
    return claims.DeviceId(snapshots.DRIVER, "node-a", name)


def allocation(*devices: str | objects.Raw) -> claims.Allocation:
    result = snapshots.holding("x", "node-a", *devices).allocation
    assert result is not None
    return result


def holders(devices: allocated_devices.AllocatedDevices, name: str) -> list[ids.Key]:
    return [holder.claim for holder in devices.holders(device(name))]


def names(device_ids: Sequence[claims.DeviceId]) -> list[str]:
    return [device_id.device for device_id in device_ids]


def test_a_change_of_a_claim_names_the_devices_that_it_had_and_has() -> None:
    devices = allocated_devices.AllocatedDevices()
    assert names(devices.set_claim(ONE, allocation("gpu-0", "gpu-1"))) == ["gpu-0", "gpu-1"]
    assert names(devices.set_claim(ONE, allocation("gpu-1", "gpu-2"))) == [
        *("gpu-0", "gpu-1"),
        *("gpu-1", "gpu-2"),
    ]
    assert [holders(devices, f"gpu-{index}") for index in range(3)] == [[], [ONE], [ONE]]
    assert names(devices.set_claim(ONE, None)) == ["gpu-1", "gpu-2"]
    assert holders(devices, "gpu-1") == []


def test_a_claim_that_says_the_same_changes_nothing() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ONE, allocation("gpu-0"))
    assert devices.set_claim(ONE, allocation("gpu-0")) == ()
    assert devices.set_claim(TWO, None) == ()


def test_written_allocations_equal_the_caches() -> None:
    devices = allocated_devices.AllocatedDevices()
    assert names(devices.begin_write(ONE, allocation("gpu-0"))) == ["gpu-0"]
    assert devices.set_claim(ONE, allocation("gpu-0")) == ()
    assert devices.end_write(ONE) == ()
    assert holders(devices, "gpu-0") == [ONE]
    assert names(devices.set_claim(ONE, None)) == ["gpu-0"]
    assert holders(devices, "gpu-0") == []


def test_administrators_hold_nothing() -> None:
    devices = allocated_devices.AllocatedDevices()
    assert devices.set_claim(ONE, allocation({"device": "gpu-0", "adminAccess": True})) == []
    assert holders(devices, "gpu-0") == []


def test_shares_of_a_device_have_each_a_holder_by_claim() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(TWO, allocation(objects.a_share("ts", 2, memory="2Gi")))
    devices.set_claim(ONE, allocation(objects.a_share("ts", 1), objects.a_share("ts", 3)))
    assert holders(devices, "ts") == [ONE, ONE, TWO]
    assert [holder.result.share_id[-1] for holder in devices.holders(device("ts"))] == [
        "1",
        "3",
        "2",
    ]
    devices.set_claim(ONE, None)
    assert holders(devices, "ts") == [TWO]


def test_a_holder_knows_its_namespace() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ids.Key("team-a/one"), allocation("gpu-0"))
    assert [holder.namespace for holder in devices.holders(device("gpu-0"))] == ["team-a"]


def test_in_flight_allocations_override_the_caches() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ONE, allocation("gpu-0"))
    assert names(devices.begin_write(ONE, allocation("gpu-1"))) == ["gpu-0", "gpu-1"]
    assert [holders(devices, f"gpu-{index}") for index in range(2)] == [[], [ONE]]
    assert names(devices.end_write(ONE)) == ["gpu-1", "gpu-0"]
    assert [holders(devices, f"gpu-{index}") for index in range(2)] == [[ONE], []]


def test_cache_changes_during_a_write_apply_when_it_ends() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.begin_write(ONE, allocation("gpu-0"))
    assert devices.set_claim(ONE, allocation("gpu-1")) == ()
    assert holders(devices, "gpu-0") == [ONE]
    devices.end_write(ONE)
    assert [holders(devices, f"gpu-{index}") for index in range(2)] == [[], [ONE]]


def test_a_decision_that_was_not_written_leaves_nothing() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.begin_write(ONE, allocation("gpu-0"))
    assert names(devices.end_write(ONE)) == ["gpu-0"]
    assert devices.end_write(ONE) == ()
    assert holders(devices, "gpu-0") == []


def test_expected_allocations_count_until_they_are_made_or_given_up() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.begin_write(ONE, allocation("gpu-0"))
    assert names(devices.expect({TWO: allocation("nic-0")}, ONE)) == ["nic-0"]
    devices.set_claim(ONE, allocation("gpu-0"))
    devices.end_write(ONE)
    assert holders(devices, "nic-0") == [TWO]
    assert devices.allocation(TWO) is None
    devices.set_claim(TWO, allocation("nic-1"))
    assert [holders(devices, f"nic-{index}") for index in range(2)] == [[], [TWO]]
    devices.set_claim(ONE, None)
    assert holders(devices, "nic-1") == [TWO]


def test_nothing_is_expected_of_a_pod_that_lost_its_own_devices() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.begin_write(ONE, allocation("gpu-0"))
    devices.expect({TWO: allocation("nic-0")}, ONE)
    assert names(devices.end_write(ONE)) == ["gpu-0", "nic-0"]
    assert holders(devices, "nic-0") == []


def cut(*sizes: str) -> pools.Pool:
    parts = [
        objects.drawing(f"part-{index}", "gpu-0", slots=size) for index, size in enumerate(sizes)
    ]
    raw = objects.counting({"gpu-0": {"slots": "4", "engines": "2"}}, parts)
    return pools.newest_generation([slices.parse(entry) for entry in raw])


def test_devices_in_use_draw_on_their_counters() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ONE, allocation("part-0", "part-2"))
    assert {
        key: nanos // 10**9 for key, nanos in devices.remaining_counters(cut("1", "2", "2")).items()
    } == {
        ("gpu-0", "slots"): 1,
        ("gpu-0", "engines"): 2,
    }


def test_a_shared_device_consumes_counters_once_and_a_missing_one_never() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ONE, allocation(objects.a_share("part-0", 1), "gone"))
    devices.set_claim(TWO, allocation(objects.a_share("part-0", 2)))
    assert devices.remaining_counters(cut("1"))["gpu-0", "slots"] == 3 * 10**9


def test_counters_may_be_overdrawn() -> None:
    devices = allocated_devices.AllocatedDevices()
    devices.set_claim(ONE, allocation("part-0", "part-1"))
    assert devices.remaining_counters(cut("3", "2"))["gpu-0", "slots"] == -(10**9)
