"""A client's side of NVML: what it sees, whether it initialised, and how handles are resolved."""

import functools
from collections.abc import Callable, Collection, Iterator
from typing import Concatenate, NewType, ParamSpec, TypeVar

from simulator import capabilities, codes, exports, machine, state

Handle = NewType("Handle", str)
"""An `nvmlDevice_t`, `nvmlGpuInstance_t` or `nvmlComputeInstance_t`: opaque to clients.

The same for the same thing for as long as it exists: `gpu/BUS_ID`, `mig/BUS_ID/SERIAL` for a MIG
device, `gi/...` and `ci/...` for instances.
"""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Client")

INIT_FLAG_NO_GPUS = 1
_CALL = "_is_nvml_call"


def call(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Mark an NVML call: reachable over the wire, UNINITIALIZED before init."""

    @functools.wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.initialised:
            raise codes.NvmlError(codes.Return.UNINITIALIZED)
        return method(self, *args, **kwargs)

    setattr(guarded, _CALL, True)
    return guarded


def since(
    function: str,
) -> Callable[[Callable[Concatenate[S, P], R]], Callable[Concatenate[S, P], R]]:
    """Mark a call that drivers do not have which are older than `function` of their library.

    Those answer FUNCTION_NOT_FOUND, to which bindings turn the symbol that the library lacks.
    """
    major = exports.first_drivers()[function]

    def mark(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
        @functools.wraps(method)
        def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if self.machine.driver_major < major:
                raise codes.NvmlError(codes.Return.FUNCTION_NOT_FOUND)
            return method(self, *args, **kwargs)

        return guarded

    return mark


def is_call(method: object) -> bool:
    """Whether `method` was marked by `call`."""
    return getattr(method, _CALL, False) is True


def is_mig(device: Handle) -> bool:
    """Whether the handle is a MIG device's."""
    return device.startswith("mig/")


class Client:
    """One NVML client of `of`.

    It sees the GPUs whose minor is in `visible` (all when None), in PCI order and numbered
    from 0, as in a container, and can open the MIG capabilities in `caps` (all when None).
    `root` says whether it may change things, `others` how many clients are open beside it, and
    `held` which GPUs these have open, by bus id.
    """

    def __init__(
        self,
        of: machine.Machine,
        *,
        visible: Collection[int] | None = None,
        caps: Collection[int] | None = None,
        root: bool = True,
        others: int = 0,
        held: Collection[str] = (),
    ) -> None:
        self.machine = of
        self._seen = visible
        self._caps = caps
        self._root = root
        self._others = others
        self._held = held
        self._references = 0

    @property
    def gpus(self) -> tuple[machine.Gpu, ...]:
        """The GPUs it enumerates: lost ones too, gone ones not."""
        return tuple(gpu for gpu in self._visible if not self.machine.board(gpu).gone)

    @property
    def _visible(self) -> tuple[machine.Gpu, ...]:
        """A GPU that moved is seen by who saw it before, until another one gets its old minor."""
        minors = {gpu.slot.pci: self.machine.minor(gpu) for gpu in self.machine.gpus}
        gpus = (gpu for gpu in self.machine.gpus if not gpu.slot.excluded)
        if self._seen is None:
            return tuple(gpus)
        left = set(self._seen) - set(minors.values())
        return tuple(
            gpu for gpu in gpus if minors[gpu.slot.pci] in self._seen or gpu.slot.minor in left
        )

    @property
    def initialised(self) -> bool:
        """Whether init was called more often than shutdown."""
        return self._references > 0

    def init(self, flags: int = 0) -> None:
        """Refused when no GPU is visible, unless `flags` holds NVML_INIT_FLAG_NO_GPUS.

        A library newer than the driver in the kernel is LIB_RM_VERSION_MISMATCH.
        """
        if self.machine.library_version != self.machine.driver_version:
            raise codes.NvmlError(codes.Return.LIB_RM_VERSION_MISMATCH)
        if not self.gpus and not flags & INIT_FLAG_NO_GPUS:
            raise codes.NvmlError(codes.Return.NOT_FOUND)
        self._references += 1

    def attach(self) -> None:
        """Count as initialised, for the request of a client that counts its own init calls."""
        self._references += 1

    def shutdown(self) -> None:
        """Undo one init; one too many is UNINITIALIZED and harmless."""
        if not self.initialised:
            raise codes.NvmlError(codes.Return.UNINITIALIZED)
        self._references -= 1

    @property
    def may_configure(self) -> bool:
        """Whether it may make and list MIG instances: root that can open the config capability."""
        return self._root and (self._caps is None or capabilities.CONFIG in self._caps)

    def mig_devices(
        self, gpu: machine.Gpu
    ) -> Iterator[tuple[state.GpuInstance, state.ComputeInstance]]:
        """The MIG devices of `gpu` that this client may open, by index."""
        board = self.machine.board(gpu)
        found = [(made, compute) for made in board.instances for compute in made.compute]
        for made, compute in sorted(found, key=lambda pair: pair[1].index):
            needed = capabilities.access(self.machine.minor(gpu), made, compute)
            if self._caps is None or self.may_configure or needed <= set(self._caps):
                yield made, compute

    def compute_by_serial(
        self, gpu: machine.Gpu, serial: int
    ) -> tuple[state.GpuInstance, state.ComputeInstance]:
        """A compute instance and its parent; NOT_FOUND once it is destroyed."""
        for made in self.machine.board(gpu).instances:
            for compute in made.compute:
                if compute.serial == serial:
                    return made, compute
        raise codes.NvmlError(codes.Return.NOT_FOUND)

    def _handle(self, gpu: machine.Gpu) -> Handle:
        self._require_present(gpu)
        return Handle(f"gpu/{gpu.bus_id}")

    def _part(
        self, kind: str, gpu: machine.Gpu, of: state.GpuInstance | state.ComputeInstance
    ) -> Handle:
        self._require_present(gpu)
        return Handle(f"{kind}/{gpu.bus_id}/{of.serial}")

    def _parse_part(self, kind: str, handle: Handle) -> tuple[machine.Gpu, int]:
        found, _, rest = handle.partition("/")
        bus_id, _, serial = rest.partition("/")
        if found != kind or not serial.isdigit():
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return self._gpu(Handle(f"gpu/{bus_id}")), int(serial)

    def _gpu(self, device: Handle) -> machine.Gpu:
        """The whole GPU a handle stands for; NOT_SUPPORTED for a MIG device's."""
        for gpu in self._visible:
            if device == f"gpu/{gpu.bus_id}":
                self._require_present(gpu)
                return gpu
        if is_mig(device):
            self._mig_device(device)
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)

    def _mig_device(
        self, device: Handle
    ) -> tuple[machine.Gpu, state.GpuInstance, state.ComputeInstance]:
        gpu, serial = self._parse_part("mig", device)
        return gpu, *self.compute_by_serial(gpu, serial)

    def _owner(self, device: Handle) -> machine.Gpu:
        """The GPU of a handle, be it the GPU's or one of its MIG devices'."""
        return self._mig_device(device)[0] if is_mig(device) else self._gpu(device)

    def _board(self, device: Handle) -> state.Board:
        return self.machine.board(self._gpu(device))

    def _require_present(self, gpu: machine.Gpu) -> None:
        if self.machine.board(gpu).lost:
            raise codes.NvmlError(codes.Return.GPU_IS_LOST)

    def _require_root(self) -> None:
        if not self._root:
            raise codes.NvmlError(codes.Return.NO_PERMISSION)
