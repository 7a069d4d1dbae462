"""MIG's capabilities: who may open what, as minors of nvidia-caps and files of proc.

Source: nv-caps.c of the open kernel modules. The files exist while the instances do.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator import machine, state

CONFIG = 1
MONITOR = 2

_GPUS, _GPU_INSTANCES, _COMPUTE_INSTANCES = 32, 15, 8


@dataclass(frozen=True, slots=True)
class Capability:
    """`path` below proc/driver/nvidia/capabilities, `minor` of its node, its permission bits."""

    path: str
    minor: int
    mode: int


def gpu_instance_minor(gpu: int, instance: int) -> int:
    """The minor for GPU minor and GPU-instance id."""
    return 3 + (gpu * _GPU_INSTANCES + instance) * (_COMPUTE_INSTANCES + 1)


def access(gpu: int, made: state.GpuInstance, compute: state.ComputeInstance) -> frozenset[int]:
    """The minors a client must be able to open to use a MIG device of the GPU with that minor."""
    minor = gpu_instance_minor(gpu, made.id)
    return frozenset({minor, minor + 1 + compute.id})


def present(of: machine.Machine) -> Iterator[Capability]:
    """The capabilities of the machine as it is now."""
    yield Capability("mig/config", CONFIG, 0o400)
    yield Capability("mig/monitor", MONITOR, 0o444)
    for gpu in of.gpus:
        for made in of.board(gpu).instances:
            place = f"gpu{of.minor(gpu)}/mig/gi{made.id}"
            minor = gpu_instance_minor(of.minor(gpu), made.id)
            yield Capability(f"{place}/access", minor, 0o444)
            for compute in made.compute:
                yield Capability(f"{place}/ci{compute.id}/access", minor + 1 + compute.id, 0o444)


def minors() -> Iterator[str]:
    """The lines of proc/driver/nvidia-caps/mig-minors."""
    yield f"config {CONFIG}"
    yield f"monitor {MONITOR}"
    for gpu in range(_GPUS):
        for instance in range(_GPU_INSTANCES):
            minor = gpu_instance_minor(gpu, instance)
            yield f"gpu{gpu}/gi{instance}/access {minor}"
            for compute in range(_COMPUTE_INSTANCES):
                yield f"gpu{gpu}/gi{instance}/ci{compute}/access {minor + 1 + compute}"
