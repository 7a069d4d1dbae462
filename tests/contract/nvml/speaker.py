"""pynvml under the names of the fake, so that one suite speaks to both.

`device_get_pci_info(handle).bus_id` is `nvmlDeviceGetPciInfo(handle).busId`. Handles compare by
what they point to, and refusals are the fake's `codes.NvmlError`.
"""

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from simulator import codes

_CALLS = {
    "system_get_nvml_version": "nvmlSystemGetNVMLVersion",
    "device_get_uuid": "nvmlDeviceGetUUID",
    "device_get_handle_by_uuid": "nvmlDeviceGetHandleByUUID",
    "device_get_p2p_status": "nvmlDeviceGetP2PStatus",
    "event_set_wait": "nvmlEventSetWait_v2",
}
_MEMBERS = {"memory_size_mb": "memorySizeMB"}
_MOST_INSTANCES = 7


@dataclass(frozen=True)
class Handle:
    """A device, an instance or an event set, by its address."""

    address: int | None
    pointer: Any

    def __eq__(self, other: object) -> bool:
        """Two pointers to one thing are one handle."""
        return isinstance(other, Handle) and self.address == other.address

    def __hash__(self) -> int:
        """Include the address."""
        return hash(self.address)


class Struct:
    """A structure whose members have the fake's names."""

    def __init__(self, structure: ctypes.Structure) -> None:
        self._of = structure

    def __getattr__(self, name: str) -> Any:
        return plain(getattr(self._of, _MEMBERS.get(name, camel(name))))


class Speaker:
    """Calls pynvml."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return asking(getattr(pynvml, _CALLS.get(name, f"nvml{camel('_' + name)}")))

    def device_get_memory_info(self, device: Handle) -> Any:
        """The v2 structure."""
        answer = asking(pynvml.nvmlDeviceGetMemoryInfo)
        return answer(device, pynvml.nvmlMemory_v2)

    def device_is_mig_device_handle(self, device: Handle) -> bool:
        """A c_uint in pynvml."""
        return bool(pynvml.nvmlDeviceIsMigDeviceHandle(device.pointer).value)

    def device_get_field_values(
        self, device: Handle, fields: Sequence[int], scopes: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Code and unsigned value of each."""
        pairs = list(zip(fields, scopes, strict=True))
        field_values = pynvml.nvmlDeviceGetFieldValues(device.pointer, pairs)
        return [(field_value.nvmlReturn, field_value.value.uiVal) for field_value in field_values]

    def device_get_gpu_instance_possible_placements(self, device: Handle, profile: int) -> Any:
        """Counted first, then read."""
        count = ctypes.c_uint()
        answer = asking(pynvml.nvmlDeviceGetGpuInstancePossiblePlacements)
        answer(device, profile, None, ctypes.byref(count))
        result = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
        answer(device, profile, result, ctypes.byref(count))
        return [plain(entry) for entry in result]

    def device_create_gpu_instance_with_placement(
        self, device: Handle, profile: int, start: int, size: int
    ) -> Any:
        """The placement by reference."""
        arguments = ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(start, size))
        return asking(pynvml.nvmlDeviceCreateGpuInstanceWithPlacement)(device, profile, arguments)

    def device_get_gpu_instances(self, device: Handle, profile: int) -> list[Handle]:
        """Into an array."""
        count, result = ctypes.c_uint(), (pynvml.c_nvmlGpuInstance_t * _MOST_INSTANCES)()
        asking(pynvml.nvmlDeviceGetGpuInstances)(device, profile, result, ctypes.byref(count))
        return [plain(entry) for entry in list(result)[: count.value]]


def asking(call: Callable[..., object]) -> Callable[..., Any]:
    """A call of pynvml that takes handles, answers plain values and raises the fake's error."""

    def ask(*arguments: object) -> Any:
        try:
            return plain(call(*(raw(argument) for argument in arguments)))
        except pynvml.NVMLError as e:
            raise codes.NvmlError(codes.Return(e.value)) from e

    return ask


def raw(argument: object) -> object:
    return argument.pointer if isinstance(argument, Handle) else argument


def plain(value: Any) -> Any:
    """Return what pynvml returns, as the fake would."""
    if isinstance(value, ctypes._Pointer):
        return Handle(ctypes.cast(value, ctypes.c_void_p).value, value)
    if isinstance(value, ctypes.Structure):
        return Struct(value)
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


def camel(name: str) -> str:
    """`_get_name` to GetName."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
