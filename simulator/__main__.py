"""`python -m simulator`: make, run, look at and change a simulated machine."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from simulator import builder, compiler, control, machine, node, profile, store

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The machine's directory.")]
OneGpu = Annotated[str, typer.Option("--gpu", help="Minor number, UUID or PCI address.")]

_REFUSALS = (
    compiler.CompilerError,
    control.ControlError,
    profile.ImpossibleMachineError,
    profile.UnknownMachineError,
    store.MachineDirectoryError,
)


class Output(StrEnum):
    """How `show` prints."""

    TABLE = "table"
    JSON = "json"


class Fault(StrEnum):
    """What can go wrong."""

    LOST = "lost"
    REBOOT = "reboot"


@contextmanager
def _refusals_in_words() -> Iterator[None]:
    try:
        yield
    except _REFUSALS as e:
        print(f"error: {e}", file=sys.stderr)
        raise typer.Exit(1) from e


@app.command()
def create(
    directory: Directory,
    machine_name: Annotated[
        str, typer.Option("--machine", help="A name that `machines` lists, or a YAML file.")
    ],
    seed: Annotated[str, typer.Option(help="Decides UUIDs and serials: the node's name.")],
) -> None:
    """Make a machine: its state, its driver root and its host root."""
    with _refusals_in_words():
        compiler.programs()
        made = store.create(directory, machine_name, seed)
        builder.build(directory, made)
    print(f"{directory}: {len(made.gpus)} GPUs, {made.profile.description}")


@app.command()
def run(directory: Directory) -> None:
    """Serve NVML until SIGTERM or SIGINT; prints one line when ready."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _refusals_in_words(), store.locked(directory):
        running = node.Node(directory)
        running.start()
        try:
            print(f"ready: {len(running.machine.gpus)} GPUs in {directory}", flush=True)
            stop.wait()
        finally:
            running.stop()
    print("stopped", flush=True)


@app.command()
def show(
    directory: Directory,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE,
) -> None:
    """Print the machine as it is now."""
    with _refusals_in_words():
        shown = store.load(directory)
    gpus = list(machine.summary(shown))
    if output is Output.JSON:
        print(json.dumps({"seed": shown.seed, "bootID": shown.boot_id, "gpus": gpus}, indent=2))
        return
    rows = [list(gpus[0]), *([str(value) for value in gpu.values()] for gpu in gpus)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


@app.command("set")
def set_(
    directory: Directory,
    gpu: OneGpu,
    readings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...")],
) -> None:
    """Set readings: power_mw, celsius, gpu_percent, memory_percent."""
    with _refusals_in_words():
        for reading in readings:
            name, _, value = reading.partition("=")
            control.send(directory, "set_reading", gpu, name, value)


@app.command()
def fault(
    directory: Directory,
    kind: Fault,
    gpu: Annotated[str, typer.Option("--gpu", help="For `lost`: which GPU.")] = "",
) -> None:
    """Lose a GPU, or reboot the machine."""
    acts: dict[Fault, Callable[[], None]] = {
        Fault.LOST: lambda: control.send(directory, "lose", gpu),
        Fault.REBOOT: lambda: control.send(directory, "reboot"),
    }
    with _refusals_in_words():
        acts[kind]()


@app.command()
def clear(directory: Directory, gpu: OneGpu) -> None:
    """Bring a lost GPU back, as after a reset."""
    with _refusals_in_words():
        control.send(directory, "restore", gpu)


@app.command()
def machines() -> None:
    """List the machines that can be made."""
    for name in profile.names():
        print(f"{name}  {profile.load(name).description}")


if __name__ == "__main__":
    app()
