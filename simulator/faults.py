"""What can go wrong with a machine, as `simulator fault` makes it happen."""

import re

from simulator import client, codes, events, library, machine, state

VERSION = re.compile(r"\d{3}\.\d{2,3}(\.\d{2})?")
RECOVERY_XID = 154
PROCESS_CALLS = ("mps_daemon", "mps_server", "cuda_open")
"""Calls of `sessions` that can be slow: a control daemon's start, its server's, a client's."""


class BadFaultError(ValueError):
    """A fault that cannot happen to this machine, in words."""


def xid(of: machine.Machine, gpu: machine.Gpu, code: int, instance: int, compute: int) -> None:
    """An Xid of the GPU, or of an instance when its ids are not `codes.WHOLE_GPU`."""
    if instance != codes.WHOLE_GPU:
        made = next((one for one in of.board(gpu).instances if one.id == instance), None)
        if made is None:
            raise BadFaultError(f"GPU {of.minor(gpu)} has no GPU instance {instance}")
        if compute != codes.WHOLE_GPU and compute not in {one.id for one in made.compute}:
            raise BadFaultError(f"GPU instance {instance} has no compute instance {compute}")
    elif compute != codes.WHOLE_GPU:
        raise BadFaultError("a compute instance is named together with its GPU instance")
    if not 1 <= code <= 999:  # noqa: PLR2004 - Xids have up to three digits
        raise BadFaultError(f"Xid {code}: expected 1 to 999")
    of.emit(events.Event(gpu.slot.pci, events.EventType.XID, code, instance, compute))


def ecc(of: machine.Machine, gpu: machine.Gpu, corrected: int, uncorrected: int) -> None:
    """So many more memory errors, in the volatile and the aggregate counters."""
    if not gpu.product.ecc:
        raise BadFaultError(f"{gpu.product.name} has no ECC")
    if min(corrected, uncorrected) < 0 or corrected == uncorrected == 0:
        raise BadFaultError("expected a positive number of errors")
    board = of.board(gpu)
    for counted in (board.ecc, board.ecc_aggregate):
        counted.corrected += corrected
        counted.uncorrected += uncorrected
    kinds = events.EventType
    if corrected:
        of.emit(events.Event(gpu.slot.pci, kinds.SINGLE_BIT_ECC, corrected))
    if uncorrected:
        of.emit(events.Event(gpu.slot.pci, kinds.DOUBLE_BIT_ECC, uncorrected))


def remap(of: machine.Machine, gpu: machine.Gpu, *, uncorrected: bool, failed: bool) -> None:
    """One more row to remap: pending until a reset, or failed for good."""
    if gpu.product.architecture < codes.Architecture.AMPERE:
        raise BadFaultError(f"{gpu.product.architecture.name} retires pages, it remaps no rows")
    rows = of.board(gpu).remap
    if failed:
        rows.failed = True
    else:
        rows.pending = True
        if uncorrected:
            rows.uncorrected += 1
        else:
            rows.corrected += 1
    of.touch()


def sram(of: machine.Machine, gpu: machine.Gpu, counted: state.Errors, *, exceeded: bool) -> None:
    """So many more errors of on-chip memory, or so many that the GPU is to be replaced."""
    if not (gpu.remaps_rows and gpu.product.ecc):
        raise BadFaultError(f"{gpu.product.name} does not count errors of its SRAM")
    if min(counted.corrected, counted.uncorrected) < 0:
        raise BadFaultError("expected a positive number of errors")
    board = of.board(gpu)
    for one in (board.sram.volatile, board.sram.aggregate):
        one.corrected += counted.corrected
        one.uncorrected += counted.uncorrected
    board.sram.exceeded |= exceeded
    of.touch()


def repair(of: machine.Machine, gpu: machine.Gpu, part: str) -> None:
    """A channel or a TPC to repair at the next reset, or memory that no repair helps."""
    newest = codes.Architecture.HOPPER if part == "memory" else codes.Architecture.AMPERE
    if part not in {"channel", "tpc", "memory"}:
        raise BadFaultError(f"repair of {part!r}: expected channel, tpc or memory")
    if gpu.product.architecture < newest:
        raise BadFaultError(f"{gpu.product.architecture.name} does not tell repairs of {part}")
    due = of.board(gpu).repair
    setattr(due, "unrepairable" if part == "memory" else part, True)
    of.touch()


def retire(of: machine.Machine, gpu: machine.Gpu, *, double_bit: bool) -> None:
    """One more page to retire: pending until a reset."""
    if gpu.remaps_rows or not gpu.product.ecc:
        raise BadFaultError(f"{gpu.product.architecture.name} retires no pages")
    pages = of.board(gpu).retired
    pages.pending = True
    if double_bit:
        pages.double_bit += 1
    else:
        pages.single_bit += 1
    of.touch()


def moves(of: machine.Machine, gpu: machine.Gpu) -> None:
    """The next change of the MIG mode gives the GPU another minor number."""
    if gpu.product.mig is None:
        raise BadFaultError(f"{gpu.product.name} has no MIG")
    of.board(gpu).moves = True
    of.touch()


def veil(of: machine.Machine, gpu: machine.Gpu, *, on: bool) -> None:
    """NVML does not tell how much memory a process uses."""
    of.board(gpu).veiled = on
    of.touch()


def shy(of: machine.Machine, gpu: machine.Gpu, *, on: bool) -> None:
    """MIG modes are refused while any other NVML client is open."""
    of.board(gpu).shy = on
    of.touch()


def hang(of: machine.Machine, gpu: machine.Gpu, call: str) -> None:
    """`call` (a name of `library.Library`, or `*`) does not return for this GPU; "" ends it."""
    if call and not (call in {"*", "nvidia_smi"} or _is_call(call)):
        raise BadFaultError(f"no call {call!r}: expected one like device_get_memory_info, or *")
    of.board(gpu).hangs = call
    of.touch()


def recovery(of: machine.Machine, gpu: machine.Gpu, action: str) -> None:
    """Field 230 says so from now on; the driver tells by Xid 154 and, if new enough, an event."""
    if action not in codes.RecoveryAction.__members__:
        known = ", ".join(codes.RecoveryAction.__members__)
        raise BadFaultError(f"recovery action {action!r}: expected one of {known}")
    number = codes.RecoveryAction[action]
    of.board(gpu).recovery = number
    of.emit(events.Event(gpu.slot.pci, events.EventType.XID, RECOVERY_XID))
    of.emit(events.Event(gpu.slot.pci, events.EventType.RECOVERY_ACTION, number))


def refuse(of: machine.Machine, gpu: machine.Gpu, code: int, times: int) -> None:
    """The next `times` MIG calls that can be refused so will be; 0 ends it."""
    if code not in {codes.Return.IN_USE, codes.Return.INSUFFICIENT_RESOURCES}:
        raise BadFaultError(f"code {code}: expected 19 (IN_USE) or 23 (INSUFFICIENT_RESOURCES)")
    if times < 0:
        raise BadFaultError(f"{times} times: expected 0 or more")
    board = of.board(gpu)
    if code == codes.Return.IN_USE:
        board.refuse_in_use = times
    else:
        board.refuse_resources = times
    of.touch()


def slow(of: machine.Machine, call: str, milliseconds: int) -> None:
    """`call` (a name of `library.Library`; `*` is every call) takes so long; 0 ends it."""
    if milliseconds < 0:
        raise BadFaultError(f"{milliseconds} ms: expected 0 or more")
    if not (call in {"*", *PROCESS_CALLS} or _is_call(call)):
        raise BadFaultError(f"no call {call!r}: expected one like device_get_count, or *")
    of.state.slow.pop(call, None)
    if milliseconds:
        of.state.slow[call] = milliseconds
    of.touch()


def upgrade(of: machine.Machine, version: str) -> None:
    """Newer libraries on disk, the old module in the kernel: new clients fail until a reboot."""
    if VERSION.fullmatch(version) is None:
        raise BadFaultError(f"driver version {version!r}: expected one like 580.105.08")
    if int(version[:3]) < of.profile.oldest_driver:
        oldest = of.profile.oldest_driver
        raise BadFaultError(f"driver {version} does not know this machine: it takes {oldest}")
    of.state.installed_driver = version
    of.touch()


def process(of: machine.Machine, gpu: machine.Gpu, made: state.Process) -> None:
    """A compute process appears, or changes its memory; without memory it ends."""
    board = of.board(gpu)
    if made.memory < 0 or made.pid <= 0:
        raise BadFaultError(f"process {made.pid} with {made.memory} bytes: expected positive ones")
    if made.memory > gpu.product.memory_mib.total << 20:
        raise BadFaultError(f"{gpu.product.name} does not have {made.memory} bytes")
    if board.mig != (made.gpu_instance != codes.WHOLE_GPU):
        raise BadFaultError("a process runs on a MIG device exactly when MIG is on")
    here = (made.gpu_instance, made.compute_instance)
    instances = {(one.id, c.id) for one in board.instances for c in one.compute}
    if board.mig and here not in instances:
        raise BadFaultError(f"GPU {of.minor(gpu)} has no MIG device {here}")
    before = next((one for one in board.processes if one.pid == made.pid), made)
    made.sm_percent = before.sm_percent
    board.processes = [one for one in board.processes if one.pid != made.pid]
    if made.memory:
        board.processes.append(made)
    of.touch()


def work(of: machine.Machine, gpu: machine.Gpu, pid: int, percent: int) -> None:
    """A process of the GPU keeps so much of its multiprocessors busy from now on."""
    if not 0 <= percent <= 100:  # noqa: PLR2004 - percent
        raise BadFaultError(f"{percent} percent: expected 0 to 100")
    found = [one for one in of.board(gpu).processes if one.pid == pid]
    if not found:
        raise BadFaultError(f"no process {pid} runs on GPU {of.minor(gpu)}")
    found[0].sm_percent = percent
    of.touch()


def _is_call(name: str) -> bool:
    return client.is_call(getattr(library.Library, name, None))
