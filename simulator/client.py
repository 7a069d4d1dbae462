"""A client's side of NVML: what it sees, whether it initialised, and how handles are resolved."""

import functools
from collections.abc import Callable, Collection
from typing import Concatenate, NewType, ParamSpec, TypeVar

from simulator import codes, machine

Handle = NewType("Handle", str)
"""An `nvmlDevice_t`: opaque to clients, the same for the same GPU for as long as it exists."""

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


def is_call(method: object) -> bool:
    """Whether `method` was marked by `call`."""
    return getattr(method, _CALL, False) is True


class Client:
    """One NVML client of `of`.

    It sees the GPUs whose minor is in `visible` (all when None), in PCI order and numbered
    from 0, as in a container. `root` says whether it may change things.
    """

    def __init__(
        self, of: machine.Machine, *, visible: Collection[int] | None = None, root: bool = True
    ) -> None:
        self.machine = of
        self.gpus = tuple(g for g in of.gpus if visible is None or g.slot.minor in visible)
        self._root = root
        self._references = 0

    @property
    def initialised(self) -> bool:
        """Whether init was called more often than shutdown."""
        return self._references > 0

    def init(self, flags: int = 0) -> None:
        """NotFound when no GPU is visible, unless `flags` holds NVML_INIT_FLAG_NO_GPUS."""
        if not self.gpus and not flags & INIT_FLAG_NO_GPUS:
            raise codes.NvmlError(codes.Return.NOT_FOUND)
        self._references += 1

    def shutdown(self) -> None:
        """Undo one init; one too many is UNINITIALIZED and harmless."""
        if not self.initialised:
            raise codes.NvmlError(codes.Return.UNINITIALIZED)
        self._references -= 1

    def _handle(self, gpu: machine.Gpu) -> Handle:
        if self.machine.board(gpu).lost:
            raise codes.NvmlError(codes.Return.GPU_IS_LOST)
        return Handle(f"gpu/{gpu.bus_id}")

    def _gpu(self, device: Handle) -> machine.Gpu:
        for gpu in self.gpus:
            if device == f"gpu/{gpu.bus_id}":
                if self.machine.board(gpu).lost:
                    raise codes.NvmlError(codes.Return.GPU_IS_LOST)
                return gpu
        raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)

    def _board(self, device: Handle) -> machine.Board:
        return self.machine.board(self._gpu(device))

    def _require_root(self) -> None:
        if not self._root:
            raise codes.NvmlError(codes.Return.NO_PERMISSION)
