"""A CUDA program of its own, on the driver API alone: `python cuda_client.py LIBRARY ACTION ...`.

It needs nothing but Python's standard library, so that any user, namespace or image can run it. It
prints one JSON object a line, and ends when its stdin does.

    info            what CUDA shows of each device, and of its memory
    hold BYTES      allocate so much, say so, and wait for the end of stdin
    fill            allocate until it is refused, and say how much that was
    pin BYTES       allocate so much page-locked host memory, and let a kernel write to its end
    fault           write to an address that is not mapped, and say what CUDA answers
    spin SECONDS    launch kernels until then; say how many, and the first error
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any

_CHUNK = 64 << 20
_MULTIPROCESSORS, _MAJOR, _MINOR = 16, 75, 76  # CUdevice_attribute of cuda.h
_PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry poke(.param .u64 where) {
    .reg .u64 %address;
    .reg .u32 %value;
    ld.param.u64 %address, [where];
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
\0"""
_UNMAPPED = 0xDEADBEEF0000
_MAPPED = 2  # CU_MEMHOSTALLOC_DEVICEMAP


class CudaError(Exception):
    """A call that CUDA refused: the call and the error's name."""


class Cuda:
    """The driver API on device 0 of what is visible. Raises CudaError."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of libcuda."""
        try:
            function = getattr(self._library, name)
        except AttributeError as e:
            raise CudaError(f"{name}: libcuda has no such function") from e
        code = function(*arguments)
        if code:
            raise CudaError(f"{name}: {self._name(code)}")

    def _name(self, code: int) -> str:
        text = ctypes.c_char_p()
        try:
            self._library.cuGetErrorName(code, ctypes.byref(text))
        except AttributeError:
            return f"CUDA error {code}"
        return (text.value or b"").decode() or f"CUDA error {code}"

    def attribute(self, number: int) -> int:
        """Read a CUdevice_attribute."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), number, self.device)
        return value.value

    def memory(self) -> tuple[int, int]:
        """Free and total bytes, as cudaMemGetInfo shows them."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size: int) -> int:
        """Allocate bytes on the device; their address."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer.value

    def kernel(self) -> Callable[[int], None]:
        """Load the kernel that writes to an address; a call launches it and waits for it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), _PTX)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"poke")

        def launch(address: int) -> None:
            argument = ctypes.c_uint64(address)
            arguments = (ctypes.c_void_p * 1)(ctypes.addressof(argument))
            shape = (1, 1, 1, 1, 1, 1, 0, None)
            self.call("cuLaunchKernel", function, *shape, arguments, None)
            self.call("cuCtxSynchronize")

        return launch


def say(**fields: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
    """Print one line."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def info(cuda: Cuda) -> None:
    """Tell what a client is shown."""
    count = ctypes.c_int()
    cuda.call("cuDeviceGetCount", ctypes.byref(count))
    free, total = cuda.memory()
    say(
        devices=count.value,
        multiprocessors=cuda.attribute(_MULTIPROCESSORS),
        capability=[cuda.attribute(_MAJOR), cuda.attribute(_MINOR)],
        free=free,
        total=total,
    )


def hold(cuda: Cuda, size: str = "0") -> None:
    """Keep memory until stdin ends."""
    if int(size):
        cuda.allocate(int(size))
    free, total = cuda.memory()
    say(held=int(size), free=free, total=total)
    sys.stdin.read()


def fill(cuda: Cuda) -> None:
    """Allocate until CUDA refuses."""
    taken = 0
    try:
        while True:
            cuda.allocate(_CHUNK)
            taken += _CHUNK
    except CudaError as refusal:
        say(taken=taken, refusal=str(refusal))


def pin(cuda: Cuda, size: str) -> None:
    """Allocate page-locked host memory, as a framework's data loader does, and use it."""
    launch, host, device = cuda.kernel(), ctypes.c_void_p(), ctypes.c_uint64()
    try:
        cuda.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(int(size)), _MAPPED)
        cuda.call("cuMemHostGetDevicePointer_v2", ctypes.byref(device), host, 0)
        launch(device.value + int(size) - 4)
        say(pinned=int(size), error="")
    except CudaError as refusal:
        say(pinned=0, error=str(refusal))


def fault(cuda: Cuda) -> None:
    """Write where nothing is mapped."""
    launch = cuda.kernel()
    say(launching=True)
    try:
        launch(_UNMAPPED)
        say(error="")
    except CudaError as refusal:
        say(error=str(refusal))


def spin(cuda: Cuda, seconds: str = "10") -> None:
    """Launch kernels until the time is over, or one fails."""
    launch, address, launches = cuda.kernel(), cuda.allocate(4), 0
    ends = time.monotonic() + float(seconds)
    say(spinning=True)
    try:
        while time.monotonic() < ends:
            launch(address)
            launches += 1
        say(launches=launches, error="")
    except CudaError as refusal:
        say(launches=launches, error=str(refusal))


ACTIONS: dict[str, Callable[..., None]] = {
    "info": info,
    "hold": hold,
    "fill": fill,
    "pin": pin,
    "fault": fault,
    "spin": spin,
}


def main(arguments: list[str]) -> int:
    """Run an action; the exit status is 1 where CUDA refused before it began."""
    if len(arguments) < 2 or arguments[1] not in ACTIONS:  # noqa: PLR2004 - library and action
        sys.stderr.write(__doc__ or "")
        return 2
    library, action, *words = arguments
    try:
        ACTIONS[action](Cuda(library), *words)
    except (CudaError, OSError) as refusal:
        say(refusal=str(refusal))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
