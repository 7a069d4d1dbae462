"""`simulator fault KIND DIR`: one command for each thing that can go wrong."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from simulator import codes, compiler, control, profile, store

REFUSALS = (
    compiler.CompilerError,
    control.ControlError,
    profile.ImpossibleMachineError,
    profile.UnknownMachineError,
    store.MachineDirectoryError,
)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The machine's directory.")]
OneGpu = Annotated[str, typer.Option("--gpu", help="Minor number, UUID or PCI address.")]
GpuInstance = Annotated[int, typer.Option("--gi", help="A GPU instance's id.")]
ComputeInstance = Annotated[int, typer.Option("--ci", help="A compute instance's id.")]
Times = Annotated[int, typer.Option(help="How often; 0 ends it.", min=0)]

app = typer.Typer(help=__doc__, no_args_is_help=True)


class Action(StrEnum):
    """Field 230's values."""

    NONE = "none"
    GPU_RESET = "gpu-reset"
    NODE_REBOOT = "node-reboot"
    DRAIN_P2P = "drain-p2p"
    DRAIN_AND_RESET = "drain-and-reset"
    RECOVER_IMEX_DOMAIN = "recover-imex-domain"
    BUS_RESET = "bus-reset"
    SYSTEM_REBOOT = "system-reboot"


class Part(StrEnum):
    """What wants repair."""

    CHANNEL = "channel"
    TPC = "tpc"
    MEMORY = "memory"


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """End with status 1 and one line."""
    try:
        yield
    except REFUSALS as e:
        print(f"error: {e}", file=sys.stderr)
        raise typer.Exit(1) from e


def _send(directory: Path, call: str, *arguments: object) -> None:
    with refusals_in_words():
        control.send(directory, call, *(str(argument) for argument in arguments))


@app.command()
def lost(directory: Directory, gpu: OneGpu) -> None:
    """The GPU falls off the bus; `clear` brings it back."""
    _send(directory, "lose", gpu)


@app.command()
def gone(directory: Directory, gpu: OneGpu) -> None:
    """The GPU leaves the bus, its device node too; `clear` brings it back."""
    _send(directory, "remove", gpu)


@app.command()
def xid(
    directory: Directory,
    number: Annotated[int, typer.Argument(metavar="XID")],
    gpu: OneGpu,
    gi: GpuInstance = codes.WHOLE_GPU,
    ci: ComputeInstance = codes.WHOLE_GPU,
) -> None:
    """An Xid event and nothing else: what follows from it is a fault of its own."""
    _send(directory, "xid", gpu, number, gi, ci)


@app.command()
def ecc(directory: Directory, gpu: OneGpu, corrected: int = 0, uncorrected: int = 0) -> None:
    """Memory errors: counters and events."""
    _send(directory, "ecc", gpu, corrected, uncorrected)


@app.command("row-remap")
def row_remap(
    directory: Directory,
    gpu: OneGpu,
    uncorrected: Annotated[bool, typer.Option("--uncorrected")] = False,  # noqa: FBT002 - typer
    failed: Annotated[bool, typer.Option("--failed")] = False,  # noqa: FBT002 - typer
) -> None:
    """A row to remap: pending until `clear`, or failed for good."""
    _send(directory, "remap", gpu, int(uncorrected), int(failed))


@app.command()
def sram(
    directory: Directory,
    gpu: OneGpu,
    corrected: int = 0,
    uncorrected: int = 0,
    exceeded: Annotated[bool, typer.Option("--exceeded")] = False,  # noqa: FBT002 - typer
) -> None:
    """Errors of on-chip memory; too many of them (--exceeded) ask for another GPU."""
    _send(directory, "sram", gpu, corrected, uncorrected, int(exceeded))


@app.command()
def repair(directory: Directory, part: Part, gpu: OneGpu) -> None:
    """A repair pending until `clear`; `memory` is memory that no repair helps."""
    _send(directory, "repair", gpu, part.value)


@app.command("retire-page")
def retire_page(
    directory: Directory,
    gpu: OneGpu,
    double_bit: Annotated[bool, typer.Option("--double-bit")] = False,  # noqa: FBT002 - typer
) -> None:
    """A page to retire, before Ampere: pending until `clear`."""
    _send(directory, "retire", gpu, int(double_bit))


@app.command("minor-moves")
def minor_moves(directory: Directory, gpu: OneGpu) -> None:
    """The next change of the MIG mode gives the GPU another minor number, until a reboot."""
    _send(directory, "moves", gpu)


@app.command("in-use-by-clients")
def in_use_by_clients(
    directory: Directory,
    gpu: OneGpu,
    off: Annotated[bool, typer.Option("--off")] = False,  # noqa: FBT002 - typer
) -> None:
    """MIG modes and resets are refused while any other NVML client is open."""
    _send(directory, "shy", gpu, int(not off))


@app.command("memory-not-told")
def memory_not_told(
    directory: Directory,
    gpu: OneGpu,
    off: Annotated[bool, typer.Option("--off")] = False,  # noqa: FBT002 - typer
) -> None:
    """NVML does not tell how much memory a process uses."""
    _send(directory, "veil", gpu, int(not off))


@app.command()
def hang(
    directory: Directory,
    gpu: OneGpu,
    call: Annotated[str, typer.Option(help="For example device_get_memory_info.")] = "*",
    off: Annotated[bool, typer.Option("--off")] = False,  # noqa: FBT002 - typer
) -> None:
    """NVML calls that concern the GPU, and its nvidia-smi, do not return until --off."""
    _send(directory, "hang", gpu, "" if off else call)


@app.command()
def recovery(directory: Directory, action: Action, gpu: OneGpu) -> None:
    """What the GPU asks for (field 230), told by Xid 154."""
    _send(directory, "recovery", gpu, action.name)


@app.command("in-use")
def in_use(directory: Directory, gpu: OneGpu, times: Times = 1) -> None:
    """MIG modes and destroys are refused with IN_USE."""
    _send(directory, "refuse", gpu, int(codes.Return.IN_USE), times)


@app.command("insufficient-resources")
def insufficient_resources(directory: Directory, gpu: OneGpu, times: Times = 1) -> None:
    """Creating instances is refused with INSUFFICIENT_RESOURCES."""
    _send(directory, "refuse", gpu, int(codes.Return.INSUFFICIENT_RESOURCES), times)


@app.command()
def slow(
    directory: Directory,
    milliseconds: Annotated[int, typer.Argument(metavar="MS", min=0)],
    call: Annotated[
        str, typer.Option(help="For example device_get_handle_by_uuid, mps_server.")
    ] = "*",
) -> None:
    """NVML calls take that long; 0 ends it."""
    _send(directory, "slow", call, milliseconds)


@app.command("mps-death")
def mps_death(
    directory: Directory,
    gpu: OneGpu,
    server_only: Annotated[bool, typer.Option("--server-only")] = False,  # noqa: FBT002 - typer
) -> None:
    """MPS's control daemon and server on the GPU are killed: clients lose their contexts."""
    _send(directory, "mps_death", gpu, int(server_only))


@app.command("mps-wedge")
def mps_wedge(directory: Directory, gpu: OneGpu) -> None:
    """The next MPS client to end on the GPU leaves its server so that later clients hang."""
    _send(directory, "mps_wedge", gpu)


@app.command("driver-upgrade")
def driver_upgrade(
    directory: Directory, version: Annotated[str, typer.Argument(metavar="VERSION")]
) -> None:
    """Newer libraries under the loaded module: new clients fail until a reboot."""
    _send(directory, "upgrade", version)


@app.command()
def reboot(directory: Directory) -> None:
    """Boot anew."""
    _send(directory, "reboot")
