"""Which devices a CUDA process enumerates, and in which order.

Sources: CUDA programming guide (CUDA_VISIBLE_DEVICES), MIG user guide ("a single CUDA process can
enumerate a single MIG device only"). Assumed: that a process which may open a MIG device and names
nothing sees that one device only, and that a device named twice ends the list.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from simulator import client, codes, geometry, machine, partition


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or a MIG device, which has `slices` of the GPU's `of_slices`; `handle` is NVML's."""

    gpu: machine.Gpu
    uuid: str
    handle: client.Handle
    gpu_instance: int = codes.WHOLE_GPU
    compute_instance: int = codes.WHOLE_GPU
    slices: int = 1
    of_slices: int = 1

    @property
    def is_mig(self) -> bool:
        """Whether it is a part of a GPU."""
        return self.gpu_instance != codes.WHOLE_GPU


def reachable(nvml: client.Client) -> list[list[Device]]:
    """What `nvml`'s client may open: for each GPU itself, or its MIG devices; lost ones not."""
    found = [_of_gpu(nvml, gpu) for gpu in nvml.gpus if not nvml.machine.board(gpu).lost]
    return [devices for devices in found if devices]


def _of_gpu(nvml: client.Client, gpu: machine.Gpu) -> list[Device]:
    if not nvml.machine.board(gpu).mig:
        return [Device(gpu, gpu.uuid, client.Handle(f"gpu/{gpu.bus_id}"))]
    profiles = partition.Partition(nvml.machine, gpu).profiles()
    whole = max(profile.shape.slices for profile in profiles)
    return [
        Device(
            gpu,
            compute.uuid,
            client.Handle(f"mig/{gpu.bus_id}/{compute.serial}"),
            made.id,
            compute.id,
            geometry.COMPUTE_SLICES[compute.profile],
            whole,
        )
        for made, compute in nvml.mig_devices(gpu)
    ]


def enumerated(found: Sequence[Sequence[Device]], visible: str | None) -> list[Device]:
    """The devices of a process: `found` by GPU, `visible` its CUDA_VISIBLE_DEVICES (None: unset).

    The list ends before the first entry that names nothing.
    """
    if visible is None:
        chosen = [device for devices in found for device in devices]
    else:
        chosen = []
        for entry in visible.split(","):
            named = _named(found, entry.strip())
            if named is None or named in chosen:
                break
            chosen.append(named)
    mig = [device for device in chosen if device.is_mig]
    return mig[:1] or chosen


def _named(found: Sequence[Sequence[Device]], entry: str) -> Device | None:
    """An ordinal, or a UUID's first characters: of a GPU (its first MIG device) or a MIG device."""
    if entry.isdigit():
        return found[int(entry)][0] if int(entry) < len(found) else None
    if entry.startswith("GPU-"):
        matching = [devices[0] for devices in found if devices[0].gpu.uuid.startswith(entry)]
    elif entry.startswith("MIG-"):
        matching = [device for devices in found for device in devices if device.uuid == entry]
    else:
        matching = []
    return matching[0] if len(matching) == 1 else None
