"""Many ask what the GPUs are while they are being read."""

import threading
from collections.abc import Iterable
from concurrent import futures

import pytest

from driver import errors, ids
from driver.devices import model
from driver.kubeletplugin.host import discovery
from tests.fakes import plugin_shell

CALLERS = 8


class SlowNvml:
    """A reading begins, and ends once it may; `fails` once, where it is set."""

    def __init__(self) -> None:
        self.found = plugin_shell.inventory(2)
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.may_end.set()
        self.readings = 0
        self.fails = False

    def inventory(self) -> model.Inventory:
        self.readings += 1
        self.begun.release()
        assert self.may_end.wait(5)
        if self.fails:
            self.fails = False
            raise errors.DeviceFault("node", "nvmlInit", 9, "driver not loaded")
        return self.found

    def refresh_gpu(self, gpu: model.Gpu) -> model.Gpu:
        return gpu

    def read_minor(self, gpu: model.Gpu) -> int:
        return gpu.minor

    def is_current(self, gpu: model.Gpu, profile_ids: Iterable[int]) -> bool:
        del gpu, profile_ids
        return True

    def set_gpus(self, inventory: model.Inventory) -> None:
        """It is told, and forgets."""

    def hung_call(self, gpu: ids.GpuUuid) -> None:
        """No call of it ever hangs: that of `inventory` is of all."""


@pytest.fixture
def nvml() -> SlowNvml:
    return SlowNvml()


@pytest.fixture
def read(nvml: SlowNvml) -> discovery.Discovery:
    """Read once."""
    created = discovery.Discovery(nvml)
    created.refresh()
    assert nvml.begun.acquire(timeout=5)
    return created


def test_the_old_inventory_is_trusted_during_a_reread(
    read: discovery.Discovery, nvml: SlowNvml
) -> None:
    nvml.may_end.clear()
    with futures.ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read.refresh)
        assert nvml.begun.acquire(timeout=5)
        trusting = pool.submit(read.trusted)
        done = futures.wait((trusting,), timeout=2).done
        nvml.may_end.set()
        assert done == {trusting}
        assert reading.result(5) == trusting.result(5)
    assert nvml.readings == 2


def test_concurrent_rereads_of_the_inventory_are_merged_into_one(
    read: discovery.Discovery, nvml: SlowNvml
) -> None:
    nvml.fails = True
    with pytest.raises(errors.DeviceFault):
        read.refresh()
    assert nvml.begun.acquire(timeout=5)
    nvml.may_end.clear()
    gate = threading.Barrier(CALLERS + 1)

    def trusted() -> model.Inventory:
        gate.wait(5)
        return read.trusted()

    with futures.ThreadPoolExecutor(CALLERS) as pool:
        futures_value = [pool.submit(trusted) for _ in range(CALLERS)]
        gate.wait(5)
        assert nvml.begun.acquire(timeout=5)
        nvml.may_end.set()
        assert [len(future.result(5).gpus) for future in futures_value] == [2] * CALLERS
    assert nvml.readings == 3
