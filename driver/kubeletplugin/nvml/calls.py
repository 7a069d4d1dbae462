"""One call of pynvml, and what its failures mean."""

from collections.abc import Callable
from typing import Any

import pynvml

from driver import errors, ids

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
"""Said of one GPU, yet true of all."""
NO_CODE = -1


def ask(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """One call of pynvml. Raises DeviceFault.

    NVMLError's own text is a bare number for some codes until a library is loaded, and a newer
    structure than the driver knows raises no NVMLError at all (node-layer: pynvml's traps).
    """
    try:
        return call(*arguments)
    except pynvml.NVMLError as e:
        raise errors.DeviceFault(device, call.__name__, e.value, str(e)) from e
    except (pynvml.NVMLLibraryMismatchError, UnicodeDecodeError) as e:
        raise errors.DeviceFault(device, call.__name__, NO_CODE, str(e)) from e


def maybe(device: str, call: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - as pynvml
    """As `ask`; None where it does not exist."""
    try:
        return ask(device, call, *arguments)
    except errors.DeviceFault as fault:
        if fault.code in ABSENT:
            return None
        raise


def garbage(device: str, call: str, value: object, expected: str) -> errors.DeviceFault:
    """NVML answered, and the answer cannot be true."""
    return errors.DeviceFault(device, call, NO_CODE, f"{value!r} is not {expected}")


def address(info: Any) -> ids.PciAddress:  # noqa: ANN401 - pynvml's structures have no types
    """`00000000:53:00.0` in NVML is `0000:53:00.0` in sysfs."""
    domain, _, rest = str(info.busId).lower().partition(":")
    try:
        return ids.PciAddress(f"{int(domain, 16):04x}:{rest}")
    except ValueError as e:
        raise garbage("", "nvmlDeviceGetPciInfo", info.busId, "a PCI address") from e
