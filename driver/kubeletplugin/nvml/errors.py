"""A single pynvml call, and the mapping of its failures."""

import functools
from collections.abc import Callable
from typing import Any

import pynvml
import structlog

from driver import errors, ids
from driver.kubeletplugin.nvml import lanes

ABSENT = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
}
"""The GPU, the link or the driver version does not have it."""
LIBRARY_GONE = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
}
"""Reported for one GPU, but true for all."""
NO_CODE = -1
_LOG = structlog.get_logger(__name__)


def call_nvml(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """Call pynvml once. Raises DeviceFault; Hung in a task that was abandoned.

    NVMLError's own text is a bare number for some codes until a library is loaded, and a structure
    newer than the driver knows raises no NVMLError at all (NV-7).
    """
    visit = lanes.current_task()
    if visit is not None:
        visit.enter(call.__name__)
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        raise errors.DeviceFault(device, call.__name__, e.value, str(e)) from e
    except (pynvml.NVMLLibraryMismatchError, UnicodeDecodeError) as e:
        raise errors.DeviceFault(device, call.__name__, NO_CODE, str(e)) from e
    finally:
        if visit is not None:
            visit.leave()


def call_if_supported(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """Same as `call_nvml`, but returns None if the call is not supported."""
    try:
        return call_nvml(device, call, *arguments)
    except errors.DeviceFault as fault:
        if fault.code in ABSENT:
            return None
        raise


def call_optional(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """Read an optional fact: returns None if the call fails.

    Raises DeviceFault if the GPU is lost or the library is gone.
    """
    try:
        return call_if_supported(device, call, *arguments)
    except errors.DeviceFault as fault:
        if fault.code in LIBRARY_GONE or fault.code == pynvml.NVML_ERROR_GPU_IS_LOST:
            raise
        _log_once(device, fault.call, fault.code, fault.text)
        return None


@functools.lru_cache(maxsize=1024)
def _log_once(device: str, call: str, code: int, text: str) -> None:
    """Log a failure once; every later read of the GPU meets it again."""
    _LOG.warning("fact of a GPU not read", gpu=device, call=call, code=code, error=text)


def invalid_value(device: str, call: str, value: object, expected: str) -> errors.DeviceFault:
    """Return the fault for a value that NVML returned and that cannot be valid."""
    return errors.DeviceFault(device, call, NO_CODE, f"{value!r} is not {expected}")


def parse_pci_address(info: Any) -> ids.PciAddress:  # noqa: ANN401 - pynvml's structures have no types
    """Return the sysfs form: `00000000:53:00.0` in NVML is `0000:53:00.0` in sysfs."""
    domain, _, rest = str(info.busId).lower().partition(":")
    try:
        return ids.PciAddress(f"{int(domain, 16):04x}:{rest}")
    except ValueError as e:
        raise invalid_value("", "nvmlDeviceGetPciInfo", info.busId, "a PCI address") from e
