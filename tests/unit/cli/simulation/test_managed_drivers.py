"""`ration simulate` places claims of managed drivers by the policies, as the controller does."""

import pytest

from driver import names
from driver.cli.simulation import dump, scheduler
from tests.support import snapshots
from tests.support.builders import managed_gpus, objects

GPU = "device.attributes['gpu.nvidia.com']"
EXPRESSION = (
    f"device.driver == 'gpu.nvidia.com' && {GPU}.type == 'mig' && {GPU}.profile == '1g.10gb'"
)
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "mig.nvidia.com"},
    "spec": {"selectors": [{"cel": {"expression": EXPRESSION}}]},
}


@pytest.mark.parametrize("gpu", ["gpu-0", "gpu-1"])
def test_a_part_goes_to_the_gpu_that_is_cut_already(gpu: str) -> None:
    raw = [managed_gpus.NODE, *managed_gpus.published("dynamic-mig"), managed_gpus.RULE, CLASS]
    busy = managed_gpus.holding("busy", f"{gpu}-mig-1g10gb-19-3")
    caches = dump.read([*raw, busy]).caches
    simulated = scheduler.SimulatedScheduler.from_caches(names.DRIVER, caches, snapshots.DECIDING)
    simulated.add([objects.claim("part", objects.a_request(deviceClassName="mig.nvidia.com"))])
    answer = simulated.decide(objects.pod("pod", "part"))
    assert isinstance(answer, scheduler.BoundPod), answer
    (allocated,) = answer.allocations
    assert allocated.allocation is not None
    (result,) = allocated.allocation.results
    assert result.device.device.startswith(f"{gpu}-mig-1g10gb")
