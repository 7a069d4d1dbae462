"""The GPUs a command is about: those of `-i`, else all the client sees."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from simulator import client, codes, kernel_calls, library
from simulator.smi import refusal

P = ParamSpec("P")
T = TypeVar("T")
ABSENT = {codes.Return.NOT_SUPPORTED, codes.Return.FUNCTION_NOT_FOUND}


class Nvml(library.Library, kernel_calls.KernelCalls):
    """NVML, and what the program asks the kernel module for itself."""


@dataclass(frozen=True, slots=True)
class Target:
    """One GPU: the number it is listed by, its handle, its PCI address as NVML writes it."""

    index: int
    handle: client.Handle
    bus_id: str


def targets(nvml: Nvml, ids: str | None) -> Iterator[Target]:
    """In the order they are numbered by. Raises RefusedError at a GPU that cannot be opened."""
    wanted = ids.split(",") if ids else None
    found = False
    for index, gpu in enumerate(nvml.gpus):
        names = {str(index), gpu.uuid, gpu.bus_id, gpu.slot.pci}
        if wanted is not None and not names.intersection(wanted):
            continue
        found = True
        yield Target(index, _open(nvml, index, gpu.bus_id), gpu.bus_id)
    if not found:
        raise refusal.RefusedError("No devices were found\n", codes.Return.NOT_FOUND)


def mig_devices(nvml: Nvml, gpu: client.Handle) -> Iterator[tuple[int, client.Handle]]:
    """The MIG devices of a GPU, each with its index; indices may have gaps."""
    for index in range(nvml.device_get_max_mig_device_count(gpu)):
        try:
            device = nvml.device_get_mig_device_handle_by_index(gpu, index)
        except codes.NvmlError as e:
            if e.code != codes.Return.NOT_FOUND:
                raise
        else:
            yield index, device


def _open(nvml: Nvml, index: int, bus_id: str) -> client.Handle:
    try:
        return nvml.device_get_handle_by_index(index)
    except codes.NvmlError as e:
        why = refusal.words(e.code)
        more = (
            "  Reboot the system to recover this GPU" if e.code == codes.Return.GPU_IS_LOST else ""
        )
        raise refusal.RefusedError(
            f"Unable to determine the device handle for GPU{index}: {bus_id}: {why}.{more}\n",
            e.code,
        ) from e


def answer(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What an NVML call says, or None where the GPU or the driver does not have it."""
    try:
        return call(*args, **kwargs)
    except codes.NvmlError as e:
        if e.code not in ABSENT:
            raise
        return None
