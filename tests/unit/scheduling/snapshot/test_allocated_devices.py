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
    found = snapshots.holding("x", "node-a", *devices).allocation
    assert found is not None
    return found


def holders(of: allocated_devices.AllocatedDevices, name: str) -> list[ids.Key]:
    return [one.claim for one in of.holders(device(name))]


def names(found: Sequence[claims.DeviceId]) -> list[str]:
    return [one.device for one in found]


def test_a_change_of_a_claim_names_the_devices_that_it_had_and_has() -> None:
    found = allocated_devices.AllocatedDevices()
    assert names(found.set_claim(ONE, allocation("gpu-0", "gpu-1"))) == ["gpu-0", "gpu-1"]
    assert names(found.set_claim(ONE, allocation("gpu-1", "gpu-2"))) == [
        *("gpu-0", "gpu-1"),
        *("gpu-1", "gpu-2"),
    ]
    assert [holders(found, f"gpu-{at}") for at in range(3)] == [[], [ONE], [ONE]]
    assert names(found.set_claim(ONE, None)) == ["gpu-1", "gpu-2"]
    assert holders(found, "gpu-1") == []


def test_a_claim_that_says_the_same_changes_nothing() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ONE, allocation("gpu-0"))
    assert found.set_claim(ONE, allocation("gpu-0")) == ()
    assert found.set_claim(TWO, None) == ()


def test_what_was_written_is_what_the_caches_say_then() -> None:
    found = allocated_devices.AllocatedDevices()
    assert names(found.begin_write(ONE, allocation("gpu-0"))) == ["gpu-0"]
    assert found.set_claim(ONE, allocation("gpu-0")) == ()
    assert found.end_write(ONE) == ()
    assert holders(found, "gpu-0") == [ONE]
    assert names(found.set_claim(ONE, None)) == ["gpu-0"]
    assert holders(found, "gpu-0") == []


def test_administrators_hold_nothing() -> None:
    found = allocated_devices.AllocatedDevices()
    assert found.set_claim(ONE, allocation({"device": "gpu-0", "adminAccess": True})) == []
    assert holders(found, "gpu-0") == []


def test_shares_of_a_device_have_each_a_holder_by_claim() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(TWO, allocation(objects.a_share("ts", 2, memory="2Gi")))
    found.set_claim(ONE, allocation(objects.a_share("ts", 1), objects.a_share("ts", 3)))
    assert holders(found, "ts") == [ONE, ONE, TWO]
    assert [one.result.share_id[-1] for one in found.holders(device("ts"))] == ["1", "3", "2"]
    found.set_claim(ONE, None)
    assert holders(found, "ts") == [TWO]


def test_a_holder_knows_its_namespace() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ids.Key("team-a/one"), allocation("gpu-0"))
    assert [one.namespace for one in found.holders(device("gpu-0"))] == ["team-a"]


def test_what_flies_counts_in_place_of_what_the_caches_say() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ONE, allocation("gpu-0"))
    assert names(found.begin_write(ONE, allocation("gpu-1"))) == ["gpu-0", "gpu-1"]
    assert [holders(found, f"gpu-{at}") for at in range(2)] == [[], [ONE]]
    assert names(found.end_write(ONE)) == ["gpu-1", "gpu-0"]
    assert [holders(found, f"gpu-{at}") for at in range(2)] == [[ONE], []]


def test_what_the_caches_say_meanwhile_is_known_when_it_lands() -> None:
    found = allocated_devices.AllocatedDevices()
    found.begin_write(ONE, allocation("gpu-0"))
    assert found.set_claim(ONE, allocation("gpu-1")) == ()
    assert holders(found, "gpu-0") == [ONE]
    found.end_write(ONE)
    assert [holders(found, f"gpu-{at}") for at in range(2)] == [[], [ONE]]


def test_a_decision_that_was_not_written_leaves_nothing() -> None:
    found = allocated_devices.AllocatedDevices()
    found.begin_write(ONE, allocation("gpu-0"))
    assert names(found.end_write(ONE)) == ["gpu-0"]
    assert found.end_write(ONE) == ()
    assert holders(found, "gpu-0") == []


def cut(*sizes: str) -> pools.Pool:
    parts = [objects.drawing(f"part-{at}", "gpu-0", slots=size) for at, size in enumerate(sizes)]
    raw = objects.counting({"gpu-0": {"slots": "4", "engines": "2"}}, parts)
    return pools.newest_generation([slices.parse(one) for one in raw])


def test_devices_in_use_draw_on_their_counters() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ONE, allocation("part-0", "part-2"))
    assert {
        key: nanos // 10**9 for key, nanos in found.remaining_counters(cut("1", "2", "2")).items()
    } == {
        ("gpu-0", "slots"): 1,
        ("gpu-0", "engines"): 2,
    }


def test_a_shared_device_consumes_counters_once_and_a_missing_one_never() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ONE, allocation(objects.a_share("part-0", 1), "gone"))
    found.set_claim(TWO, allocation(objects.a_share("part-0", 2)))
    assert found.remaining_counters(cut("1"))["gpu-0", "slots"] == 3 * 10**9


def test_counters_may_be_overdrawn() -> None:
    found = allocated_devices.AllocatedDevices()
    found.set_claim(ONE, allocation("part-0", "part-1"))
    assert found.remaining_counters(cut("3", "2"))["gpu-0", "slots"] == -(10**9)
