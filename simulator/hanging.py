"""Which requests of NVML clients hang while a GPU hangs: those that the driver would take to it.

As under Xid 119: a call that concerns the GPU returns once the GPU answers again, all others at
once. A search by UUID goes through the GPUs before the one it ends at (nvml.h: NVML may initialize
additional GPUs as it searches for the target GPU), which here touches each.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from simulator import machine, wire

SMI = "nvidia_smi"
EVERY = "*"
HANDLE = re.compile(r"\b(?:gpu|mig|gi|ci)/([0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9A-F])")
"""The GPU of a handle (client.Handle)."""


def hangs(of: machine.Machine, request: wire.Request) -> bool:
    """Whether the request waits for a GPU that hangs."""
    if not any(board.hangs for board in of.state.boards.values()):
        return False
    concerned = _concerned(of, request)
    return any(of.board(gpu).hangs in {EVERY, request.call} for gpu in concerned)


def _concerned(of: machine.Machine, request: wire.Request) -> Iterator[machine.Gpu]:
    there = [gpu for gpu in of.gpus if not gpu.slot.excluded and not of.board(gpu).gone]
    match request.call, request.arguments:
        case "device_get_handle_by_index", (index, *_) if index.isdigit():
            yield from there[int(index) : int(index) + 1]
        case "device_get_handle_by_uuid", (uuid, *_):
            yield from _searched(of, there, uuid)
        case "device_get_handle_by_pci_bus_id", (bus_id, *_):
            yield from (gpu for gpu in there if gpu.bus_id.endswith(bus_id.upper()))
        case call, arguments if call == SMI:
            yield from (gpu for gpu in there if _is_named(of, gpu, arguments))
        case _, arguments:
            found = set(HANDLE.findall(" ".join(arguments)))
            yield from (gpu for gpu in there if gpu.bus_id in found)


def _searched(
    of: machine.Machine, there: Sequence[machine.Gpu], uuid: str
) -> Iterator[machine.Gpu]:
    for gpu in there:
        yield gpu
        parts = (part.uuid for made in of.board(gpu).instances for part in made.compute)
        if uuid in {gpu.uuid, *parts}:
            return


def _is_named(of: machine.Machine, gpu: machine.Gpu, argv: Sequence[str]) -> bool:
    """Without `-i` the program asks every GPU."""
    named = [value for option, value in itertools.pairwise(argv) if option == "-i"]
    ids = {gpu.uuid, gpu.bus_id, gpu.slot.pci, str(of.minor(gpu))}
    return not named or not ids.isdisjoint(named[0].split(","))
