"""CUDA contexts on the machine's devices: who may have one, how much memory it gets, how it ends.

A context is a process in NVML's lists for as long as its owner is connected. It costs no memory
itself (on hardware some hundred MiB). Pure, but for what it tells its owner.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from simulator import client, codes, cuda_codes, cuda_devices, faults, library, machine, state

ILLEGAL_ACCESS_XID = 31
"""MMU fault: what an illegal address of a kernel leads to."""


class Peer(Protocol):
    """A connected process, by the ids the node knows it by."""

    @property
    def pid(self) -> int:
        """Of the host."""

    @property
    def user(self) -> int:
        """Its user id."""

    def tell(self, *words: str) -> None:
        """A line it did not ask for."""

    def close(self) -> None:
        """End the connection, and with it what depends on it."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A device and the most bytes a context may have there; None is what there is."""

    device: cuda_devices.Device
    limit: int | None = None


@dataclass(eq=False, slots=True)
class Context:
    """The contexts of one process, one for each grant; `processes` are their entries in NVML.

    `lost` is why its calls fail from now on. What stands between the two is MPS's.
    """

    peer: Peer
    grants: tuple[Grant, ...]
    processes: tuple[state.Process, ...]
    mps: bool = False
    percentage: float = 100.0
    priority: int = 0
    connections: int = 0
    command: str = ""
    namespace: str = ""
    lost: cuda_codes.CudaError | None = field(default=None)

    @property
    def devices(self) -> frozenset[str]:
        """UUIDs."""
        return frozenset(grant.device.uuid for grant in self.grants)


def require_driver(of: machine.Machine) -> None:
    """As cuInit: libraries and kernel module are of one version."""
    if of.library_version != of.driver_version:
        raise cuda_codes.CudaError(
            cuda_codes.Result.SYSTEM_DRIVER_MISMATCH,
            f"libraries {of.library_version}, kernel module {of.driver_version}",
        )


def open_(
    of: machine.Machine, peer: Peer, grants: Sequence[Grant], *, mps: bool = False
) -> Context:
    """A context on each device; CudaError where a compute mode is in the way, or there is none."""
    if not grants:
        raise cuda_codes.CudaError(cuda_codes.Result.NO_DEVICE, "no device is visible")
    if not mps:  # a client of MPS works in the server's context
        for grant in grants:
            _require_mode(of, grant.device)
    processes = tuple(
        state.Process(
            peer.pid,
            0,
            grant.device.gpu_instance,
            grant.device.compute_instance,
            mps=mps,
            held=True,
        )
        for grant in grants
    )
    for grant, process in zip(grants, processes, strict=True):
        of.board(grant.device.gpu).processes.append(process)
    of.touch()
    return Context(peer, tuple(grants), processes, mps=mps)


def close(of: machine.Machine, context: Context) -> None:
    """The process ended: its memory is free."""
    for grant, process in zip(context.grants, context.processes, strict=True):
        board = of.board(grant.device.gpu)
        board.processes = [other for other in board.processes if other is not process]
    of.touch()


def lose(context: Context, why: cuda_codes.CudaError) -> None:
    """Every call of the process fails from now on; what it holds stays until it ends."""
    if context.lost is None:
        context.lost = why
        context.peer.tell("lost", str(int(why.code)), why.code.constant, why.words)


def is_stranded(of: machine.Machine, context: Context) -> bool:
    """Whether a device under it was reset, rebooted or lost."""
    return any(
        of.board(grant.device.gpu).lost
        or not any(process is other for other in of.board(grant.device.gpu).processes)
        for grant, process in zip(context.grants, context.processes, strict=True)
    )


def room(of: machine.Machine, context: Context, index: int) -> int:
    """Bytes a context can still get on its device number `index`."""
    grant, process = context.grants[index], context.processes[index]
    free = memory_of(of, grant.device)[1]
    return free if grant.limit is None else max(0, min(free, grant.limit - process.memory))


def memory_of(of: machine.Machine, device: cuda_devices.Device) -> tuple[int, int]:
    """Total and free bytes of a device."""
    nvml = library.Library(of)
    nvml.attach()
    memory = nvml.device_get_memory_info(device.handle)
    return memory.total, memory.free


def allocate(of: machine.Machine, context: Context, index: int, wanted: int | None) -> int:
    """So many bytes more, or all there is (None); the bytes it got. OUT_OF_MEMORY gives nothing."""
    if context.lost is not None:
        raise context.lost
    if not 0 <= index < len(context.grants):
        raise cuda_codes.CudaError(cuda_codes.Result.INVALID_DEVICE, f"no device {index}")
    left = room(of, context, index)
    if wanted is not None and wanted > left:
        raise cuda_codes.CudaError(
            cuda_codes.Result.OUT_OF_MEMORY, f"{wanted} bytes wanted, {left} left"
        )
    given = left if wanted is None else wanted
    context.processes[index].memory += given
    of.touch()
    return given


def fault(of: machine.Machine, context: Context) -> None:
    """A kernel touches an address that is none: an Xid, and the context is lost."""
    for grant in context.grants[:1]:
        device = grant.device
        faults.xid(of, device.gpu, ILLEGAL_ACCESS_XID, device.gpu_instance, device.compute_instance)
    lose(context, cuda_codes.CudaError(cuda_codes.Result.ILLEGAL_ADDRESS, "an illegal address"))


def forget(of: machine.Machine) -> None:
    """Drop what connected processes held: for a node process that starts, nobody is connected."""
    for board in of.state.boards.values():
        kept = [process for process in board.processes if not process.held]
        if len(kept) != len(board.processes):
            board.processes = kept
            of.touch()


def _require_mode(of: machine.Machine, device: cuda_devices.Device) -> None:
    """The compute mode of the GPU, or of the MIG device."""
    nvml = library.Library(of)
    nvml.attach()
    mode = nvml.device_get_compute_mode(client.Handle(device.handle))
    if mode == codes.ComputeMode.PROHIBITED:
        raise cuda_codes.CudaError(
            cuda_codes.Result.DEVICE_UNAVAILABLE, f"{device.uuid} is in compute mode Prohibited"
        )
    here = (device.gpu_instance, device.compute_instance)
    others = [
        process.pid
        for process in of.board(device.gpu).processes
        if (process.gpu_instance, process.compute_instance) == here and not process.mps
    ]
    if mode == codes.ComputeMode.EXCLUSIVE_PROCESS and others:
        raise cuda_codes.CudaError(
            cuda_codes.Result.DEVICE_UNAVAILABLE,
            f"{device.uuid} is in compute mode Exclusive_Process and process {others[0]} has it",
        )
