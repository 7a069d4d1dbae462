from driver import ids
from driver.resources.publish import slice_builder
from driver.scheduling.queues import gpu_usage
from tests.fakes import simulated_pool
from tests.support import snapshots
from tests.support.builders import objects

NODE = ids.NodeName("node-a")


def test_whole_gpus_are_counted_one_by_one() -> None:
    view = snapshots.fleet(
        {"node-a": 4, "node-b": 2}, snapshots.holding("x", "node-a", "gpu-0", "gpu-1")
    )
    assert (gpu_usage.capacity(view), gpu_usage.allocated(view)) == (
        6 * gpu_usage.FULL,
        2 * gpu_usage.FULL,
    )


def test_the_dominant_fraction_of_a_share_counts() -> None:
    share = objects.a_share("ts-0", memory="20Gi")
    slices = objects.a_slice("node-a", [objects.a_share_device("ts-0")])
    view = snapshots.view(slices, taken=[snapshots.holding("x", "node-a", share)])
    assert (gpu_usage.capacity(view), gpu_usage.allocated(view)) == (gpu_usage.FULL, 250)


def test_memory_slices_of_a_mig_device_count() -> None:
    pool = simulated_pool.of_machine(NODE, "controller", "hgx-h100")
    rendered = slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    part = next(device.name for device in pool.devices if "-mig-3g" in device.name)
    view = snapshots.view(*rendered, taken=[snapshots.holding("x", "node-a", part)])
    assert gpu_usage.allocated(view) == gpu_usage.FULL // 2


def test_an_administrators_access_takes_nothing() -> None:
    looking = {"device": "gpu-0", "adminAccess": True}
    view = snapshots.fleet({"node-a": 1}, snapshots.holding("x", "node-a", looking))
    assert gpu_usage.allocated(view) == 0
    assert gpu_usage.claims_usage(view, [snapshots.holding("x", "node-a", looking)]) == 0


def test_devices_that_nobody_publishes_or_that_are_anothers_count_nothing() -> None:
    view = snapshots.fleet({"node-a": 1})
    gone = [snapshots.holding("x", "node-a", "gpu-9"), snapshots.holding("y", "node-b", "gpu-0")]
    assert gpu_usage.claims_usage(view, [*gone, objects.claim("open")]) == 0
